// The worker kits of clients/ as processes of their own against a real server, for tests that run with each kit.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { afterEach, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startProxy } from './proxy.mjs'
import { Server, temporaryDirectory } from './server.mjs'
import { waitFor } from './wait.mjs'
import { killWorkers, WorkerProcess } from './worker_process.mjs'

const here = path.dirname(fileURLToPath(import.meta.url))
const examples = path.join(here, '../../clients/examples')
/** The command of each program that the tests direct (test/kits/README.md). */
export const KITS = {
  js: [process.execPath, path.join(here, '../kits/worker.mjs')],
  python: ['python3', path.join(here, '../kits/worker.py')],
  go: () => build('go', 'worker', ['go', 'build', '-o', 'worker', '.']),
  rust: () => build('rust', 'target/debug/worker', ['cargo', 'build', '--quiet', '--offline', ...crates])
}
// Debian's packages librust-*-dev. The example needs version 2 of ureq; Debian 13 has version 3, whose API is another.
const registry = '/usr/share/cargo/registry'
const hasCrates = existsSync(registry) && readdirSync(registry).some((name) => /^ureq-2\./.test(name))
const crates = ['--config', 'source.crates-io.replace-with="debian"', '--config', `source.debian.directory="${registry}"`]
const ALL = ['batches', 'delays', 'hooks', 'large', 'late', 'listeners', 'results', 'schedules', 'transact', 'types']
const FEATURES = { js: ALL, python: ALL, go: ['types'], rust: ['types'] }
// A program of DIVAN_KIT, instead of these.
if (process.env.DIVAN_KIT) {
  const { name, command, features = [] } = JSON.parse(process.env.DIVAN_KIT)
  const unknown = features.filter((feature) => !ALL.includes(feature))
  if (unknown.length > 0) throw new Error(`DIVAN_KIT: unknown features ${unknown}; expected some of ${ALL}`)
  KITS[name] = command
  FEATURES[name] = features
}
/** The kits to test. */
export const kits = (process.env.DIVAN_KIT ? JSON.parse(process.env.DIVAN_KIT).name : process.env.DIVAN_KITS ?? Object.keys(KITS).join()).split(',')

// Builds an example with its toolchain, in a copy of its folder; undefined: there is none.
function build(example, program, [command, ...args]) {
  if (spawnSync(command, ['version']).error || (example === 'rust' && !hasCrates)) return undefined
  const directory = temporaryDirectory()
  cpSync(path.join(examples, example), directory, { recursive: true })
  execFileSync(command, args, { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] })
  return [path.join(directory, program)]
}

/** Whether the kit is to be tested for this feature. */
export const has = (kit, feature) => FEATURES[kit].includes(feature)

/** needs(it, kit, ...features)(name, …): declares a test of a kit, unless the kit lacks one of the features. */
export function needs(it, kit, ...features) {
  if (typeof KITS[kit] === 'function') KITS[kit] = KITS[kit]()
  if (KITS[kit] === undefined) return (name) => test(`kits: ${name}`, { skip: `the toolchain of ${kit}, or a library of its example, is not installed` })
  if (!features.every((feature) => has(kit, feature))) return () => {}
  return it
}
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
  const [program, ...args] = KITS[kit]
  return new WorkerProcess(program, ...args, url, JSON.stringify(options))
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
