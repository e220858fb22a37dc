// Mango with CouchDB's client nano: queries of many documents, while these and the indexes change.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test as anyTest } from 'node:test'
import { onlyEmbedded, runDivan, Server, shareServer, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const Nano = createRequire(import.meta.url)('nano')
const it = shareServer()
const test = onlyEmbedded(anyTest)

const connect = (server) => Nano(server.url.replace('http://', `http://${server.credentials}@`))

async function load(server, docs) {
  const db = connect(server).db.use(await server.newDatabase())
  for (let i = 0; i < docs.length; i += 2000) await db.bulk({ docs: docs.slice(i, i + 2000) })
  return db
}

const people = (count) =>
  Array.from({ length: count }, (_, n) => ({ _id: `p${String(n).padStart(6, '0')}`, age: n % 90, city: { name: `c${n % 7}` }, n }))

it('nano creates indexes and finds documents', async (server) => {
  const db = await load(server, people(200))
  const created = await db.createIndex({ index: { fields: ['city.name', 'age'] }, ddoc: 'by', name: 'city-age' })
  assert.deepEqual(created, { result: 'created', id: '_design/by', name: 'city-age' })
  const { docs } = await db.find({
    selector: { 'city.name': 'c3', age: { $gte: 80 } },
    sort: [{ 'city.name': 'asc' }, { age: 'asc' }],
    fields: ['_id', 'age']
  })
  const expected = people(200)
    .filter((one) => one.city.name === 'c3' && one.age >= 80)
    .sort((a, b) => a.age - b.age || (a._id < b._id ? -1 : 1))
    .map(({ _id, age }) => ({ _id, age }))
  assert.deepEqual(docs, expected)
  assert.ok(docs.length > 1)
})

it('a result of many pages has each document once', async (server) => {
  const all = people(12_000)
  const db = await load(server, all)
  const ids = (found) => found.docs.map((doc) => doc._id)
  const scanned = await db.find({ selector: { n: { $gte: 0 } }, limit: 20_000 })
  assert.deepEqual(ids(scanned), all.map((one) => one._id))
  await db.createIndex({ index: { fields: ['n'] } })
  const indexed = await db.find({ selector: { n: { $gte: 0 } }, sort: [{ n: 'desc' }], limit: 20_000 })
  assert.deepEqual(ids(indexed), all.map((one) => one._id).reverse())
  const paged = []
  let bookmark
  do {
    const page = await db.find({ selector: { n: { $gte: 0 } }, limit: 5_000, bookmark })
    paged.push(...ids(page))
    bookmark = page.docs.length === 5_000 ? page.bookmark : undefined
  } while (bookmark)
  assert.deepEqual(paged, all.map((one) => one._id))
})

it('a bookmark continues although its document has been deleted', async (server) => {
  const db = await load(server, people(5))
  await db.createIndex({ index: { fields: ['n'] } })
  const first = await db.find({ selector: { n: { $gte: 0 } }, limit: 2 })
  await db.destroy(first.docs[1]._id, first.docs[1]._rev)
  const rest = await db.find({ selector: { n: { $gte: 0 } }, bookmark: first.bookmark })
  assert.deepEqual(rest.docs.map((doc) => doc.n), [2, 3, 4])
})

it('indexes build themselves', async (server) => {
  const db = await load(server, people(300))
  await db.createIndex({ index: { fields: ['age'] }, ddoc: 'by', name: 'age' })
  await waitFor('the index to be built', async () => {
    const { docs } = await db.find({ selector: { age: 5 }, update: false })
    return docs.length === 4
  })
})

it('a query sees all writes before it, while others write', async (server) => {
  const db = await load(server, people(100))
  await db.createIndex({ index: { fields: ['k'] } })
  const writer = async (name) => {
    for (let i = 0; i < 30; ++i) {
      await db.insert({ k: `${name}-${i}` })
      const { docs } = await db.find({ selector: { k: `${name}-${i}` } })
      assert.equal(docs.length, 1)
    }
  }
  await Promise.all(['a', 'b', 'c'].map(writer))
})

it('indexes that are added to one design document at the same time are all created', async (server) => {
  const db = await load(server, [])
  const names = Array.from({ length: 8 }, (_, i) => `i${i}`)
  const results = await Promise.all(names.map((name) => db.createIndex({ index: { fields: [name] }, ddoc: 'd', name })))
  assert.ok(results.every(({ result }) => result === 'created'))
  const { indexes } = await server.client.ok('GET', `/${db.config.db}/_index`)
  assert.deepEqual(indexes.slice(1).map(({ name }) => name), names)
})

it('a selector that takes too long for a document is refused, also after many others', async (server) => {
  const db = await load(server, [...people(100), { _id: 'z', text: 'x'.repeat(1_000_000) }])
  const $or = Array.from({ length: 40 }, (_, i) => ({ text: `y${i}` }))
  await assert.rejects(db.find({ selector: { $or } }), { statusCode: 413, error: 'selector_too_expensive' })
})

test('an index that is added to a design document does not hide the results of its others', async () => {
  const dataDir = temporaryDirectory()
  const builder = await Server.start({ dataDir })
  const first = await load(builder, people(50))
  await first.createIndex({ index: { fields: ['n'] }, ddoc: 'd', name: 'n' })
  assert.equal((await first.find({ selector: { n: { $lt: 10 } } })).docs.length, 10)
  await builder.stop()
  // Nothing builds the new indexes.
  const server = await Server.start({ dataDir, args: ['--no-background'] })
  const db = connect(server).db.use(first.config.db)
  await db.createIndex({ index: { fields: ['age'] }, ddoc: 'd', name: 'age' })
  const found = async (selector) => (await db.find({ selector, update: false })).docs.length
  assert.equal(await found({ n: { $lt: 10 } }), 10)
  assert.equal(await found({ age: { $lt: 10 } }), 0)
  await server.stop()
})

test('verify knows the rows of these indexes', async () => {
  const dataDir = temporaryDirectory()
  const server = await Server.start({ dataDir })
  const db = await load(server, people(500))
  await db.createIndex({ index: { fields: ['age', 'n'], partial_filter_selector: { n: { $lt: 400 } } }, ddoc: 'd', name: 'i' })
  const { docs } = await db.find({ selector: { age: 3, n: { $gte: 0 } }, use_index: ['d', 'i'] })
  assert.deepEqual(docs.map((doc) => doc.n), [3, 93, 183, 273, 363])
  await server.stop()
  const { code, stdout } = await runDivan(['verify', dataDir, '--quiet', '--json'])
  assert.deepEqual([code, JSON.parse(stdout).ok], [0, true])
})

const films = [
  { _id: 'kane', title: 'Citizen Kane', year: 1941, cast: ['Orson Welles', 'Joseph Cotten'] },
  { _id: 'vertigo', title: 'Vertigo', year: 1958, cast: ['James Stewart', 'Kim Novak'], color: true },
  { _id: 'stranger', title: 'The Stranger', year: 1946, cast: ['Orson Welles'] },
  { _id: 'touch', title: 'Touch of Evil', year: 1958, cast: ['Charlton Heston', 'Orson Welles'], color: false },
  { _id: 'untitled', year: null }
]

it('a text index finds words and fields, in any combination', async (server) => {
  const db = await load(server, films)
  const ids = async (query) => (await db.find(query)).docs.map((doc) => doc._id)
  await assert.rejects(db.find({ selector: { $text: 'Welles' } }), { statusCode: 400, error: 'no_usable_index' })
  assert.deepEqual(await db.createIndex({ index: {}, type: 'text', ddoc: 'all', name: 'text' }), {
    result: 'created',
    id: '_design/all',
    name: 'text'
  })
  assert.deepEqual((await ids({ selector: { $text: 'orson welles' } })).sort(), ['kane', 'stranger', 'touch'])
  assert.deepEqual(await ids({ selector: { $text: 'Welles', year: 1946 } }), ['stranger'])
  assert.deepEqual(await ids({ selector: { $text: 'Welles', year: { $gt: 0 } }, sort: [{ year: 'desc' }] }), ['touch', 'stranger', 'kane'])
  assert.deepEqual(await ids({ selector: { cast: { $elemMatch: { $eq: 'Kim Novak' } } } }), ['vertigo'])
  assert.deepEqual(await ids({ selector: { color: { $exists: true } } }), ['vertigo', 'touch'])
  assert.deepEqual(await ids({ selector: { color: { $exists: false } } }), ['kane', 'stranger', 'untitled'])
  assert.deepEqual((await ids({ selector: { $or: [{ year: null }, { $text: 'vertigo' }] } })).sort(), ['untitled', 'vertigo'])
  await db.insert({ _id: 'trial', title: 'The Trial', cast: ['Anthony Perkins', 'Orson Welles'] })
  assert.equal((await ids({ selector: { $text: 'welles' } })).length, 4)
})

it('text indexes are listed, explained, searched and deleted', async (server) => {
  const db = await load(server, films)
  const index = { fields: [{ name: 'title', type: 'string' }, { name: 'year', type: 'number' }], default_analyzer: 'keyword' }
  await db.createIndex({ index, type: 'text', ddoc: 'films', name: 'some' })
  const { indexes } = (await server.client.get(`/${db.config.db}/_index`)).json
  assert.deepEqual(indexes[1], {
    ddoc: '_design/films',
    name: 'some',
    type: 'text',
    partitioned: false,
    def: {
      default_analyzer: 'keyword',
      default_field: {},
      selector: {},
      fields: [{ title: 'string' }, { year: 'number' }],
      index_array_lengths: true
    }
  })
  const explain = (selector, more) =>
    server.client.post(`/${db.config.db}/_explain`, { selector, ...more }).then(({ json }) => json)
  const plan = await explain({ $text: 'kane' }, { sort: ['year:number'] })
  assert.deepEqual([plan.index.name, plan.query, plan.sort], ['some', '$default:"kane"', ['year_3anumber<number>']])
  assert.equal((await explain({ cast: 'x' })).index.name, '_all_docs')
  const found = await server.client.get(`/${db.config.db}/_design/films/_search/some?q=title_3astring:Vertigo`)
  assert.deepEqual(found.json.rows.map((row) => row.id), ['vertigo'])
  assert.equal((await server.client.delete(`/${db.config.db}/_index/films/json/some`)).status, 404)
  assert.equal((await server.client.delete(`/${db.config.db}/_index/films/text/some`)).status, 200)
  assert.equal((await server.client.get(`/${db.config.db}/_design/films`)).status, 404)
})

it('a result of a text index that is larger than a page has each document once', async (server) => {
  const many = Array.from({ length: 3_000 }, (_, n) => ({ _id: `d${n}`, text: 'word', n, padding: 'x'.repeat(1000) }))
  const db = await load(server, many)
  await db.createIndex({ index: { fields: [{ name: 'text', type: 'string' }, { name: 'n', type: 'number' }] }, type: 'text' })
  const { docs } = await db.find({ selector: { $text: 'word', n: { $gte: 5 } }, sort: ['n'], limit: 5000 })
  assert.deepEqual(docs.map((doc) => doc.n), many.slice(5).map((doc) => doc.n))
})

it('a text index of a partitioned database finds the documents of a partition', async (server) => {
  const name = `${await server.newDatabase()}p`
  await server.client.ok('PUT', `/${name}?partitioned=true`)
  const db = connect(server).db.use(name)
  await db.bulk({ docs: ['a', 'b'].flatMap((one) => [1, 2].map((n) => ({ _id: `${one}:${n}`, text: 'word', n }))) })
  await db.createIndex({ index: {}, type: 'text', ddoc: 't' })
  const found = (await server.client.post(`/${name}/_partition/b/_find`, { selector: { $text: 'word', n: { $lt: 2 } } })).json
  assert.deepEqual(found.docs.map((doc) => doc._id), ['b:1'])
  const { status, json } = await server.client.post(`/${name}/_find`, { selector: { $text: 'word' } })
  assert.deepEqual([status, json.error], [400, 'no_usable_index'])
})
