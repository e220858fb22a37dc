// What tests of replications share.
import assert from 'node:assert/strict'
import http from 'node:http'
import { ADMIN, Server } from './server.mjs'

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

/** Creates a database with conflicts, deletions, attachments and design documents. */
export async function fill(client, db, count = 300) {
  await client.ok('PUT', `/${db}`)
  const docs = Array.from({ length: count }, (_, n) => ({ _id: `d${n}`, n, text: 'é'.repeat(n % 50) }))
  docs.push({ _id: 'attached', _attachments: { 'a.txt': { content_type: 'text/plain', data: Buffer.from('hello'.repeat(5000)).toString('base64') } } })
  docs.push({ _id: '_design/d', views: { v: { map: 'function (doc) { emit(doc.n) }' } } })
  const written = await client.ok('POST', `/${db}/_bulk_docs`, { docs })
  for (const { id, rev } of written.slice(0, 20)) await client.ok('PUT', `/${db}/${id}`, { _rev: rev, changed: true })
  for (const { id, rev } of written.slice(20, 40)) await client.ok('DELETE', `/${db}/${id}?rev=${rev}`)
  const conflicts = written.slice(10, 60).map(({ id, rev }) => ({ _id: id, _rev: '2-abc', _revisions: { start: 2, ids: ['abc', rev.slice(2)] }, other: true }))
  assert.deepEqual(await client.ok('POST', `/${db}/_bulk_docs`, { new_edits: false, docs: conflicts }), [])
}

/** Calls `body` with so many servers. */
export async function withServers(count, body) {
  const servers = []
  try {
    for (let i = 0; i < count; ++i) servers.push(await Server.start())
    await body(...servers)
  } finally {
    for (const server of servers) await server.stop()
  }
}

/** The response to POST /_replicate, which must succeed. */
export const replicate = (server, body) => server.client.ok('POST', '/_replicate', body)

/**
 * Calls `body` with a server that forwards requests to `server`, and with the list of these requests. `limit(request)`: the bytes of
 * the response after which the connection is cut. `before(request)`: called first; may change `headers`, or return a status with
 * which the request is answered.
 */
export async function withProxy(server, body, limit = () => Infinity, before = () => {}) {
  const requests = []
  const { hostname, port } = new URL(server.url)
  const proxy = http.createServer(async (request, response) => {
    const record = { method: request.method, path: request.url.split('?')[0], headers: { ...request.headers }, sent: 0 }
    requests.push(record)
    const status = await before(record)
    if (status) {
      request.resume()
      return void response.writeHead(status, { 'Content-Type': 'application/json' }).end('{"error":"proxy","reason":"As the test says."}')
    }
    request.on('data', (bytes) => { record.sent += bytes.length })
    const most = limit(record, requests)
    const onward = http.request({ hostname, port, method: request.method, path: request.url, headers: record.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers)
      let left = most
      answer.on('data', (bytes) => {
        left -= bytes.length
        if (left < 0) return response.destroy()
        response.write(bytes)
      })
      answer.on('end', () => response.end())
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  await listening(proxy, (proxyPort) => body({ url: `http://127.0.0.1:${proxyPort}`, client: server.client }, requests))
}

/** Calls `body` with the port on which a server of Node.js listens meanwhile. */
export async function listening(server, body) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    return await body(server.address().port)
  } finally {
    server.closeAllConnections?.()
    server.close()
  }
}
