// The command line: output, loading documents, and how the server ends.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { runDivan, Server, shareServer, startDivan, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor, within } from './support/wait.mjs'

const it = shareServer()

// Runs a tool against a server and returns its output. Throws if it fails.
async function tool(server, args, options) {
  const { code, stdout, stderr } = await runTool(server, args, options)
  assert.equal(code, 0, stderr)
  return stdout
}

function runTool(server, args, options) {
  return runDivan([...args, '--url', server.url, '--user', server.credentials], options)
}

// The cells of a table: rows of words.
const table = (text) => text.trimEnd().split('\n').map((line) => line.trimEnd().split(/\s{2,}/))

for (const signal of ['SIGTERM', 'SIGINT']) {
  test(`cli: a server that is still starting ends with ${signal}`, async () => {
    const dataDir = temporaryDirectory()
    const settings = path.join(dataDir, 'settings')
    execFileSync('mkfifo', [settings])
    const server = startDivan(['serve', '--data-dir', dataDir, '--port', '0', '--config', settings])
    // It blocks reading its settings, which never end.
    const writer = await waitFor('it to read', () => openSync(settings, constants.O_WRONLY | constants.O_NONBLOCK))
    server.child.kill(signal)
    await within('its end', server.exit)
    closeSync(writer)
    assert.deepEqual([server.code, server.signal, server.stdout], [null, signal, ''])
  })
}

test('cli: help names every command, and every setting of the server', async () => {
  const { code, stdout } = await runDivan(['--help'])
  assert.equal(code, 0)
  for (const command of ['serve', 'load', 'backup', 'restore', 'verify', 'status', 'jobs', 'workers', 'updates']) {
    assert.match(stdout, new RegExp(`^  ${command} `, 'm'))
    const help = await runDivan([command, '--help'])
    assert.deepEqual([help.code, help.stderr], [0, ''])
    assert.match(help.stdout, /^Usage: /m)
  }
  const serve = await runDivan(['serve', '--help'])
  for (const words of ['--data-dir', '--port', '--admin', '[chttpd] port = 5984', '[log] level = info']) {
    assert.ok(serve.stdout.includes(words), words)
  }
  assert.match((await runDivan(['--version'])).stdout, /^divan \d+\.\d+\.\d+\n$/)
})

test('cli: invalid arguments are errors with a message', async () => {
  for (const args of [[], ['nonsense'], ['status', '--nonsense'], ['load']]) {
    const { code, stderr } = await runDivan(args)
    assert.ok(code > 0, `${args}: ${code}`)
    assert.notEqual(stderr, '')
  }
})

it('documents are loaded from a file', async (server) => {
  const file = path.join(temporaryDirectory(), 'documents.jsonl')
  const count = 2500
  const line = (_, i) => JSON.stringify({ _id: `doc${i}`, n: i, text: 'ü' })
  writeFileSync(file, Array.from({ length: count }, line).join('\n') + '\n\n')
  const { code, stderr } = await runTool(server, ['load', 'loaded', file, '--batch', '100'])
  assert.equal(code, 0, stderr)
  assert.match(stderr, /2,?500/)
  assert.equal((await server.client.ok('GET', '/loaded')).doc_count, count)
  assert.equal((await server.client.ok('GET', '/loaded/doc2499')).n, 2499)
})

it('documents are loaded from standard input, without output', async (server) => {
  const input = '{"_id":"a"}\n{"_id":"b"}' // the last line lacks a line end
  const { code, stdout, stderr } = await runTool(server, ['load', 'piped', '-', '--quiet'], { input })
  assert.deepEqual([code, stdout, stderr], [0, '', ''])
  assert.equal((await server.client.ok('GET', '/piped')).doc_count, 2)
})

// Loads a file: the exit code, standard error, and the ids of all documents afterwards.
async function loadLines(server, lines, args = []) {
  const database = await server.newDatabase()
  const { code, stderr } = await runTool(server, ['load', database, '-', '--quiet', ...args], { input: lines.join('\n') })
  const { rows } = await server.client.ok('GET', `/${database}/_all_docs`)
  return { code, errors: stderr.trimEnd().split('\n'), ids: rows.map(({ id }) => id) }
}

