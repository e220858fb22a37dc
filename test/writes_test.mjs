// Writes that need more than a line of text: compressed bodies, limits that change while the server runs,
// design documents that are slow to compile, clients that half-close their connections.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { gzipSync } from 'node:zlib'
import { authorization, sendRaw } from './support/raw.mjs'
import { shareServer, testWithServer } from './support/server.mjs'

const require = createRequire(import.meta.url)
const PouchDB = require('pouchdb-core').default ?? require('pouchdb-core')
PouchDB.plugin(require('pouchdb-adapter-http').default ?? require('pouchdb-adapter-http'))

const it = shareServer()

it('compressed bodies', async (server) => {
  const db = await server.newDatabase()
  const headers = { 'Content-Encoding': 'gzip' }
  const docs = Array.from({ length: 1000 }, (_, n) => ({ _id: `d${n}`, text: 'x'.repeat(1000) }))
  const bulk = await server.client.post(`/${db}/_bulk_docs`, gzipSync(JSON.stringify({ docs })), { headers })
  assert.equal(bulk.status, 201, bulk.text)
  assert.equal((await server.client.ok('GET', `/${db}`)).doc_count, 1000)
  const one = await server.client.put(`/${db}/a`, gzipSync('{"n":1}'), { headers: { 'Content-Encoding': 'GZIP' } })
  assert.equal(one.status, 201, one.text)
  assert.equal((await server.client.ok('GET', `/${db}/a`)).n, 1)
  const cut = await server.client.put(`/${db}/b`, gzipSync('{"n":1}').subarray(0, 12), { headers })
  assert.deepEqual([cut.status, cut.json.error], [400, 'bad_request'])
  const other = await server.client.put(`/${db}/b`, '{}', { headers: { 'Content-Encoding': 'deflate' } })
  assert.deepEqual([other.status, other.json.error], [415, 'bad_content_type'], other.text)
  assert.match(other.json.reason, /deflate/)
  const plain = await server.client.put(`/${db}/b`, '{}', { headers: { 'Content-Encoding': 'identity' } })
  assert.equal(plain.status, 201, plain.text)
  // A client without permission gets an error before its body is read.
  const stranger = await server.as(undefined).put(`/${db}/c`, 'not gzip', { headers })
  assert.equal(stranger.status, 401, stranger.text)
})

testWithServer('the size of a compressed body is limited by its uncompressed size', { env: { DIVAN_CHTTPD_MAX_HTTP_REQUEST_SIZE: '100000' } }, async (server) => {
  await server.client.ok('PUT', '/db')
  const body = gzipSync(JSON.stringify({ text: 'x'.repeat(50_000_000) }))
  assert.ok(body.length < 100_000)
  const answer = await server.client.put('/db/a', body, { headers: { 'Content-Encoding': 'gzip' } })
  assert.deepEqual([answer.status, answer.json.error], [413, 'too_large'], answer.text)
})

testWithServer('the setting of the largest document takes effect at once', {}, async (server) => {
  const setting = '/_node/_local/_config/couchdb/max_document_size'
  await server.client.ok('PUT', '/db')
  assert.equal(await server.client.ok('GET', setting), '8000000')
  await server.client.ok('PUT', setting, '"100"')
  const large = { text: 'x'.repeat(100) }
  for (const path of ['a', '_local/a', 'a?new_edits=false']) {
    const refused = await server.client.put(`/db/${path}`, { ...large, ...(path.includes('?') && { _rev: '1-a' }) })
    assert.deepEqual([refused.status, refused.json.error], [413, 'document_too_large'], refused.text)
  }
  const bulk = await server.client.ok('POST', '/db/_bulk_docs', { docs: [{ _id: 'b' }, { _id: 'c', ...large }] })
  assert.deepEqual(bulk.map(({ error }) => error), [undefined, 'document_too_large'])
  await server.client.ok('DELETE', setting)
  await server.client.ok('PUT', '/db/a', large)
})

