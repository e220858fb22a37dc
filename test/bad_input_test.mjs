// Invalid input of every kind: the response is a clear error in CouchDB's form, the server keeps running, and
// no data is lost.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { authorization, sendRaw } from './support/raw.mjs'
import { ADMIN, onlyEmbedded, runDivan, Server, shareServer, storeSettings, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer()

const isError = ({ error, reason, ...more }) =>
  typeof error === 'string' && /^[a-z_]+$/.test(error) && typeof reason === 'string' && reason !== '' &&
  Object.keys(more).length === 0

// Asserts that a response is an error in CouchDB's form.
function assertError(answer, status, error, what) {
  assert.deepEqual([answer.status, answer.json.error], [status, error], `${what}: ${answer.text}`)
  assert.ok(isError(answer.json), `${what}: ${answer.text}`)
}

async function assertAlive(server) {
  assert.equal((await server.client.get('/_up')).status, 200)
}

// A database with one document, which must be unchanged afterwards.
async function guarded(server, body) {
  const db = await server.newDatabase()
  await server.client.ok('PUT', `/${db}/keep`, { n: 1 })
  const before = await server.client.ok('GET', `/${db}/_changes?include_docs=true`)
  await body(db)
  assert.deepEqual(await server.client.ok('GET', `/${db}/_changes?include_docs=true`), before)
}

// All requests that have a body.
const WITH_BODY = (db) => [
  ['PUT', `/${db}/a`],
  ['POST', `/${db}`],
  ['PUT', `/${db}/_local/a`],
  ['PUT', `/${db}/_design/a`],
  ['POST', `/${db}/_bulk_docs`],
  ['POST', `/${db}/_bulk_get`],
  ['POST', `/${db}/_all_docs`],
  ['POST', `/${db}/_all_docs/queries`],
  ['POST', `/${db}/_changes?filter=_doc_ids`],
  ['POST', `/${db}/_revs_diff`],
  ['POST', `/${db}/_missing_revs`],
  ['PUT', `/${db}/_security`],
  ['PUT', `/${db}/_revs_limit`],
  ['POST', '/_dbs_info'],
  ['PUT', '/_jobs/mail'],
  ['PUT', '/_workers/role/id'],
  ['POST', '/_transact'],
  ['PUT', '/_node/_local/_config/log/level']
]

it('malformed JSON', (server) =>
  guarded(server, async (db) => {
    const bodies = ['{', '{"a":}', '{"a":1,}', "{'a':1}", '{"a":01}', '{"a":NaN}', '{"a":1}x', '"\u0001"', '{"a":tru}', '{"a":"\\x"}']
    for (const [method, target] of WITH_BODY(db)) {
      for (const body of bodies) {
        const answer = await server.client.request(method, target, { body })
        assertError(answer, 400, 'bad_request', `${method} ${target} ${body}`)
        assert.match(answer.json.reason, /^invalid UTF-8 JSON/)
      }
    }
  }))

it('JSON of the wrong type', (server) =>
  guarded(server, async (db) => {
    for (const [method, target] of WITH_BODY(db)) {
      for (const body of ['[]', '"text"', '17', 'null', 'true', '[{}]']) {
        if (target.endsWith('_revs_limit') && body === '17') continue
        if (target.endsWith('/level') && body === '"text"') continue
        const answer = await server.client.request(method, target, { body })
        assert.equal(answer.status, 400, `${method} ${target} ${body}: ${answer.status} ${answer.text}`)
        assert.ok(isError(answer.json), answer.text)
      }
    }
    assertError(await server.client.put('/_node/_local/_config/log/level', '"text"'), 400, 'bad_request', 'level')
  }))

it('input that is too large', (server) =>
  guarded(server, async (db) => {
    const text = 'x'.repeat(8_000_001)
    assertError(await server.client.put(`/${db}/a`, { text }), 413, 'document_too_large', 'PUT')
    assertError(await server.client.put(`/${db}/_local/a`, { text }), 413, 'document_too_large', '_local')
    const results = await server.client.ok('POST', `/${db}/_bulk_docs`, { docs: [{ _id: 'a', text }] })
    assert.equal(results[0].error, 'document_too_large')
    const security = { admins: { names: [text], roles: [] } }
    assertError(await server.client.put(`/${db}/_security`, security), 413, 'too_large', '_security')
    const id = 'x'.repeat(4001)
    assertError(await server.client.put(`/${db}/${id}`, {}), 400, 'illegal_docid', 'id')
    assertError(await server.client.post(`/${db}`, { _id: id }), 400, 'illegal_docid', '_id')
    assertError(await server.client.put('/_workers/role/id', { opts: { text } }), 400, 'bad_request', 'opts')
  }))

testWithServer(
  'a request that is larger than the server accepts',
  { env: { DIVAN_CHTTPD_MAX_HTTP_REQUEST_SIZE: '10000' } },
  async (server) => {
    await guarded(server, async (db) => {
      const answer = await server.client.put(`/${db}/a`, { text: 'x'.repeat(20_000) }).catch(({ code }) => code)
      // The server responds without reading the rest; a client that continues to send may see its connection
      // reset first.
      if (typeof answer !== 'string') assert.equal(answer.status, 413)
      const head = `PUT /${db}/a HTTP/1.1\r\nHost: x\r\n${authorization(server)}`
      const declared = await sendRaw(server, `${head}Content-Length: 10001\r\n\r\n`)
      assertError(declared, 413, 'too_large', 'Content-Length')
      const chunked = await sendRaw(server, `${head}Transfer-Encoding: chunked\r\n\r\nffff\r\n`)
      assertError(chunked, 413, 'too_large', 'chunked')
      await assertAlive(server)
    })
    assert.equal((await server.client.put('/db1/b', { text: 'x'.repeat(9000) })).status, 201)
  }
)

it('JSON that is too deep', async (server) => {
  await guarded(server, async (db) => {
    for (const depth of [1001, 100_000]) {
      const deep = `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`
      assertError(await server.client.put(`/${db}/a`, deep), 400, 'bad_request', depth)
      assertError(await server.client.put(`/${db}/a`, '{"a":'.repeat(depth)), 400, 'bad_request', depth)
      assertError(await server.client.post(`/${db}/_bulk_docs`, `{"docs":[${deep}]}`), 400, 'bad_request', depth)
      const key = encodeURIComponent('['.repeat(1001) + ']'.repeat(1001))
      assert.equal((await server.client.get(`/${db}/_all_docs?key=${key}`)).status, 400)
    }
  })
  // A document of just the maximum depth is stored and mapped.
  const db = await server.newDatabase()
  const deep = `{"a":${'['.repeat(990)}${']'.repeat(990)}}`
  assert.equal((await server.client.put(`/${db}/a`, deep)).status, 201)
  await server.client.ok('PUT', `/${db}/_design/d`, { views: { v: { map: 'function (doc) { emit(1, doc.a) }' } } })
  const { rows } = await server.client.ok('GET', `/${db}/_design/d/_view/v`)
  assert.equal(JSON.stringify(rows[0].value).length, 2 * 990)
})

it('input that is not UTF-8', (server) =>
  guarded(server, async (db) => {
    const bytes = (...values) => Buffer.concat(values.map((v) => (typeof v === 'string' ? Buffer.from(v) : Buffer.from([v]))))
    const bad = [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x80]]
    for (const piece of bad) {
      const text = bytes('{"a":"', ...piece, '"}')
      assertError(await server.client.put(`/${db}/a`, text), 400, 'bad_request', piece)
      assertError(await server.client.put(`/${db}/a`, bytes('{"', ...piece, '":1}')), 400, 'bad_request', piece)
      const inUrl = piece.map((byte) => '%' + byte.toString(16)).join('')
      for (const target of [`/${db}/${inUrl}`, `/${inUrl}`, `/${db}/_all_docs?key="${inUrl}"`]) {
        const answer = await server.client.get(target)
        assert.equal(answer.status, 400, `${target}: ${answer.text}`)
        assert.ok(isError(answer.json), answer.text)
      }
    }
    for (const target of [`/${db}/%`, `/${db}/%4`, `/${db}/%zz`, `/%`, `/${db}?a=%`]) {
      assertError(await server.client.get(target), 400, 'bad_request', target)
    }
  }))