it('only a line that is refused is skipped, and it is named', async (server) => {
  const good = Array.from({ length: 40 }, (_, i) => `{"_id":"a${i}"}`)
  const bad = { 3: '{"_id":', 7: '[1]', 20: '{"_id":"_no"}', 21: '{"_id":"a0"}', 22: '{"_id":1}', 42: '' }
  const lines = [...good]
  for (const [number, line] of Object.entries(bad)) lines.splice(number - 1, 0, line)
  for (const args of [[], ['--batch', '1'], ['--batch', '7', '--connections', '1']]) {
    const { code, errors, ids } = await loadLines(server, lines, args)
    assert.equal(code, 1)
    assert.deepEqual(ids.sort(), good.map((line) => JSON.parse(line)._id).sort())
    assert.equal(errors.pop(), '5 documents were not written.')
    const number = (line) => Number(/^divan load: standard input, line (\d+): \S/.exec(line)?.[1])
    const numbers = errors.map(number).sort((x, y) => x - y)
    assert.deepEqual(numbers, [3, 7, 20, 21, 22], errors.join('\n'))
    const at = (wanted) => errors.find((line) => number(line) === wanted)
    assert.match(at(3), /invalid UTF-8 JSON/)
    assert.match(at(7), /Document must be a JSON object/)
    assert.match(at(20), /illegal_docid/)
    assert.match(at(21), /"id":"a0","error":"conflict"/)
  }
})

it('only a document that is too large is skipped', async (server) => {
  const large = JSON.stringify({ _id: 'large', text: 'x'.repeat(8_000_100) })
  const { code, errors, ids } = await loadLines(server, ['{"_id":"a"}', large, '{"_id":"b"}'])
  assert.deepEqual([code, ids, errors.length], [1, ['a', 'b'], 2])
  assert.match(errors[0], /line 2: .*too/)
})

testWithServer('a server that accepts only small requests gets the documents in several requests', { env: { DIVAN_CHTTPD_MAX_HTTP_REQUEST_SIZE: '100000' } }, async (server) => {
  const lines = Array.from({ length: 20 }, (_, i) => JSON.stringify({ _id: `a${String(i).padStart(2, '0')}`, text: 'x'.repeat(i === 7 ? 150_000 : 30_000) }))
  const { code, errors, ids } = await loadLines(server, lines)
  assert.equal(code, 1)
  assert.deepEqual(ids, lines.map((line) => JSON.parse(line)._id).filter((id) => id !== 'a07'))
  assert.match(errors[0], /line 8: .*too large/)
})

it('a file may begin with a byte order mark', async (server) => {
  const { code, ids } = await loadLines(server, ['\uFEFF{"_id":"a"}', '{"_id":"b"}\r', ''])
  assert.deepEqual([code, ids], [0, ['a', 'b']])
  const later = await loadLines(server, ['{"_id":"a"}', '\uFEFF{"_id":"b"}'])
  assert.deepEqual([later.code, later.ids], [1, ['a']])
})

it('credentials in the URL are used, and errors do not show them', async (server) => {
  const { host } = new URL(server.url)
  const withUser = (user) => `http://${user}@${host}`
  const answer = async (args, env = {}) => {
    const { code, stdout, stderr } = await runDivan(args, { env, input: '{"_id":"a"}' })
    assert.ok(!(stdout + stderr).includes('secret'), stdout + stderr)
    return { code, stdout, stderr }
  }
  const url = withUser(server.credentials)
  const database = await server.newDatabase()
  for (const args of [['status'], ['load', database, '-', '--quiet'], ['jobs', 'types'], ['workers', 'list'], ['updates'], ['backup', '/dev/null/x']]) {
    const { code, stderr } = await answer([...args, '--url', url])
    if (args[0] === 'backup') assert.match(stderr, /\/dev\/null\/x/)
    else assert.equal(code, 0, stderr)
  }
  assert.equal((await server.client.ok('GET', `/${database}`)).doc_count, 1)
  assert.equal((await answer(['status'], { DIVAN_URL: url })).code, 0)
  assert.equal((await answer(['status', '--url', url], { DIVAN_USER: 'admin:other' })).code, 0)
  assert.equal((await answer(['status', '--url', withUser('admin:other'), '--user', server.credentials])).code, 0)
  assert.match((await answer(['status', '--url', withUser('admin:secret2')])).stderr, /Name or password is incorrect/)
  assert.match((await answer(['status', '--url', 'http://admin:secret@no-such-host.invalid'])).stderr, /no-such-host\.invalid:5984/)
  assert.match((await answer(['status', '--url', 'http://admin:sec/ret@host'])).stderr, /percent-encoded/)
  assert.equal((await answer(['status', '--help'], { DIVAN_URL: url, DIVAN_USER: 'admin:secret' })).code, 0)
})

it('refused documents are counted, and the others are written', async (server) => {
  await server.client.ok('PUT', '/partly')
  await server.client.ok('PUT', '/partly/a', {})
  const { code, stderr } = await runTool(server, ['load', 'partly', '-', '--quiet'], { input: '{"_id":"a"}\n{"_id":"b"}\n' })
  assert.equal(code, 1)
  assert.match(stderr, /"id":"a","error":"conflict"/)
  assert.match(stderr, /^1 documents were not written\.$/m)
  assert.equal((await server.client.ok('GET', '/partly')).doc_count, 2)
})

