// Several servers on one FoundationDB cluster, and clusters of a test's own.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { clusterSettings, runDivan, Server, temporaryDirectory } from './server.mjs'
import { waitFor } from './wait.mjs'

/** Why tests that need a cluster are skipped, or false. */
export const noCluster = process.env.FDB_CLUSTER_FILE ? false : 'FDB_CLUSTER_FILE is not set: there is no FoundationDB to test with'

const programs = ['fdbserver', 'fdbcli'].map((name) => path.join(process.env.DIVAN_FDB_PROGRAMS ?? '/', name))
const newerServer = path.join(process.env.DIVAN_FDB_NEWER_PROGRAMS ?? '/', 'fdbserver')
/** Why tests that start a cluster of their own are skipped, or false. */
export const noPrograms = programs.every((file) => existsSync(file)) ? false : 'DIVAN_FDB_PROGRAMS does not name the directory of fdbserver and fdbcli'
/** Why tests that change a cluster's version are skipped, or false. */
export const noNewer = existsSync(newerServer) ? false : 'DIVAN_FDB_NEWER_PROGRAMS does not name the directory of a newer fdbserver'

/** The settings of a store that no other test has. */
export const newStore = () => clusterSettings(`test ${randomUUID().slice(0, 8)}`)

// Does it; if it fails, the nodes that there are by then are killed and the ends of their logs told.
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

/**
 * A test with nodes on a store of its own: `body(nodes, env)`, where `env` has its settings and `more`. Afterwards those that the array has
 * by then stop in order, and what is in the store is checked.
 */
export function onNodes(count, name, body, more = {}) {
  test(`cluster: ${name}`, { skip: noCluster }, async () => {
    const { DIVAN_DIVAN_STORE: store, ...settings } = newStore()
    const env = { DIVAN_DIVAN_STORE: store, ...settings, ...more }
    const nodes = []
    await orKilled(nodes, async () => {
      for (let i = 0; i < count; ++i) nodes.push(await Server.start({ env }))
      await body(nodes, env)
    })
    await Promise.all(nodes.map((node) => node.stop()))
    const { code, stdout, stderr } = await runDivan(['verify', '--store', store, '--quiet'], { env: settings })
    assert.equal(code, 0, stdout + stderr)
  })
}

/** The addresses of the nodes that `node` sees. */
export async function membersSeenBy(node) {
  const { nodes } = await node.client.ok('GET', '/_membership')
  return Object.values(nodes).map(({ address }) => address).sort()
}

/** A cluster of one process with its data in memory, which a test may freeze and end. */
export class OwnCluster {
  #child
  #directory = temporaryDirectory()
  #port

  /** `args`: more arguments of fdbserver. */
  static async start(args = []) {
    const cluster = new OwnCluster()
    cluster.#port = await freePort()
    cluster.file = path.join(cluster.#directory, 'fdb.cluster')
    writeFileSync(cluster.file, `test:test@127.0.0.1:${cluster.#port}\n`)
    cluster.run(args)
    await waitFor('a cluster to be made', async () => {
      await cluster.#fdbcli('configure new single memory') // an error if it was made and the answer lost
      return (await cluster.#fdbcli('status minimal')).includes('is available')
    })
    return cluster
  }

  /** Starts its process, on the data of the one before. */
  run(args = [], server = programs[0]) {
    const at = ['-C', this.file, '-p', `127.0.0.1:${this.#port}`, '-l', 'public', '--datadir', this.#directory, '--logdir', this.#directory]
    const limits = ['--memory', '2GiB', '--cache-memory', '64MiB']
    this.#child = spawn('setpriv', ['--pdeathsig', 'KILL', server, ...at, ...limits, ...args], { stdio: 'ignore' })
    this.exit = new Promise((resolve) => this.#child.on('close', resolve))
  }

  /** Settings of a server on a store there, which waits for an answer for a second. */
  settings() {
    return { ...newStore(), DIVAN_DIVAN_STORE: `fdb:${this.file}`, DIVAN_FDB_ANSWER_TIMEOUT: '1000' }
  }

  /** Ends its process and starts that of the newer version, on the same data. */
  async upgrade() {
    await this.kill()
    this.run([], newerServer)
  }

  signal(name) {
    this.#child.kill(name)
  }

  async kill() {
    this.signal('SIGKILL')
    await this.exit
  }

  #fdbcli(command) {
    const args = ['-C', this.file, '--timeout', '10', '--exec', command]
    return new Promise((resolve) => execFile(programs[1], args, (error, stdout) => resolve(stdout)))
  }
}

// A port that nobody listens on.
function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** A test with a cluster of its own: `body(cluster, start)`, where start() starts a server on a store there, of its own unless told. */
export function onOwnCluster(name, options, body, skip = false) {
  test(`cluster: ${name}`, { skip: noCluster || noPrograms || skip }, async () => {
    const cluster = await OwnCluster.start(options)
    const nodes = []
    const start = async (settings = cluster.settings()) => {
      nodes.push(await Server.start({ env: settings }))
      return nodes.at(-1)
    }
    try {
      await orKilled(nodes, () => body(cluster, start))
    } finally {
      await cluster.kill()
    }
  })
}
