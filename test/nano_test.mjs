// nano, CouchDB's own client for Node.js, against the server: applications work unchanged.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { shareServer } from './support/server.mjs'
import { within } from './support/wait.mjs'

const Nano = createRequire(import.meta.url)('nano')
const it = shareServer()

const connect = (server, credentials = server.credentials) =>
  Nano(server.url.replace('http://', credentials ? `http://${credentials}@` : 'http://'))

// A database of the test's own, as nano sees it.
async function newDatabase(server) {
  return connect(server).db.use(await server.newDatabase())
}

// The error of a call, as nano reports it.
async function refusal(call) {
  const error = await call.then(
    () => assert.fail('the call must fail'),
    (error) => error
  )
  return [error.statusCode, error.error, error.reason]
}

it('databases are created, listed, shown and deleted', async (server) => {
  const nano = connect(server)
  assert.deepEqual(await nano.db.create('albums'), { ok: true })
  assert.deepEqual(await refusal(nano.db.create('albums')), [
    412,
    'file_exists',
    'The database could not be created, the file already exists.'
  ])
  assert.ok((await nano.db.list()).includes('albums'))
  const info = await nano.db.get('albums')
  assert.deepEqual([info.db_name, info.doc_count], ['albums', 0])
  assert.deepEqual(await nano.db.compact('albums'), { ok: true })
  assert.deepEqual(await nano.db.destroy('albums'), { ok: true })
  assert.deepEqual(await refusal(nano.db.get('albums')), [404, 'not_found', 'Database does not exist.'])
})

it('a document is inserted, read, updated and deleted', async (server) => {
  const db = await newDatabase(server)
  const first = await db.insert({ title: 'Kind of Blue' }, 'miles/1959 ü')
  assert.deepEqual([first.ok, first.id], [true, 'miles/1959 ü'])
  assert.match(first.rev, /^1-[0-9a-f]{32}$/)
  assert.equal((await db.head('miles/1959 ü')).etag, `"${first.rev}"`)

  const second = await db.insert({ _id: 'miles/1959 ü', _rev: first.rev, title: 'Kind of Blue', year: 1959 })
  assert.match(second.rev, /^2-/)
  assert.deepEqual(await db.get('miles/1959 ü'), {
    _id: 'miles/1959 ü',
    _rev: second.rev,
    title: 'Kind of Blue',
    year: 1959
  })
  assert.deepEqual(await refusal(db.insert({ _id: 'miles/1959 ü', _rev: first.rev })), [
    409,
    'conflict',
    'Document update conflict.'
  ])
  assert.deepEqual(await refusal(db.destroy('miles/1959 ü', first.rev)), [
    409,
    'conflict',
    'Document update conflict.'
  ])
  assert.match((await db.destroy('miles/1959 ü', second.rev)).rev, /^3-/)
  assert.deepEqual(await refusal(db.get('miles/1959 ü')), [404, 'not_found', 'deleted'])
})

it('the server gives an id to a document without one', async (server) => {
  const db = await newDatabase(server)
  const { id } = await db.insert({ a: 1 })
  assert.match(id, /^[0-9a-f]{32}$/)
  assert.equal((await db.get(id)).a, 1)
  assert.equal((await connect(server).uuids(3)).uuids.length, 3)
})

it('documents are written in bulk, listed and fetched', async (server) => {
  const db = await newDatabase(server)
  const written = await db.bulk({ docs: [{ _id: 'a', n: 1 }, { _id: 'b', n: 2 }, { _id: 'c', n: 3 }] })
  assert.deepEqual(
    written.map(({ ok, id }) => [ok, id]),
    [
      [true, 'a'],
      [true, 'b'],
      [true, 'c']
    ]
  )
  const again = await db.bulk({ docs: [{ _id: 'a' }, { _id: 'd' }] })
  assert.deepEqual([again[0].error, again[1].ok], ['conflict', true])

  const list = await db.list({ startkey: 'b', endkey: 'c', include_docs: true })
  assert.equal(list.total_rows, 4)
  assert.deepEqual(list.rows.map(({ id, doc }) => [id, doc.n]), [
    ['b', 2],
    ['c', 3]
  ])
  const fetched = await db.fetch({ keys: ['c', 'nobody', 'a'] })
  assert.deepEqual(
    fetched.rows.map(({ doc, error }) => doc?.n ?? error),
    [3, 'not_found', 1]
  )
  assert.deepEqual((await db.fetchRevs({ keys: ['b'] })).rows[0].value.rev, written[1].rev)
})