it('a missing file, and an illegal database name', async (server) => {
  const missing = await runTool(server, ['load', 'x', '/no/such/file'])
  assert.equal(missing.code, 1)
  assert.match(missing.stderr, /Cannot read \/no\/such\/file/)
  const illegal = await runTool(server, ['load', 'X', '-'], { input: '{}' })
  assert.equal(illegal.code, 1)
  assert.match(illegal.stderr, /illegal_database_name/)
})

it('the status shows databases', async (server) => {
  await server.client.ok('PUT', '/shown')
  await server.client.ok('PUT', '/shown/a', { n: 1 })
  // It is reported with a heartbeat and rounded: the requests below are its load.
  const members = async () => Object.values((await server.client.ok('GET', '/_membership')).nodes)
  const load = await waitFor('a heartbeat', async () =>
    (await members()).find(({ load }) => load?.requests_per_second > 0 && load.cpu_cores > 0)?.load)
  assert.deepEqual(Object.keys(load), ['cpu_cores', 'javascript_processes', 'requests_per_second', 'builds', 'memory_bytes', 'disk_total_bytes', 'disk_free_bytes'])
  assert.ok(load.memory_bytes > 1e6 && load.disk_total_bytes > load.disk_free_bytes && load.disk_free_bytes > 0, JSON.stringify(load))
  const text = await tool(server, ['status'])
  assert.match(text, /^Divan \S+ at http:/)
  const [nodes, node, head, ...rows] = table(text.slice(text.indexOf('\n') + 1))
  assert.deepEqual(nodes.slice(0, 5), ['NODE', 'ADDRESS', 'VERSION', 'STARTED', 'BACKGROUND'])
  assert.deepEqual(nodes.slice(5), ['CPU', 'JS', 'REQUESTS/S', 'BUILDS', 'MEMORY', 'FREE DISK'])
  assert.match(node.slice(5).join(' '), /^\d+\.\d+ \d+\.\d+ \d+\.\d+ 0 \d+ MB \d+ GB$/)
  const { all_nodes, cluster_nodes, nodes: known } = await server.client.ok('GET', '/_membership')
  assert.deepEqual(cluster_nodes, all_nodes)
  assert.deepEqual([node[0], node[1], node[4]], [all_nodes[0], server.url, 'compaction,deliver,jobs,ken,purge,replicator,triggers,views'])
  assert.equal(known[all_nodes[0]].version, node[2])
  assert.equal((await server.client.ok('GET', `/_node/${all_nodes[0]}`)).name, all_nodes[0])
  assert.deepEqual(head, ['DATABASE', 'DOCUMENTS', 'DELETED', 'BYTES'])
  assert.deepEqual(rows.find(([name]) => name === 'shown').slice(0, 3), ['shown', '1', '0'])
  const all = JSON.parse(await tool(server, ['status', '--json']))
  assert.equal(all.server.couchdb, 'Welcome')
  assert.deepEqual(Object.keys(all.nodes), all_nodes)
  assert.equal(all.databases.find(({ db_name }) => db_name === 'shown').doc_count, 1)
  assert.deepEqual(all.tasks, [])
})

it('updates are shown', async (server) => {
  await server.client.ok('PUT', '/updated')
  assert.match(await tool(server, ['updates']), /updated/)
  const rows = JSON.parse(await tool(server, ['updates', '--json'])).results
  assert.ok(rows.some(({ db_name }) => db_name === 'updated'))
})

it('a wrong password, and a server that cannot be reached', async (server) => {
  const wrong = await runDivan(['status', '--url', server.url, '--user', 'admin:wrong'])
  assert.equal(wrong.code, 1)
  assert.match(wrong.stderr, /Name or password is incorrect/)
  const nobody = await runDivan(['status', '--url', 'http://127.0.0.1:1'])
  assert.equal(nobody.code, 1)
  assert.match(nobody.stderr, /^divan: .*127\.0\.0\.1:1/)
})

test('cli: a worker does not share a store in a data directory', async () => {
  const { code, stdout, stderr } = await runDivan(['worker', '--data-dir', temporaryDirectory()])
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /^divan: divan worker requires a shared store, --store fdb:CLUSTER_FILE; .*\n$/)
})

