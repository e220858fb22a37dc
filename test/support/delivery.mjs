// What tests of deliveries share.
import { createHmac, randomBytes } from 'node:crypto'
import { Receiver } from './receiver.mjs'
import { waitFor } from './wait.mjs'

/** Settings of a server that may send requests to a Receiver. */
export const ALLOWED = { DIVAN_DELIVER_ALLOW: '127.0.0.1' }

let types = 0

/**
 * Declares a job type of the test's own, whose jobs are sent to `url`, and returns functions for it. `deliver`: further members of that
 * setting; `settings`: further settings of the type. Jobs that fail are repeated without a pause.
 */
export async function newType(server, url, deliver = {}, settings = {}) {
  const type = `type${++types}`
  let { client } = server
  const set = (members) => client.ok('PUT', `/_jobs/${type}`, members)
  await set({ backoff_min: 0, backoff_max: 0, ...settings, deliver: { url, ...deliver } })
  const get = (id) => client.ok('GET', `/_jobs/${type}/${encodeURIComponent(id)}`)
  const counts = async () => (await client.ok('GET', `/_jobs/${type}`)).counts
  const reaches = (state) => (id) =>
    waitFor(`the job ${id} to be ${state}`, async () => {
      const job = await get(id)
      return job.state === state && job
    })
  return {
    type, set, get, counts,
    /** Continues with another process of the server. */
    use: (restarted) => { ({ client } = restarted) },
    deliver: (members) => set({ deliver: members }),
    settings: async () => (await client.ok('GET', `/_jobs/${type}`)).settings,
    add: (id, data = {}, more = {}) => client.ok('PUT', `/_jobs/${type}/${encodeURIComponent(id)}`, { data, ...more }),
    /** Adds so many jobs, and returns their ids. */
    addMany: async (count) => {
      const jobs = Array.from({ length: count }, (_, n) => ({ id: `job${n}`, data: { n } }))
      await client.ok('POST', `/_jobs/${type}/_bulk`, { jobs })
      return jobs.map(({ id }) => id)
    },
    act: (id, action, body = {}) => client.post(`/_jobs/${type}/${encodeURIComponent(id)}/_${action}`, body),
    /** Waits for the state of a job, and returns the job. */
    finished: reaches('finished'), failed: reaches('failed'), cancelled: reaches('cancelled'),
    /** Waits until so many jobs are finished. */
    allFinished: (count, limits) => waitFor(`${count} finished jobs of ${type}`, async () => (await counts()).finished === count, limits),
    /** What GET /_deliver says of the type on the only node, or undefined. */
    watched: async () => (await client.ok('GET', '/_deliver')).nodes.flatMap((node) => node.types).find((shown) => shown.type === type)
  }
}

/** withReceiver(declare)(name, body) declares a test with a receiver: body(server, receiver). */
export const withReceiver = (declare) => (name, body) =>
  declare(name, async (server) => {
    const receiver = await Receiver.start()
    try {
      await body(server, receiver)
    } finally {
      await receiver.stop()
    }
  })

/** A secret of Standard Webhooks. */
export const newSecret = (bytes = 32) => `whsec_${randomBytes(bytes).toString('base64')}`

/** The signature of a request, as Standard Webhooks defines it. */
export function signature(secret, { headers, body }) {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return 'v1,' + createHmac('sha256', key).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`).digest('base64')
}

/** A client of a new user with these roles. */
export async function newUser(server, name, roles) {
  await server.client.ok('PUT', `/_users/org.couchdb.user:${name}`, { type: 'user', name, password: 'pw', roles })
  return server.as(`${name}:pw`)
}
