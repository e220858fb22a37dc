// What tests of replications share.
import { ADMIN } from './server.mjs'

const [username, password] = ADMIN.split(':')

/** A database of another server, as `source` or `target`. */
export const remote = (server, database) => ({ url: `${server.url}/${database}`, auth: { basic: { username, password } } })

/** The leaves of all documents, with their bodies and attachments. */
export async function leaves(client, database) {
  const { results } = await client.ok('GET', `/${database}/_changes?style=all_docs`)
  const docs = results.flatMap(({ id, changes }) => changes.map(({ rev }) => ({ id, rev })))
  const { results: found } = await client.ok('POST', `/${database}/_bulk_get?revs=true&attachments=true`, { docs })
  return found.map(({ docs: [{ ok }] }) => ok).sort((a, b) => (a._id + a._rev < b._id + b._rev ? -1 : 1))
}
