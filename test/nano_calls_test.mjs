// The calls of nano that nano_test.mjs does not make: attachments, streams, queries, functions, sessions, errors.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import { buffer, json, text } from 'node:stream/consumers'
import { shareServer } from './support/server.mjs'
import { within } from './support/wait.mjs'

const Nano = createRequire(import.meta.url)('nano')
const it = shareServer()

const connect = (server, credentials = server.credentials) =>
  Nano(server.url.replace('http://', credentials ? `http://${credentials}@` : 'http://'))
const newDatabase = async (server) => connect(server).db.use(await server.newDatabase())

async function refusal(call) {
  const error = await call.then(
    () => assert.fail('the call must fail'),
    (error) => error
  )
  return [error.statusCode, error.error, error.reason]
}

it('attachments are written, read at once and as streams, replaced and deleted', async (server) => {
  const db = await newDatabase(server)
  const contents = randomBytes(1_500_000)
  const first = await db.attachment.insert('doc/ü', 'a picture.png', contents, 'image/png')
  assert.match(first.rev, /^1-/)
  assert.ok((await db.attachment.get('doc/ü', 'a picture.png')).equals(contents))
  assert.ok((await within('the stream', buffer(db.attachment.getAsStream('doc/ü', 'a picture.png')))).equals(contents))
  const stub = (await db.get('doc/ü'))._attachments['a picture.png']
  assert.deepEqual([stub.content_type, stub.length, stub.stub], ['image/png', contents.length, true])

  assert.deepEqual(await refusal(db.attachment.insert('doc/ü', 'b', 'text', 'text/plain')), [409, 'conflict', 'Document update conflict.'])
  const second = await db.attachment.insert('doc/ü', 'b', 'text ü', 'text/plain', { rev: first.rev })
  assert.equal((await db.attachment.get('doc/ü', 'b')).toString(), 'text ü')
  // Of an older revision.
  assert.deepEqual(await refusal(db.attachment.get('doc/ü', 'b', { rev: first.rev })), [404, 'not_found', 'Document is missing attachment'])
  assert.ok((await db.attachment.get('doc/ü', 'a picture.png', { rev: first.rev })).equals(contents))
  const third = await db.attachment.destroy('doc/ü', 'a picture.png', { rev: second.rev })
  assert.match(third.rev, /^3-/)
  assert.deepEqual((await refusal(db.attachment.get('doc/ü', 'a picture.png'))).slice(0, 2), [404, 'not_found'])
  assert.deepEqual(Object.keys((await db.get('doc/ü'))._attachments), ['b'])
})

it('an attachment is uploaded from a stream', async (server) => {
  const db = await newDatabase(server)
  const parts = Array.from({ length: 20 }, () => randomBytes(60_000))
  await db.attachment.insert('doc', 'streamed', Readable.from(parts), 'application/octet-stream')
  assert.ok((await db.attachment.get('doc', 'streamed')).equals(Buffer.concat(parts)))
})

it('a document and its attachments are one multipart message', async (server) => {
  const db = await newDatabase(server)
  const bytes = randomBytes(100_000)
  const attachments = [
    { name: 'text', data: 'first ü', content_type: 'text/plain' },
    { name: 'bytes', data: bytes, content_type: 'image/png' }
  ]
  const { rev } = await db.multipart.insert({ n: 1 }, attachments, 'doc')
  const doc = await db.get('doc', { attachments: true })
  assert.equal(doc.n, 1)
  assert.equal(doc._rev, rev)
  assert.equal(Buffer.from(doc._attachments.text.data, 'base64').toString(), 'first ü')
  assert.ok(Buffer.from(doc._attachments.bytes.data, 'base64').equals(bytes))
  const message = await db.multipart.get('doc')
  assert.ok(message.includes(bytes) && message.includes(Buffer.from('first ü')) && message.includes(Buffer.from('"n":1')))
})