it('bad names of databases and documents', (server) =>
  guarded(server, async (db) => {
    for (const name of ['A', '1a', '_a', 'a b', 'a.b', 'ä', 'a%00', '%2Fa', '..', 'a*', 'x'.repeat(239)]) {
      const answer = await server.client.put(`/${encodeURI(name).replaceAll('%25', '%')}`)
      assert.equal(answer.status, 400, `${name}: ${answer.text}`)
      assert.ok(isError(answer.json), answer.text)
    }
    for (const id of ['_a', '_design', '_local', '_design%2F', '_local%2F']) {
      const answer = await server.client.put(`/${db}/${id}`, {})
      assert.equal(answer.status, 400, `${id}: ${answer.text}`)
      assert.ok(isError(answer.json), answer.text)
    }
  }))

// An index whose function fails for one document has the rows of all other documents.
async function assertIndexed(server, map) {
  const { client } = server
  const db = await server.newDatabase()
  const docs = [{ _id: 'a' }, { _id: 'bad', bad: true }, { _id: 'c' }]
  await client.ok('POST', `/${db}/_bulk_docs`, { docs })
  await client.ok('PUT', `/${db}/_design/bad`, { views: { odd: { map } } })
  await client.ok('PUT', `/${db}/_design/good`, { views: { all: { map: 'function (doc) { emit(doc._id) }' } } })
  const ids = async (view) => (await client.ok('GET', `/${db}/_design/${view}`)).rows.map(({ id }) => id)
  assert.deepEqual(await ids('bad/_view/odd'), ['a', 'c'])
  assert.deepEqual(await ids('good/_view/all'), ['a', 'bad', 'c'])
  // The log names function, design document and document.
  await waitFor('a line in the log', () => /`odd`.*_design\/bad.*document `bad`/.test(server.log), { limit: 20_000 })
  await assertAlive(server)
}

