// Runs PouchDB's test suites against Divan and compares their results with docs/compatibility.md. See README.md.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Server } from '../support/server.mjs'
import { compare, parseExpected } from './expected.mjs'

const USAGE = `usage: ./dev compat pouchdb --source PATH [--server URL] [SUITE ...]
  --source PATH   a checkout of https://github.com/apache/pouchdb with its dependencies (npm install)
  --server URL    the server to test, with an administrator's name and password (http://name:password@host:port); CORS is
                  turned on there. Default: a Divan of its own, without data
  SUITE           integration, mapreduce, find, fuzzy; default: all`

// As in PouchDB's own tests with CouchDB (.github/workflows/ci.yml), with local databases in memory.
const SUITES = {
  integration: { ADAPTERS: 'memory' },
  mapreduce: { ADAPTERS: 'http' },
  find: { ADAPTERS: 'http', PLUGINS: 'pouchdb-find' },
  fuzzy: { ADAPTERS: 'memory' }
}
// For each test. PouchDB's is 5,000, which a busy machine exceeds.
const TIMEOUT_MS = 20_000
// Lines of the output that are shown of a suite that did not end, and of an error.
const OUTPUT_LINES = 40
const ERROR_LINES = 4

const here = path.dirname(fileURLToPath(import.meta.url))
const firstLines = (text, lines) => text.split('\n').slice(0, lines).join('\n      ')

class Usage extends Error {}

function options() {
  let parsed
  try {
    parsed = parseArgs({ allowPositionals: true, options: { source: { type: 'string' }, server: { type: 'string' } } })
  } catch (error) {
    throw new Usage(error.message)
  }
  const { values, positionals } = parsed
  if (!values.source) throw new Usage('--source is missing')
  const unknown = positionals.find((suite) => !(suite in SUITES))
  if (unknown) throw new Usage(`there is no suite ${unknown}; there are ${Object.keys(SUITES).join(', ')}`)
  const source = path.resolve(values.source)
  if (!existsSync(path.join(source, 'bin/run-test.sh'))) throw new Usage(`${source} is not a checkout of PouchDB`)
  if (!existsSync(path.join(source, 'node_modules/.bin/mocha'))) throw new Usage(`run \`npm install\` in ${source} first`)
  return { source, server: values.server, suites: positionals.length > 0 ? positionals : Object.keys(SUITES) }
}

function withCredentials(server) {
  const url = new URL(server.url)
  const [name, password] = server.credentials.split(':')
  return Object.assign(url, { username: name, password }).href.replace(/\/$/, '')
}

// Runs a suite with PouchDB's own script, which waits for the server, turns on CORS there and builds PouchDB. Returns
// [{title, state, error}] of all tests; throws, with the end of the output, if the script does not come to its end.
async function run(source, suite, host, directory) {
  const report = path.join(directory, `${suite}.jsonl`)
  writeFileSync(report, '')
  const child = spawn('npm', ['test'], {
    cwd: source,
    detached: true, // a process group, which can be killed
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ...SUITES[suite],
      TYPE: suite,
      CLIENT: 'node',
      SERVER: 'couchdb-master',
      COUCH_HOST: host,
      SKIP_MIGRATION: '1',
      BAIL: '0',
      TIMEOUT: `${TIMEOUT_MS}`,
      REPORTER: path.join(here, 'mocha_reporter.cjs'),
      DIVAN_COMPAT_REPORT: report
    }
  })
  const kill = () => {
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch (error) {
      if (error.code !== 'ESRCH') throw error
    }
  }
  process.on('exit', kill)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  child.on('exit', kill) // what the script has left
  await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  process.off('exit', kill)

  const lines = readFileSync(report, 'utf8').trimEnd().split('\n').filter(Boolean).map((line) => JSON.parse(line))
  if (!lines.at(-1)?.ended) {
    const last = output.trimEnd().split('\n').slice(-OUTPUT_LINES).join('\n')
    throw new Error(`the suite ${suite} did not come to its end; the end of its output:\n${last}`)
  }
  if (lines.length === 1) throw new Error(`the suite ${suite} has run no test`)
  return [...new Map(lines.slice(0, -1).map((line) => [line.id, line])).values()]
}

function show(suite, { unexpected, passing, missing }) {
  for (const { title, error } of unexpected) console.log(`\nFAILED ${suite}: ${title}\n      ${firstLines(error, ERROR_LINES)}`)
  for (const { title } of passing) console.log(`\nPASSES NOW, remove it from the list: ${suite}: ${title}`)
  // GREP, which PouchDB's script reads, selects tests.
  for (const { title } of process.env.GREP ? [] : missing) console.log(`\nDID NOT RUN, but is in the list: ${suite}: ${title}`)
}

async function main() {
  const { source, server: url, suites } = options()
  const expected = parseExpected(readFileSync(path.join(here, '../../docs/compatibility.md'), 'utf8'), Object.keys(SUITES))
  const commit = spawnSync('git', ['-C', source, 'log', '-1', '--format=%h of %cs', '--abbrev=10'], { encoding: 'utf8' })
  console.log(`PouchDB, commit ${commit.stdout?.trim() || 'unknown'}`)

  const directory = mkdtempSync(path.join(tmpdir(), 'divan-compat-'))
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
  const server = url ? undefined : await Server.start()
  const host = url ? url.replace(/\/$/, '') : withCredentials(server)
  let unexpected = 0
  try {
    for (const suite of suites) {
      const result = compare(suite, await run(source, suite, host, directory), expected)
      show(suite, result)
      unexpected += result.unexpected.length
      const { passed, failed, pending } = result
      console.log(
        `${suite.padEnd(12)} ${passed} passed, ${failed} failed (${result.unexpected.length} unexpectedly), ${pending} pending`
      )
    }
  } finally {
    await server?.stop()
  }
  console.log(unexpected === 0 ? 'No unexpected failures.' : `${unexpected} unexpected failures.`)
  process.exitCode = unexpected === 0 ? 0 : 1
}

try {
  await main()
} catch (error) {
  console.error(error instanceof Usage ? `compat: ${error.message}\n${USAGE}` : `compat: ${error.message}`)
  process.exitCode = 2
}
