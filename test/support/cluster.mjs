// Several servers on one FoundationDB cluster, and clusters of a test's own.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { Network } from './network.mjs'
import { clusterSettings, runDivan, Server, temporaryDirectory } from './server.mjs'
import { waitFor } from './wait.mjs'

/** Why tests that need a cluster are skipped, or false. */
export const noCluster = process.env.FDB_CLUSTER_FILE ? false : 'FDB_CLUSTER_FILE is not set: there is no FoundationDB to test with'

/** The error of a node that has lost its cluster, with the settings of OwnCluster. */
export const NO_ANSWER = /^The transaction could not be done in time; try again\. The FoundationDB cluster has not answered for 1 s\.$/

const programs = ['fdbserver', 'fdbcli'].map((name) => path.join(process.env.DIVAN_FDB_PROGRAMS ?? '/', name))
const newerServer = path.join(process.env.DIVAN_FDB_NEWER_PROGRAMS ?? '/', 'fdbserver')
/** Why tests that start a cluster of their own are skipped, or false. */
export const noPrograms = programs.every((file) => existsSync(file)) ? false : 'DIVAN_FDB_PROGRAMS does not name the directory of fdbserver and fdbcli'
/** Why tests that change a cluster's version are skipped, or false. */
export const noNewer = existsSync(newerServer) ? false : 'DIVAN_FDB_NEWER_PROGRAMS does not name the directory of a newer fdbserver'

/** The settings of a store that no other test has. */
export const newStore = () => clusterSettings(`test ${randomUUID().slice(0, 8)}`)

// Runs it; if it fails, kills the nodes and shows the ends of their logs.
async function orKilled(nodes, body) {
  try {
    await body()
  } catch (error) {
    for (const node of nodes) {
      error.message += '\n' + node.lastLog
      await node.kill()
    }
    throw error
  }
}

// Stops the nodes in order, and verifies their store.
async function stopAll(nodes, env) {
  await Promise.all(nodes.map((node) => node.stop()))
  const { code, stdout, stderr } = await runDivan(['verify', '--store', env.DIVAN_DIVAN_STORE, '--quiet'], { env })
  assert.equal(code, 0, stdout + stderr)
}

/**
 * A test with nodes on a store of its own: `body(nodes, env)`, where `env` has its settings. Afterwards the nodes in
 * the array are stopped, and their store is verified. `args` and `env`: more arguments and settings of the nodes.
 */
export function onNodes(count, name, body, { args = [], env: more = {} } = {}) {
  test(`cluster: ${name}`, { skip: noCluster }, async () => {
    const env = { ...newStore(), ...more }
    const nodes = []
    await orKilled(nodes, async () => {
      for (let i = 0; i < count; ++i) nodes.push(await Server.start({ args, env }))
      await body(nodes, env)
    })
    await stopAll(nodes, env)
  })
}

/** The addresses of the nodes that `node` sees. */
export async function membersSeenBy(node) {
  const { nodes } = await node.client.ok('GET', '/_membership')
  return Object.values(nodes).map(({ address }) => address).sort()
}

/** Asserts that a server does not start, with a one-line error. */
export async function refused(settings, words) {
  const env = { ...settings, DIVAN_FDB_START_TIMEOUT: '500' }
  const { code, stdout, stderr } = await runDivan(['serve', '--port', '0', '--data-dir', temporaryDirectory()], { env })
  assert.deepEqual([code, stdout], [1, ''], stderr)
  assert.match(stderr, words)
  assert.equal(stderr.split('\n').length, 2, stderr)
}

// A rejected transaction is not throttled.
const TLS_KNOBS = ['--knob_tls_server_connection_throttle_attempts=1000000']
const tlsArgs = ({ certificate, key, ca }) => ['--tls_certificate_file', certificate, '--tls_key_file', key, '--tls_ca_file', ca]

/** Settings of a server with these certificates: {certificate, key, ca}, any of them or none. */
export function tlsSettings({ certificate = '', key = '', ca = '' }) {
  return { DIVAN_FDB_TLS_CERTIFICATE_FILE: certificate, DIVAN_FDB_TLS_KEY_FILE: key, DIVAN_FDB_TLS_CA_FILE: ca }
}

/** A cluster of one process with its data in memory, which a test may freeze and end. */
export class OwnCluster {
  #child
  #program = programs[0]
  #directory = temporaryDirectory()
  #address
  #listen = 'public'
  #tls