it('a map function that throws', async (server) => {
  await assertIndexed(server, "function (doc) { if (doc.bad) throw new Error('no'); emit(doc._id) }")
  await assertIndexed(server, 'function (doc) { if (doc.bad) doc.nothing.at.all; emit(doc._id) }')
})

const strict = { env: { DIVAN_COUCHDB_OS_PROCESS_TIMEOUT: '1000', DIVAN_DIVAN_JS_MEMORY_BYTES: `${128 << 20}` } }

testWithServer('a map function with an endless loop', strict, async (server) => {
  await assertIndexed(server, 'function (doc) { while (doc.bad) {} emit(doc._id) }')
})

testWithServer('a map function that allocates too much memory', strict, async (server) => {
  await assertIndexed(
    server,
    "function (doc) { if (doc.bad) { var all = []; for (;;) all.push(new Array(100000).join('x') + all.length) } emit(doc._id) }"
  )
})

testWithServer('a map function that never ends on any document', strict, async (server) => {
  const { client } = server
  const db = await server.newDatabase()
  await client.ok('POST', `/${db}/_bulk_docs`, { docs: Array.from({ length: 50 }, () => ({})) })
  await client.ok('PUT', `/${db}/_design/bad`, { views: { loop: { map: 'function (doc) { for (;;) {} }' } } })
  const answer = await client.get(`/${db}/_design/bad/_view/loop`)
  assert.equal(answer.status, 500, answer.text)
  assert.ok(isError(answer.json), answer.text)
  assert.match(answer.json.reason, /`loop`/)
  await client.ok('PUT', `/${db}/_design/good`, { views: { all: { map: 'function (doc) { emit(1) }' } } })
  assert.equal((await client.ok('GET', `/${db}/_design/good/_view/all`)).rows.length, 50)
})

it('a reduce function that throws', async (server) => {
  const db = await server.newDatabase()
  await server.client.ok('PUT', `/${db}/a`, {})
  const view = { map: 'function (doc) { emit(1) }', reduce: "function () { throw new Error('no') }" }
  await server.client.ok('PUT', `/${db}/_design/d`, { views: { odd: view } })
  assert.deepEqual(await server.client.ok('GET', `/${db}/_design/d/_view/odd`), { rows: [{ key: null, value: null }] })
  assert.equal((await server.client.ok('GET', `/${db}/_design/d/_view/odd?reduce=false`)).rows.length, 1)
})

testWithServer(
  'a client that stops reading a listing is disconnected',
  { env: { DIVAN_CHTTPD_SEND_TIMEOUT: '2000' } },
  async (server) => {
    const db = await server.newDatabase()
    const docs = Array.from({ length: 20 }, () => ({ text: 'x'.repeat(1_000_000) }))
    await server.client.ok('POST', `/${db}/_bulk_docs`, { docs })
    const connections = await server.metric('divan_http_connections')
    const socket = net.connect(server.client.port, server.client.hostname).on('error', () => {})
    socket.write(`GET /${db}/_all_docs?include_docs=true HTTP/1.1\r\nHost: x\r\n${authorization(server)}\r\n`)
    await new Promise((resolve) => socket.once('readable', resolve)) // the response has begun, and is not read further
    await waitFor('the client to be dropped', async () => {
      return (await server.metric('divan_http_connections')) <= connections
    })
    socket.destroy()
    assert.equal((await server.client.ok('GET', `/${db}/_all_docs?include_docs=true`)).rows.length, 20)
  }
)