it('listings, views, queries, changes and databases are streamed', async (server) => {
  const db = await newDatabase(server)
  await db.bulk({ docs: Array.from({ length: 1500 }, (_, n) => ({ _id: `d${String(n).padStart(4, '0')}`, n })) })
  await db.insert({ views: { by_n: { map: 'function (doc) { emit(doc.n) }' } } }, '_design/views')
  const read = (stream) => within('a stream', json(stream))
  assert.equal((await read(db.listAsStream({ limit: 1200 }))).rows.length, 1200)
  assert.deepEqual((await read(db.viewAsStream('views', 'by_n', { startkey: 1490 }))).rows.map(({ key }) => key).length, 10)
  assert.equal((await read(db.findAsStream({ selector: { n: { $gte: 1400 } }, limit: 200 }))).docs.length, 100)
  assert.equal((await read(db.changesAsStream({ limit: 1100 }))).results.length, 1100)
  assert.ok((await read(connect(server).db.listAsStream())).includes(db.config.db))
  // The stream of a request that fails emits its error.
  const [error] = await within('an error', once(db.viewAsStream('views', 'nothing'), 'error').catch((thrown) => [thrown]))
  assert.equal(error.statusCode, 404)
})

it('views are queried by keys, and compacted', async (server) => {
  const db = await newDatabase(server)
  await db.bulk({ docs: ['a', 'b', 'c'].map((_id, n) => ({ _id, n })) })
  await db.insert({ views: { by_n: { map: 'function (doc) { emit(doc.n, doc._id) }', reduce: '_count' } } }, '_design/views')
  const { rows } = await db.view('views', 'by_n', { keys: [2, 0], reduce: false })
  assert.deepEqual(rows.map(({ id }) => id), ['c', 'a'])
  const [{ value }] = (await db.view('views', 'by_n')).rows
  assert.equal(value, 3)
  assert.deepEqual(await db.view.compact('views'), { ok: true })
  assert.deepEqual(await db.compact(), { ok: true })
})

it('Mango indexes are created, used and explained', async (server) => {
  const db = await newDatabase(server)
  await db.bulk({ docs: Array.from({ length: 50 }, (_, n) => ({ kind: n % 2 ? 'odd' : 'even', n })) })
  assert.equal((await db.createIndex({ index: { fields: ['kind', 'n'] }, name: 'kinds', type: 'json' })).result, 'created')
  const query = { selector: { kind: 'odd', n: { $lt: 10 } }, sort: [{ kind: 'desc' }, { n: 'desc' }], fields: ['n'] }
  const { docs, warning } = await db.find(query)
  assert.deepEqual([docs, warning], [[9, 7, 5, 3, 1].map((n) => ({ n })), undefined])
  const { index } = await connect(server).request({ db: db.config.db, method: 'POST', path: '_explain', body: query })
  assert.equal(index.name, 'kinds')
  assert.deepEqual((await refusal(db.find({ selector: {}, sort: [{ other: 'asc' }] }))).slice(0, 2), [400, 'no_usable_index'])
})

it('an update function changes a document', async (server) => {
  const db = await newDatabase(server)
  const updates = { inc: 'function (doc, req) { doc.n += JSON.parse(req.body).by; return [doc, { json: { n: doc.n } }] }' }
  await db.insert({ updates }, '_design/counters')
  await db.insert({ n: 1 }, 'one')
  assert.deepEqual(await db.atomic('counters', 'inc', 'one', { by: 4 }), { n: 5 })
  assert.equal((await db.get('one')).n, 5)
})

it('a session in a cookie', async (server) => {
  const nano = connect(server, null)
  assert.deepEqual(await refusal(nano.auth('admin', 'wrong')), [401, 'unauthorized', 'Name or password is incorrect.'])
  const { ok, name, roles } = await nano.auth('admin', 'secret')
  assert.deepEqual([ok, name, roles], [true, 'admin', ['_admin']])
  const { userCtx, info } = await nano.session()
  assert.deepEqual([userCtx.name, info.authenticated], ['admin', 'cookie'])
  const db = nano.db.use(await server.newDatabase())
  await db.insert({ n: 1 }, 'a')
  assert.equal((await db.get('a')).n, 1)
})