  /**
   * `args`: more arguments of fdbserver. `tls`: {server, client}, the TLS certificates of the cluster and of its clients. `isBehind`:
   * it is reached through `network` alone, a proxy.
   */
  static async start(args = [], { tls, isBehind = false } = {}) {
    const cluster = new OwnCluster()
    cluster.#tls = tls
    let port = await freePort()
    if (isBehind) {
      cluster.network = await Network.start(port)
      cluster.#listen = `127.0.0.1:${port}`
      port = cluster.network.port
    }
    cluster.#address = `127.0.0.1:${port}${tls ? ':tls' : ''}`
    cluster.file = path.join(cluster.#directory, 'fdb.cluster')
    writeFileSync(cluster.file, `test:test@${cluster.#address}\n`)
    cluster.run(args)
    await waitFor('a cluster to be made', async () => {
      await cluster.#fdbcli('configure new single memory') // fails if it was created and the response lost
      return (await cluster.#fdbcli('status minimal')).includes('is available')
    })
    return cluster
  }

  /** Starts its process, on the data of the one before. `server`: other certificates than at the start. */
  run(args = [], server = this.#tls?.server) {
    const at = ['-C', this.file, '-p', this.#address, '-l', this.#listen]
    const where = ['--datadir', this.#directory, '--logdir', this.#directory]
    const limits = ['--memory', '2GiB', '--cache-memory', '64MiB']
    const tls = server ? [...tlsArgs(server), ...TLS_KNOBS] : []
    this.#child = spawn('setpriv', ['--pdeathsig', 'KILL', this.#program, ...at, ...where, ...limits, ...tls, ...args], { stdio: 'ignore' })
    this.exit = new Promise((resolve) => this.#child.on('close', resolve))
  }

  /** Settings of a server on a store there, which waits for an answer for a second. */
  settings() {
    const store = { ...newStore(), DIVAN_DIVAN_STORE: `fdb:${this.file}`, DIVAN_FDB_ANSWER_TIMEOUT: '1000' }
    return this.#tls ? { ...store, ...tlsSettings(this.#tls.client) } : store
  }

  /** Ends its process and starts one of the newer version, on the same data. */
  async upgrade() {
    await this.kill()
    this.#program = newerServer
    this.run()
  }

  signal(name) {
    this.#child.kill(name)
  }

  async kill() {
    this.signal('SIGKILL')
    await this.exit
  }

  #fdbcli(command) {
    const args = ['-C', this.file, '--timeout', '10', ...(this.#tls ? tlsArgs(this.#tls.client) : []), '--exec', command]
    // Settings of the client are those of the servers: with another library fdbcli forgets its own for TLS.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('FDB_NETWORK_OPTION_')))
    return new Promise((resolve) => execFile(programs[1], args, { env }, (error, stdout) => resolve(stdout)))
  }
}

// A port without a listener.
export function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/**
 * A test with a cluster of its own, which has `args`: `body(cluster, start)`, where start(settings) starts a server on a store there,
 * with more settings. `tls`: a function that returns the option of OwnCluster.start(); `skip`: why it is skipped.
 */
export function onOwnCluster(name, args, body, { tls = () => undefined, skip = false } = {}) {
  test(`cluster: ${name}`, { skip: noCluster || noPrograms || skip }, async () => {
    const cluster = await OwnCluster.start(args, { tls: tls() })
    const nodes = []
    const start = async (settings = {}) => {
      nodes.push(await Server.start({ env: { ...cluster.settings(), ...settings } }))
      return nodes.at(-1)
    }
    try {
      await orKilled(nodes, () => body(cluster, start))
    } finally {
      await cluster.kill()
    }
  })
}

/**
 * A test with nodes on a cluster of its own, each with a link to it that may fail: `body(nodes, links)`. Afterwards the nodes in the
 * array are stopped, and their store is verified. `env`: more settings of the nodes.
 */
export function onNetwork(count, name, body, { env: more = {} } = {}) {
  test(`cluster: ${name}`, { skip: noCluster || noPrograms }, async () => {
    const cluster = await OwnCluster.start([], { isBehind: true })
    const env = { ...cluster.settings(), ...more }
    const nodes = []
    try {
      await orKilled(nodes, async () => {
        for (let i = 0; i < count; ++i) nodes.push(await Server.start({ env }))
        await body(nodes, nodes.map((node) => cluster.network.to(node)))
        await stopAll(nodes, env)
      })
    } finally {
      await cluster.kill()
      cluster.network.close()
    }
  })
}