it('requests that are not HTTP', (server) =>
  guarded(server, async (db) => {
    const auth = authorization(server)
    const put = `PUT /${db}/a HTTP/1.1\r\nHost: x\r\n${auth}`
    const cases = {
      'not HTTP at all': ['hello\r\n\r\n', 400],
      'binary rubbish': [Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01]), 400],
      'HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
      'no Host': [`GET / HTTP/1.1\r\n${auth}\r\n`, 400],
      'a NUL in a field': [`GET / HTTP/1.1\r\nHost: x\r\nX-A: a\0b\r\n\r\n`, 400],
      'a field without a colon': [`GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n`, 400],
      'a space in the target': ['GET /a b HTTP/1.1\r\nHost: x\r\n\r\n', 400],
      'a huge field': [`GET / HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(100_000)}\r\n\r\n`, 431],
      'many fields': [`GET / HTTP/1.1\r\nHost: x\r\n${'X-A: a\r\n'.repeat(10_000)}\r\n`, 431],
      'a long target': [`GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 414],
      'an invalid length': [`${put}Content-Length: ten\r\n\r\n`, 400],
      'a negative length': [`${put}Content-Length: -1\r\n\r\n`, 400],
      'two lengths': [`${put}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, 400],
      'a length and chunks': [`${put}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
      'an invalid chunk size': [`${put}Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n`, 400],
      'a chunk that is longer than it says': [`${put}Transfer-Encoding: chunked\r\n\r\n2\r\n{"a":1}\r\n0\r\n\r\n`, 400],
      'a huge chunk size': [`${put}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n`, 413],
      'an unknown coding': [`${put}Transfer-Encoding: gzip\r\n\r\n`, 501],
      'an unknown compression': [`${put}Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}`, 415],
      'a body that is not gzip': [`${put}Connection: close\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}`, 400]
    }
    for (const [what, [bytes, status]] of Object.entries(cases)) {
      const answer = await sendRaw(server, bytes)
      assert.equal(answer.status, status, `${what}: ${answer.text}`)
      assert.ok(isError(answer.json), `${what}: ${answer.text}`)
    }
    // A truncated body is not stored.
    await sendRaw(server, `${put}Content-Length: 10\r\n\r\n{"a":`, { end: true })
    await sendRaw(server, `${put}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n`, { end: true })
    await assertAlive(server)
  }))

it('an unknown method', async (server) => {
  const answer = await sendRaw(server, `BREW / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  assertError(answer, 405, 'method_not_allowed', 'BREW')
  assert.match(answer.text, /^Allow: GET,HEAD\r$/m)
})

testWithServer(
  'clients that send their requests too slowly',
  { env: { DIVAN_CHTTPD_HEAD_TIMEOUT: '300', DIVAN_CHTTPD_BODY_TIMEOUT: '300', DIVAN_CHTTPD_IDLE_TIMEOUT: '300' } },
  async (server) => {
    const slow = Array.from({ length: 50 }, () => sendRaw(server, 'GET / HTTP/1.1\r\nHost: x\r\nX-A: '))
    const head = `PUT /db/a HTTP/1.1\r\nHost: x\r\n${authorization(server)}Content-Length: 10\r\n\r\n{`
    const body = Array.from({ length: 50 }, () => sendRaw(server, head))
    const idle = sendRaw(server, '')
    await assertAlive({ client: server.as(server.credentials) }) // they do not block others
    for (const answer of await Promise.all([...slow, ...body])) assertError(answer, 408, 'timeout', 'slow')
    assert.equal((await idle).text, '')
  }
)

testWithServer('more connections than the limit', { env: { DIVAN_CHTTPD_MAX_CONNECTIONS: '5' } }, async (server) => {
  const sockets = []
  const open = () => sockets.push(net.connect(server.client.port, server.client.hostname).on('error', () => {}))
  while (sockets.length < 4) open()
  await waitFor('the connections', async () => (await server.metric('divan_http_connections')) === 5)
  const answer = await sendRaw(server, '')
  assert.equal(answer.status, 503)
  assert.ok(isError(answer.json), answer.text)
  for (const socket of sockets) socket.destroy()
  await waitFor('room', async () => (await server.metric('divan_http_connections')) === 1)
})

// Tests of starts that fail.
const start = (what, body) => test(`bad_input: ${what}`, body)

// Asserts that a server does not start, and prints one line with the reason.
async function assertNoStart(args, message, options) {
  const { code, stderr, stdout } = await runDivan(['serve', ...(args.includes('--port') ? [] : ['--port', '0']), ...args], options)
  assert.notEqual(code, 0, `${args}`)
  assert.notEqual(code, null, `${args}: it was killed`)
  assert.match(stderr, message)
  assert.ok(!stdout.includes('listens'), stdout)
}