it('changes are read at once and in batches', async (server) => {
  const db = await newDatabase(server)
  for (const id of ['a', 'b', 'c']) await db.insert({}, id)
  const changes = await db.changes({ include_docs: true })
  assert.deepEqual(changes.results.map(({ id, doc }) => [id, doc._id]), [
    ['a', 'a'],
    ['b', 'b'],
    ['c', 'c']
  ])
  assert.deepEqual((await db.changes({ since: changes.last_seq })).results, [])

  const ids = []
  const reader = db.changesReader.get({ since: 0, batchSize: 2, timeout: 1 })
  reader.on('change', ({ id }) => ids.push(id))
  reader.on('error', assert.fail)
  await within('the end of the changes', once(reader, 'end'))
  assert.deepEqual(ids, ['a', 'b', 'c'])

  const spooled = []
  const spool = db.changesReader.spool({ since: 0 })
  spool.on('batch', (rows) => spooled.push(...rows.map(({ id }) => id)))
  spool.on('error', assert.fail)
  const [last] = await within('the end of the changes', once(spool, 'end'))
  assert.deepEqual(spooled, ['a', 'b', 'c'])
  assert.equal(last, changes.last_seq)
})

it('a live reader sees later writes', async (server) => {
  const db = await newDatabase(server)
  await db.insert({}, 'before')
  const reader = db.changesReader.start({ since: 0, includeDocs: true })
  const rows = []
  let wake = () => {}
  reader.on('change', (row) => {
    rows.push(row)
    wake()
  })
  reader.on('error', assert.fail)
  const seen = async (count) => {
    while (rows.length < count) await within(`change ${count}`, new Promise((resolve) => (wake = resolve)))
  }
  try {
    await seen(1)
    await db.insert({ n: 1 }, 'first')
    await seen(2)
    await db.insert({ n: 2 }, 'second')
    await seen(3)
    assert.deepEqual(rows.map(({ id, doc }) => [id, doc.n]), [
      ['before', undefined],
      ['first', 1],
      ['second', 2]
    ])
  } finally {
    reader.removeAllListeners('error').on('error', () => {}) // errors of the request that stop() aborts
    db.changesReader.stop()
  }
})

it('a view is defined and queried', async (server) => {
  const db = await newDatabase(server)
  const map = (doc) => emit([doc.artist, doc.year], doc.tracks)
  await db.insert({ views: { by_artist: { map, reduce: '_sum' } } }, '_design/albums')
  await db.bulk({
    docs: [
      { _id: 'a', artist: 'Miles', year: 1959, tracks: 5 },
      { _id: 'b', artist: 'Nina', year: 1964, tracks: 7 },
      { _id: 'c', artist: 'Miles', year: 1970, tracks: 6 }
    ]
  })
  const rows = async (query) => (await db.view('albums', 'by_artist', query)).rows
  assert.deepEqual(await rows({ group_level: 1 }), [
    { key: ['Miles'], value: 11 },
    { key: ['Nina'], value: 7 }
  ])
  assert.deepEqual((await rows({ reduce: false, keys: [['Nina', 1964]] })).map(({ id }) => id), ['b'])
  const range = { reduce: false, start_key: ['Miles'], end_key: ['Miles', {}], include_docs: true }
  assert.deepEqual((await rows(range)).map(({ doc }) => doc.year), [1959, 1970])
  assert.deepEqual(await refusal(db.view('albums', 'nothing')), [404, 'not_found', 'missing_named_view'])
})

it('a client without permission gets an error', async (server) => {
  const wrong = connect(server, 'admin:wrong')
  assert.deepEqual(await refusal(wrong.db.list()), [401, 'unauthorized', 'Name or password is incorrect.'])
  const nobody = connect(server, null)
  assert.deepEqual(await refusal(nobody.db.list()), [401, 'unauthorized', 'You are not a server admin.'])
  const name = await server.newDatabase()
  const reason = 'You are not authorized to access this db.'
  assert.deepEqual(await refusal(nobody.db.get(name)), [401, 'unauthorized', reason])
  assert.deepEqual(await refusal(nobody.use(name).insert({}, 'a')), [401, 'unauthorized', reason])
})

it('Basic authentication needs no session', async (server) => {
  const { userCtx, info } = await connect(server).session()
  assert.deepEqual([userCtx, info.authenticated], [{ name: 'admin', roles: ['_admin'] }, 'default'])
  assert.deepEqual((await connect(server, null).session()).userCtx, { name: null, roles: [] })
})
