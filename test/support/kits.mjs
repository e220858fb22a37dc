// The worker kits of clients/ as processes of their own against a real server, for tests that run with each kit.
import path from 'node:path'
import { afterEach } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startProxy } from './proxy.mjs'
import { Server } from './server.mjs'
import { waitFor } from './wait.mjs'
import { killWorkers, WorkerProcess } from './worker_process.mjs'

const here = path.dirname(fileURLToPath(import.meta.url))
/** How a program of each kit is run, and its file in test/kits. */
export const KITS = { js: [process.execPath, 'worker.mjs'], python: ['python3', 'worker.py'] }
/** The kits to test. */
export const kits = (process.env.DIVAN_KITS ?? Object.keys(KITS).join()).split(',')
export const withCredentials = (url, credentials = 'admin:secret') => url.replace('http://', `http://${credentials}@`)

const proxies = new Set()
const servers = new Set() // that were started again
/** After each test of a file, ends the processes that it has started. */
export function cleanUp() {
  afterEach(async () => {
    killWorkers()
    for (const proxy of proxies) proxy.close()
    proxies.clear()
    for (const server of servers) await server.kill()
    servers.clear()
  })
}

/** Whether a request that a proxy has received finishes jobs: by itself, or with an accept. */
export const isFinish = (text) => /^POST \S+_finish /.test(text) || /^POST \S+_accept [^]*"finish":\[/.test(text)

export async function proxyTo(server, options) {
  const proxy = await startProxy(server, options)
  proxies.add(proxy)
  return proxy
}

/** Starts the server again, on its data and port. */
export async function startAgain({ dataDir, client: { port } }) {
  const server = await Server.start({ dataDir, port })
  servers.add(server)
  return server
}

function startWorker(kit, url, options) {
  const [program, file] = KITS[kit]
  return new WorkerProcess(program, path.join(here, '../kits', file), url, JSON.stringify(options))
}

let types = 0
/** A type of jobs: calls to the server, and `start(options)`, a worker of it. */
export async function newType(server, kit, settings = {}) {
  const type = `type${++types}`
  const call = (method, rest, body) => server.client.ok(method, `/_jobs/${type}${rest}`, body)
  await call('PUT', '', settings)
  const jobs = {
    type,
    call,
    declare: (changed) => call('PUT', '', changed),
    add: (id, data, options) => call('PUT', `/${id}`, { data, ...options }),
    addMany: (count, data) => call('POST', '/_bulk', { jobs: Array.from({ length: count }, (_, i) => ({ id: `job${i}`, data })) }),
    get: (id) => call('GET', `/${id}`),
    counts: async () => (await call('GET', '')).counts,
    state: async (id) => (await call('GET', `/${id}`)).state,
    is: (id, state) => waitFor(`${id} to be ${state}`, async () => (await jobs.state(id)) === state),
    members: async () => (await server.client.ok('GET', `/_workers/${type}`)).workers,
    start: (options = {}, { url = server.url, credentials } = {}) =>
      startWorker(kit, withCredentials(url, credentials), { type, ...options, worker: { checkInterval: 50, ...options.worker } })
  }
  return jobs
}