testWithServer('a data directory that is in use', {}, async (server) => {
  const db = await server.newDatabase()
  const env = storeSettings(server.dataDir)
  for (const store of [env, { ...env, DIVAN_DIVAN_STORE: 'embedded' }, { ...env, DIVAN_DIVAN_STORE: 'fdb:/dev/null' }]) {
    await assertNoStart(['--data-dir', server.dataDir, '--admin', ADMIN], /Data directory .* is in use by another process\.\n$/, { env: store })
  }
  assert.equal((await server.client.put(`/${db}/a`, {})).status, 201)
})

onlyEmbedded(start)('a data directory of a newer format, and one that is damaged', async () => {
  const dataDir = temporaryDirectory()
  const server = await Server.start({ dataDir })
  await server.client.ok('PUT', '/db')
  await server.client.ok('PUT', '/db/a', { n: 1 })
  await server.stop()
  const file = path.join(dataDir, 'store', 'FORMAT')
  const format = readFileSync(file, 'utf8')
  const args = ['--data-dir', dataDir, '--admin', ADMIN]
  writeFileSync(file, format.replace(/\d+/, '99'))
  await assertNoStart(args, /its format 99 is newer than this version of Divan, which knows \d+ to \d+\.\n$/)
  writeFileSync(file, 'rubbish')
  await assertNoStart(args, /its FORMAT file is damaged/)
  writeFileSync(file, format)
  const again = await Server.start({ dataDir })
  assert.equal((await again.client.ok('GET', '/db/a')).n, 1)
  await again.stop()
})

start('a store in a cluster, without its client library', async () => {
  const env = { DIVAN_DIVAN_STORE: 'fdb:', DIVAN_FDB_LIBRARY: '/nonexistent/libfdb_c.so' }
  await assertNoStart(['--data-dir', temporaryDirectory()], /^divan: .*foundationdb-clients.*\n$/, { env })
})

start('an invalid data directory', async () => {
  const file = path.join(temporaryDirectory(), 'file')
  writeFileSync(file, '')
  await assertNoStart(['--data-dir', file], /Data directory .*file/)
  await assertNoStart(['--data-dir', '/dev/null/a'], /Data directory \/dev\/null\/a/)
})

start('invalid settings files and settings', async () => {
  const dataDir = temporaryDirectory()
  const file = path.join(dataDir, 'settings.ini')
  const args = ['--data-dir', dataDir, '--config', file]
  const wrong = async (text, message) => {
    writeFileSync(file, text)
    await assertNoStart(args, message)
  }
  await assertNoStart(args, /Cannot read settings file /)
  await wrong('[chttpd]\nnonsense\n', /settings\.ini, line 2/)
  await wrong('[chttpd\nport = 1\n', /settings\.ini, line 1/)
  await wrong('[chttpd]\nmax_connections = many\n', /\[chttpd\] max_connections = many is not a number from 1 to/)
  await wrong('[couchdb]\nos_process_timeout = -5\n', /\[couchdb\] os_process_timeout = -5/)
  await wrong('[log]\nlevel = loud\n', /loud/)
  await wrong('[chttpd]\nbind_address = nowhere\n', /nowhere/)
  await wrong(Buffer.from([1, 2, 255, 254, 10]), /settings\.ini, line 1/)
  writeFileSync(file, '')
  await assertNoStart(args, /\[log\] level|`loud`/, { env: { DIVAN_LOG_LEVEL: 'loud' } })
  writeFileSync(path.join(dataDir, 'local.ini'), 'nonsense')
  await assertNoStart(args, /local\.ini, line 1/)
})

start('invalid arguments', async () => {
  const dataDir = temporaryDirectory()
  const args = ['--data-dir', dataDir]
  await assertNoStart([...args, '--nonsense'], /--nonsense/)
  await assertNoStart([...args, '--port', 'x'], /port = x/)
  await assertNoStart([...args, '--port', '70000'], /port = 70000/)
  await assertNoStart([...args, '--admin', 'nopassword'], /NAME:PASSWORD/)
  await assertNoStart([...args, '--store', 'paper'], /--store/)
  await assertNoStart([...args, '--durability', 'none'], /--durability: none/)
  await assertNoStart([...args, '--bind', '300.1.1.1'], /300\.1\.1\.1/)
  const taken = net.createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => taken.once('listening', resolve))
  await assertNoStart([...args, '--port', `${taken.address().port}`], /in use/)
  taken.close()
})
