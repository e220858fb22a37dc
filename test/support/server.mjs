// A Divan server of a test's own: the real binary, a data directory of its own, a free port.
//
// However a test ends, its server and directory are removed: tests stop their servers, the end of a test file
// kills remaining ones, and if the test itself is killed, the kernel kills the server (setpriv).
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { Client } from './client.mjs'
import { checkExchange } from './openapi.mjs'
import { waitFor, within } from './wait.mjs'

const buildDir = process.env.DIVAN_BUILD_DIR ?? path.resolve(import.meta.dirname ?? '.', '../../build/dev')
export const binary = path.join(buildDir, 'divan')
/** Whether this build has the address, undefined-behaviour or thread sanitizer. */
export const hasSanitizers = () => /^DIVAN_SANITIZE:\w+=\S/m.test(readFileSync(path.join(buildDir, 'CMakeCache.txt'), 'utf8'))
export const ADMIN = 'admin:secret'

// The prefix of the names of a file's tests: "feeds: ".
const PREFIX = path.basename(process.argv[1] ?? '').replace(/_test\.mjs$/, '') + ': '
// Lines of a server's log that a failure shows.
const SHOWN_LINES = 60
const SANITIZER = /ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|runtime error:/

// The tests can run on a FoundationDB cluster: DIVAN_TEST_STORE=fdb. The data of a data directory is then
// stored under the directory's name.
const onCluster = process.env.DIVAN_TEST_STORE === 'fdb'

const running = new Set()
const directories = new Set()

const killAll = () => {
  for (const child of running) child.kill('SIGKILL')
}
// A test that fails leaves its servers, and a process with children does not end. Others have stopped theirs by then.
if (process.env.NODE_TEST_CONTEXT) after(() => void setTimeout(killAll, 60_000).unref())
process.on('exit', () => {
  killAll()
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1))

/** A fresh directory that is removed at the end. */
export function temporaryDirectory() {
  const directory = mkdtempSync(path.join(tmpdir(), 'divan-'))
  directories.add(directory)
  return directory
}

/** Settings under which a server uses the cluster of FDB_CLUSTER_FILE, and there the store of this name. */
export function clusterSettings(name) {
  const settings = { DIVAN_DIVAN_STORE: `fdb:${process.env.FDB_CLUSTER_FILE}`, DIVAN_FDB_NAME: name }
  if (process.env.DIVAN_FDB_LIBRARY) settings.DIVAN_FDB_LIBRARY = process.env.DIVAN_FDB_LIBRARY
  return settings
}

/** Settings under which a command works on the store of the server that has this data directory. */
export function storeSettings(dataDir) {
  return onCluster ? clusterSettings(path.basename(dataDir)) : {}
}

/**
 * onlyEmbedded(declare)(name, ...): declares a test, with `test`, testWithServer or the result of shareServer(), of properties
 * that only the embedded store has, such as its files, its durability and its lock.
 */
export function onlyEmbedded(declare) {
  if (!onCluster) return declare
  return (name) => test(name.startsWith(PREFIX) ? name : PREFIX + name, { skip: 'of the embedded store alone' })
}

/** Runs the binary to its end: {code, signal, stdout, stderr}. */
export async function runDivan(args, { env = {}, input = '', limit } = {}) {
  const process_ = startDivan(args, { env })
  process_.child.stdin.end(input)
  try {
    await within(`the end of divan ${args.join(' ')}`, process_.exit, limit)
  } catch (error) {
    process_.child.kill('SIGKILL')
    throw error
  }
  return process_
}

/**
 * Starts the binary: {child, stdout, stderr}, which grow, and `exit`, a promise of the end, after which {code, signal} are
 * set. With `terminal`, {columns, lines}, it runs on a terminal of this size: keys go to
 * child.stdin, and what it shows, also on standard error, comes as stdout.
 */
export function startDivan(args, { env = {}, terminal } = {}) {
  const script = path.join(import.meta.dirname ?? 'support', 'terminal.py')
  return new Process(args, env, terminal ? ['python3', script, `${terminal.columns}`, `${terminal.lines}`] : [])
}

class Process {
  stdout = ''
  stderr = ''
  code = null
  signal = null
  killed = false // by the test: its exit status is not checked

  constructor(args, env, wrapper = []) {
    const program = [...wrapper, binary]
    const command = existsSync('/usr/bin/setpriv') ? ['setpriv', '--pdeathsig', 'KILL', ...program] : program
    // Do not inherit settings from the caller's environment.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('DIVAN_'))
    this.child = spawn(command[0], [...command.slice(1), ...args], {
      env: { ...Object.fromEntries(inherited), ...env },
      stdio: ['pipe', 'pipe', 'pipe']
    })
    running.add(this.child)
    this.child.stdin.on('error', () => {})
    this.child.stdout.setEncoding('utf8').on('data', (text) => (this.stdout += text))
    this.child.stderr.setEncoding('utf8').on('data', (text) => (this.stderr += text))
    this.exit = new Promise((resolve) => {
      this.child.on('close', (code, signal) => {
        running.delete(this.child)
        Object.assign(this, { code, signal })
        resolve()
      })
    })
  }
}

export class Server {
  #process
  #terminated = false
  #databases = 0