it('users log in, and read and write the databases that they may', async (server) => {
  const admin = connect(server)
  const password = 'p&= ü'
  await admin.use('_users').insert({ name: 'ann', type: 'user', roles: ['staff'], password }, 'org.couchdb.user:ann')
  const name = await server.newDatabase()
  await admin.request({ db: name, path: '_security', method: 'PUT', body: { members: { roles: ['staff'] } } })
  const ann = connect(server, null)
  await ann.auth('ann', password)
  const db = ann.use(name)
  await db.insert({ n: 1 }, 'a')
  assert.equal((await db.list()).total_rows, 1)
  assert.deepEqual((await refusal(db.insert({}, '_design/d'))).slice(0, 2), [403, 'forbidden'])
  assert.deepEqual((await refusal(ann.db.destroy(name))).slice(0, 2), [401, 'unauthorized'])
})

it('information on the server, and on its databases as they change', async (server) => {
  const nano = connect(server)
  assert.equal((await nano.info()).couchdb, 'Welcome')
  const since = (await nano.updates()).last_seq
  const db = await newDatabase(server)
  await db.insert({}, 'a')
  const { results } = await nano.updates({ since, feed: 'longpoll', timeout: 10_000 })
  assert.ok(results.some(({ db_name }) => db_name === db.config.db))
  assert.equal((await db.info()).doc_count, 1)
  assert.deepEqual((await nano.db.changes(db.config.db)).results.map(({ id }) => id), ['a'])
  assert.match(await within('the metrics', text(nano.request({ path: '_node/_local/_prometheus', stream: true, dontParse: true }))), /^# HELP/)
})

it('documents are read with their conflicts, revisions and local sequences', async (server) => {
  const db = await newDatabase(server)
  const branch = (id, n) => ({ _id: 'a', n, _rev: `1-${id.repeat(32)}` })
  await db.bulk({ docs: [branch('a', 1), branch('b', 2)], new_edits: false })
  const doc = await db.get('a', { conflicts: true, revs: true, revs_info: true })
  assert.deepEqual([doc.n, doc._conflicts, doc._revisions.start], [2, [`1-${'a'.repeat(32)}`], 1])
  const all = await db.get('a', { open_revs: 'all' })
  assert.deepEqual(all.map(({ ok }) => ok.n).sort(), [1, 2])
  assert.equal((await db.fetch({ keys: ['a'] }, { conflicts: true })).rows[0].doc._conflicts.length, 1)
  assert.equal((await db.get('a', { rev: `1-${'a'.repeat(32)}` })).n, 1)
})

it('documents and views are shown by functions', async (server) => {
  const db = await newDatabase(server)
  const design = {
    shows: { s: 'function (doc, req) { return {json: {name: doc.name}}; }' },
    views: { v: { map: 'function (doc) { if (doc.name) emit(doc.name); }' } },
    lists: { l: "function () { start({headers: {'Content-Type': 'application/json'}}); const names = []; for (let row; (row = getRow());) names.push(row.key); return JSON.stringify(names); }" }
  }
  await db.insert(design, '_design/d')
  await db.bulk({ docs: [{ _id: 'a', name: 'ann' }, { _id: 'b', name: 'bob' }] })
  assert.deepEqual(await db.show('d', 's', 'a'), { name: 'ann' })
  assert.deepEqual((await refusal(db.show('d', 's', 'none'))).slice(0, 2), [404, 'not_found'])
  assert.deepEqual(await db.viewWithList('d', 'v', 'l', { descending: true }), ['bob', 'ann'])
})

it('full-text search', async (server) => {
  const db = await newDatabase(server)
  await db.insert({ indexes: { i: { index: 'function (doc) { if (doc.name) index("default", doc.name, {store: true}); }' } } }, '_design/d')
  await db.bulk({ docs: [{ _id: 'a', name: 'Ann Bee' }, { _id: 'b', name: 'Bob' }] })
  const { total_rows: total, rows } = await db.search('d', 'i', { q: 'ann', include_docs: true })
  assert.deepEqual([total, rows[0].id, rows[0].fields, rows[0].doc.name], [1, 'a', { default: 'Ann Bee' }, 'Ann Bee'])
  assert.deepEqual((await refusal(db.search('d', 'none', { q: 'a' }))).slice(0, 2), [404, 'not_found'])
})