// Functions are compiled outside of a transaction, which would be too old before the second view is compiled,
// and be retried for ever.
testWithServer('a design document that is slow to compile is answered', { env: { DIVAN_COUCHDB_OS_PROCESS_TIMEOUT: '60000' } }, async (server) => {
  await server.client.ok('PUT', '/db')
  const slow = (n) => `(function () { for (var i = 0; i < 2e8; i++); return function (doc) { emit(${n}) } })()`
  const views = Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`v${n}`, { map: slow(n) }]))
  await server.client.ok('PUT', '/db/_design/d', { views })
  assert.deepEqual(Object.keys((await server.client.ok('GET', '/db/_design/d')).views).length, 8)
})

it('a client that half-closes its connection gets its responses', async (server) => {
  const db = await server.newDatabase()
  await server.client.ok('PUT', `/${db}/a`, { n: 1 })
  await server.client.ok('PUT', `/${db}/_design/d`, { views: { v: { map: 'function (doc) { emit(doc.n) }' } } })
  const paths = ['_all_docs', '_design/d/_view/v', '_changes', '_changes?feed=longpoll', '_changes?feed=continuous&heartbeat=60000',
    '_changes?feed=eventsource&heartbeat=60000', '_changes?feed=longpoll&since=now&heartbeat=60000'].map((path) => `/${db}/${path}`)
  for (const path of [...paths, '/_db_updates', '/_db_updates?feed=continuous&since=now&heartbeat=60000']) {
    const answer = await sendRaw(server, `GET ${path} HTTP/1.1\r\nHost: x\r\n${authorization(server)}\r\n`, { end: true })
    assert.equal(answer.status, 200, `${path}: ${answer.text}`)
    if (/chunked/.test(answer.text)) assert.ok(answer.text.endsWith('\r\n0\r\n\r\n'), `${path}: ${answer.text}`)
  }
})

// Its replicator continues only after errors of this name.
it("PouchDB gets the refused documents, and continues", async (server) => {
  const db = await server.newDatabase()
  const pouch = new PouchDB(`${server.client.url ?? `http://${server.client.hostname}:${server.client.port}`}/${db}`, {
    skip_setup: true,
    auth: { username: 'admin', password: 'secret' }
  })
  const docs = [
    { _id: 'a', _rev: '1-a' },
    { _id: 'b', _rev: '1-b', _attachments: { 'a.txt': { content_type: 'text/plain', stub: true } } },
    { _id: '_design/c', _rev: '1-c', language: 'erlang', validate_doc_update: 'fun' }
  ]
  const refused = await pouch.bulkDocs({ docs, new_edits: false })
  assert.deepEqual(refused.map(({ id, rev, name }) => [id, rev, name]).sort(), [['_design/c', '1-c', 'forbidden'], ['b', '1-b', 'forbidden']])
  assert.deepEqual((await pouch.allDocs()).rows.map(({ id }) => id), ['a'])
})

// In several transactions.
it('revisions of many documents are compared in one request', async (server) => {
  const db = await server.newDatabase()
  const ids = Array.from({ length: 2500 }, (_, n) => `d${n}`)
  const docs = ids.filter((_, n) => n % 2 === 0).map((_id) => ({ _id, _rev: '1-a' }))
  await server.client.ok('POST', `/${db}/_bulk_docs`, { docs, new_edits: false })
  const asked = Object.fromEntries(ids.map((id) => [id, ['1-a']]))
  const missing = ids.filter((_, n) => n % 2 === 1)
  const diff = await server.client.ok('POST', `/${db}/_revs_diff`, asked)
  assert.deepEqual(diff, Object.fromEntries(missing.map((id) => [id, { missing: ['1-a'] }])))
  const { missing_revs } = await server.client.ok('POST', `/${db}/_missing_revs`, asked)
  assert.deepEqual(missing_revs, Object.fromEntries(missing.map((id) => [id, ['1-a']])))
})