  /**
   * `command`: `worker` starts a worker that listens; `args`: more arguments; `env`: settings as DIVAN_SECTION_KEY; `dataDir`: an
   * existing one, which stop() does not remove; `local`: the text of its local.ini; `port`: that of an earlier server; `wrapper`: a
   * command that executes the server.
   */
  static async start({ command = 'serve', args = [], env = {}, dataDir, local, port = 0, admin = ADMIN, wrapper } = {}) {
    const server = new Server()
    server.ownsDirectory = dataDir === undefined
    server.dataDir = dataDir ?? temporaryDirectory()
    if (local !== undefined) writeFileSync(path.join(server.dataDir, 'local.ini'), local)
    const all = [command, '--data-dir', server.dataDir, '--port', `${port}`, ...(admin ? ['--admin', admin] : []), ...args]
    server.#process = new Process(all, { ...storeSettings(server.dataDir), ...env }, wrapper)
    await within('the server to listen', server.#listening(admin))
    return server
  }

  async #listening(admin) {
    const process_ = this.#process
    const found = new Promise((resolve) => {
      const look = () => {
        const match = /listens on (http:\/\/\S+)/.exec(process_.stdout)
        if (match) resolve(match[1])
      }
      process_.child.stdout.on('data', look)
    })
    const url = await Promise.race([found, process_.exit])
    if (!url) throw new Error(`the server did not start: exit code ${process_.code}\n${process_.stderr}`)
    this.url = url
    this.client = new Client(url, admin, checkExchange)
    const up = await this.client.get('/_up')
    if (up.status !== 200) throw new Error(`GET /_up: ${up.status} ${up.text}`)
  }

  get pid() {
    return this.#process.child.pid
  }
  get stdout() {
    return this.#process.stdout
  }
  get log() {
    return this.#process.stderr
  }
  get credentials() {
    return this.client.credentials
  }
  /** The end of the server's log, for an error message. */
  get lastLog() {
    const lines = this.log.trimEnd().split('\n')
    const report = lines.findIndex((line) => SANITIZER.test(line))
    const shown = report < 0 ? lines.slice(-SHOWN_LINES) : lines.slice(report, report + SHOWN_LINES)
    return '--- the server\'s log:\n' + shown.join('\n')
  }

  /** A client that sends other credentials ("name:password"), or none. */
  as(credentials) {
    return new Client(this.url, credentials, checkExchange)
  }

  /** Creates a database with a unique name and returns the name. */
  async newDatabase() {
    const name = `db${++this.#databases}`
    await this.client.ok('PUT', `/${name}`)
    return name
  }

  /** The value of a metric without labels. */
  async metric(name) {
    const answer = await this.client.get('/_node/_local/_prometheus')
    const match = new RegExp(`^${name} (\\S+)$`, 'm').exec(answer.text)
    if (!match) throw new Error(`unknown metric ${name}`)
    return Number(match[1])
  }

  /** Asks the server to stop. Only once: a second signal would end it in the middle of its stop. */
  terminate() {
    if (this.#terminated) return
    this.#terminated = true
    this.#process.child.kill('SIGTERM')
  }

  /** Asks the server to stop and checks that it does so in order. */
  async stop() {
    this.client.close()
    this.terminate()
    try {
      await this.ended()
    } finally {
      this.#clean()
    }
  }

  /** Waits for the server's end and checks that it came in order: exit code 0, nothing from a sanitizer. */
  async ended() {
    const process_ = this.#process
    try {
      await within('the server to stop', process_.exit)
      if (process_.killed) return
      if (process_.code !== 0) {
        throw new Error(`the server ended with ${process_.signal ?? `exit code ${process_.code}`}`)
      }
      if (SANITIZER.test(this.log)) throw new Error('a sanitizer has reported an error')
    } catch (error) {
      process_.child.kill('SIGKILL')
      await process_.exit
      error.message += '\n' + this.lastLog
      throw error
    }
  }

  #clean() {
    if (!this.ownsDirectory) return
    rmSync(this.dataDir, { recursive: true, force: true })
    directories.delete(this.dataDir)
  }

  /** Freezes the server (SIGSTOP) until thaw(): resolves when all its threads have stopped. */
  async freeze() {
    this.#process.child.kill('SIGSTOP')
    const tasks = `/proc/${this.pid}/task`
    const isStopped = (id) => / T /.test(readFileSync(`${tasks}/${id}/stat`, 'utf8').replace(/^.*\)/, ''))
    await waitFor('the server to be frozen', () => readdirSync(tasks).every(isStopped))
  }
  thaw() {
    this.#process.child.kill('SIGCONT')
  }

  /** Kills the server; its data directory stays until the test's end. */
  async kill() {
    this.client.close()
    this.#process.killed = true
    this.#process.child.kill('SIGKILL')
    await this.#process.exit
  }
}

/** A test with a server of its own: `body(server)`. A failure shows the server's log. */
export function testWithServer(name, options, body) {
  test(PREFIX + name, async () => {
    const server = await Server.start(options)
    try {
      await body(server)
    } catch (error) {
      error.message += '\n' + server.lastLog
      await server.kill()
      throw error
    }
    await server.stop()
  })
}

/**
 * Starts a server before the first test of the file, and stops it after the last. Returns a function that declares a test
 * on it: it(name, async (server) => ...).
 */
export function shareServer(options = {}) {
  let server
  before(async () => {
    server = await Server.start(options)
  })
  after(async () => {
    await server?.stop()
  })
  return (name, body) =>
    test(PREFIX + name, async () => {
      const logged = server.log.length
      try {
        await body(server)
      } catch (error) {
        const log = server.log.slice(logged).trimEnd()
        if (log) error.message += '\n--- the server\'s log:\n' + log.split('\n').slice(-SHOWN_LINES).join('\n')
        throw error
      }
    })
}