test('cli: on its first start a server creates a password, names its file, and its owner alone can read it', async () => {
  const dataDir = `${path.join(temporaryDirectory(), 'made', 'data')}/.`
  const server = await Server.start({ dataDir, admin: null })
  const file = `${dataDir}/admin`
  const credentials = readFileSync(file, 'utf8').trim()
  assert.match(credentials, /^admin:[0-9a-f]{32}$/)
  // A journal, where the output may be, has more readers.
  assert.ok(server.stdout.includes(file) && !server.stdout.includes(credentials.slice('admin:'.length)), server.stdout)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal(statSync(dataDir).mode & 0o777, 0o700)
  assert.equal((await server.client.get('/_all_dbs')).status, 401)
  assert.equal((await server.as(credentials).get('/_all_dbs')).status, 200)
  // The tools read it from the data directory.
  const { code, stderr } = await runDivan(['status', '--url', server.url, '--data-dir', dataDir])
  assert.equal(code, 0, stderr)
  await server.stop()

  const again = await Server.start({ dataDir, admin: null })
  assert.ok(!again.stdout.includes(file))
  assert.equal((await again.as(credentials).get('/_all_dbs')).status, 200)
  await again.stop()
})

test('cli: settings come from a file, from changes at run time, and from the environment', async () => {
  const dataDir = temporaryDirectory()
  const config = path.join(dataDir, 'settings.ini')
  writeFileSync(config, '; of ours\n[admins]\neve = 1984abc\n[log]\nlevel = warning\n[couchdb]\nos_process_timeout = 1000\n')
  const options = { dataDir, admin: null, args: ['--config', config], env: { DIVAN_COUCHDB_OS_PROCESS_TIMEOUT: '2000' } }
  const setting = (server, key) => server.as('eve:1984abc').ok('GET', `/_node/_local/_config/${key}`)
  const server = await Server.start(options)
  assert.ok(!existsSync(path.join(dataDir, 'admin')))
  assert.equal(await setting(server, 'log/level'), 'warning')
  for (const target of ['', '/admins', '/admins/eve']) {
    const { text } = await server.as('eve:1984abc').get(`/_node/_local/_config${target}`)
    assert.ok(!text.includes('1984abc'), text)
  }
  assert.equal(await setting(server, 'couchdb/os_process_timeout'), '2000')
  assert.equal(await server.as('eve:1984abc').ok('PUT', '/_node/_local/_config/log/level', '"debug"'), 'warning')
  await server.stop()
  const again = await Server.start(options)
  assert.equal(await setting(again, 'log/level'), 'debug')
  await again.stop()
})

testWithServer('SIGTERM ends the server with status 0, and acknowledged writes are kept', {}, async (server) => {
  const dataDir = server.dataDir
  const db = await server.newDatabase()
  const written = []
  let refused = 0
  const client = server.as(server.credentials)
  const writer = async (w) => {
    for (let i = 0; ; ++i) {
      try {
        const { status } = await client.put(`/${db}/${w}-${i}`, {})
        if (status !== 201) return
        written.push(`${w}-${i}`)
        if (written.length === 100) server.terminate()
      } catch {
        ++refused
        return
      }
    }
  }
  await Promise.all([0, 1, 2, 3].map(writer))
  assert.ok(refused > 0)
  await server.ended()
  const again = await Server.start({ dataDir })
  const { rows } = await again.client.ok('GET', `/${db}/_all_docs`)
  const kept = new Set(rows.map(({ id }) => id))
  assert.deepEqual(written.filter((id) => !kept.has(id)), [])
  await again.stop()
})

testWithServer('SIGINT does, too', {}, async (server) => {
  process.kill(server.pid, 'SIGINT')
  await server.ended()
})

// Fills a pipe that is not read: the next write to it blocks.
function fill(pipe) {
  for (const size of [4096, 1]) {
    try {
      for (;;) writeSync(pipe, Buffer.alloc(size, '\n'))
    } catch (error) {
      assert.equal(error.code, 'EAGAIN')
    }
  }
}

for (const second of ['SIGTERM', 'SIGINT']) {
  test(`cli: a stop that hangs is ended by a second signal, ${second}`, async () => {
    const dataDir = temporaryDirectory()
    const log = path.join(dataDir, 'log')
    execFileSync('mkfifo', [log])
    const pipe = openSync(log, constants.O_RDWR | constants.O_NONBLOCK)
    const server = startDivan(['serve', '--data-dir', dataDir, '--port', '0'], { env: { DIVAN_LOG_FILE: log } })
    await waitFor('the server to listen', () => server.stdout.includes('listens on'))
    fill(pipe)
    server.child.kill('SIGTERM')
    const isPending = () => {
      const [, signals] = /^ShdPnd:\s*(\w+)$/m.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))
      return (BigInt(`0x${signals}`) & (1n << BigInt(os.constants.signals.SIGTERM - 1))) !== 0n
    }
    await waitFor('the first signal to be taken', () => !isPending())
    server.child.kill(second)
    await within('its end', server.exit)
    closeSync(pipe)
    assert.deepEqual([server.code, server.signal], [null, second])
  })
}
