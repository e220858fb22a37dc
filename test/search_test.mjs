// Full-text search: as CouchDB's, while documents and indexes change.
import assert from 'node:assert/strict'
import { test as anyTest } from 'node:test'
import { onlyEmbedded, runDivan, Server, shareServer, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer()
const test = onlyEmbedded(anyTest)

const DESIGN = {
  indexes: {
    animals: {
      analyzer: 'english',
      index: `function (doc) {
        if (doc.name) index('name', doc.name, { store: true })
        if (doc.text) index('default', doc.text, { store: true })
        if (doc.class) index('class', doc.class, { facet: true, store: true })
        if (doc.legs !== undefined) index('legs', doc.legs, { facet: true })
        if (doc.wild !== undefined) index('wild', doc.wild)
      }`
    }
  }
}
const ANIMALS = [
  { _id: 'aardvark', name: 'Aardvark', class: 'mammal', legs: 4, wild: true, text: 'A nocturnal burrowing mammal that eats ants.' },
  { _id: 'ant', name: 'Ant', class: 'insect', legs: 6, wild: true, text: 'Ants live in colonies and are eaten by aardvarks.' },
  { _id: 'eagle', name: 'Golden eagle', class: 'bird', legs: 2, wild: true, text: 'A bird of prey that hunts hares and foxes.' },
  { _id: 'fox', name: 'Red fox', class: 'mammal', legs: 4, wild: true, text: 'The quick fox hunts in the night.' },
  { _id: 'hen', name: 'Hen', class: 'bird', legs: 2, wild: false, text: 'A hen lays eggs; foxes hunt hens.' },
  { _id: 'snake', name: 'Grass snake', legs: 0, wild: true, text: 'Eats frogs.' }
]

async function load(server, docs = ANIMALS, design = DESIGN) {
  const db = await server.newDatabase()
  await server.client.ok('PUT', `/${db}/_design/d`, design)
  await server.client.ok('POST', `/${db}/_bulk_docs`, { docs })
  const path = `/${db}/_design/d/_search/animals`
  const search = (q, more = {}) => server.client.ok('GET', `${path}?${new URLSearchParams({ q, ...more })}`)
  return { db, path, search }
}
const ids = ({ rows }) => rows.map(({ id }) => id)
const sorted = (result) => ids(result).sort()

it('documents are found by words, phrases, fields, ranges and combinations of these', async (server) => {
  const { search } = await load(server)
  assert.deepEqual(sorted(await search('ants')), ['aardvark', 'ant'])
  assert.deepEqual(sorted(await search('hunting')), ['eagle', 'fox', 'hen'])
  assert.deepEqual(sorted(await search('"quick fox"')), ['fox'])
  assert.deepEqual(sorted(await search('"fox quick"~3')), ['fox'])
  assert.deepEqual(sorted(await search('name:f*')), ['fox'])
  assert.deepEqual(sorted(await search('name:aardwark~')), ['aardvark'])
  assert.deepEqual(sorted(await search('name:/[eh].+/')), ['eagle', 'hen'])
  assert.deepEqual(sorted(await search('legs:[2 TO 4}')), ['eagle', 'hen'])
  assert.deepEqual(sorted(await search('legs:0')), ['snake'])
  assert.deepEqual(sorted(await search('class:mammal AND NOT legs:6')), ['aardvark', 'fox'])
  assert.deepEqual(sorted(await search('wild:false')), ['hen'])
  assert.deepEqual(sorted(await search('*:* NOT class:*')), ['snake'])
  assert.deepEqual(sorted(await search('_id:fox')), ['fox'])
  assert.ok((await server.client.ok('GET', '/')).features.includes('search'))
  const { total_rows: total, rows, bookmark } = await search('class:(bird mammal)', { limit: 1, sort: '"-name<string>"' })
  assert.deepEqual([total, rows[0].id, rows[0].order[0], rows[0].fields], [4, 'fox', 'Red fox', { name: 'Red fox', default: ANIMALS[3].text, class: 'mammal' }])
  const next = await search('class:(bird mammal)', { limit: 5, sort: '"-name<string>"', bookmark })
  assert.deepEqual(ids(next), ['hen', 'eagle', 'aardvark'])
})

it('a search by POST, with all parameters', async (server) => {
  const { path } = await load(server)
  const found = await server.client.ok('POST', path, {
    query: 'hunts', counts: ['class'], ranges: { legs: { two: '[2 TO 2]', more: '[3 TO *]' } }, include_docs: true,
    include_fields: ['name'], highlight_fields: ['default'], highlight_pre_tag: '<b>', highlight_post_tag: '</b>', sort: ['legs', 'name<string>']
  })
  assert.deepEqual(found.rows.map(({ id, fields, highlights, doc }) => [id, fields, highlights, doc.legs]), [
    ['eagle', { name: 'Golden eagle' }, { default: ['A bird of prey that <b>hunts</b> hares and foxes.'] }, 2],
    ['hen', { name: 'Hen' }, { default: ['A hen lays eggs; foxes <b>hunt</b> hens.'] }, 2],
    ['fox', { name: 'Red fox' }, { default: ['The quick fox <b>hunts</b> in the night.'] }, 4]
  ])
  assert.deepEqual([found.counts, found.ranges], [{ class: { bird: 2, mammal: 1 } }, { legs: { two: 2, more: 1 } }])
  const groups = await server.client.ok('POST', path, { q: '*:*', group_field: 'class<string>', group_limit: 2, sort: 'name<string>', limit: 1 })
  assert.equal(groups.total_rows, 6)
  assert.deepEqual(groups.groups.map(({ by, total_rows: total, rows }) => [by, total, ids({ rows })]), [['mammal', 2, ['aardvark']], ['insect', 1, ['ant']]])
  const drilled = await server.client.ok('GET', `${path}?q=*:*&drilldown=["class","mammal","bird"]&drilldown=["class","bird"]`)
  assert.deepEqual(sorted(drilled), ['eagle', 'hen'])
})

it('a search sees what was written before it', async (server) => {
  const { db, path, search } = await load(server)
  for (let n = 0; n < 25; n++) {
    await server.client.ok('PUT', `/${db}/new${n}`, { text: `unique${n} common` })
    assert.deepEqual(ids(await search(`unique${n}`)), [`new${n}`])
  }
  assert.equal((await search('common', { limit: 0 })).total_rows, 25)
  const { _rev: rev } = await server.client.ok('GET', `/${db}/new3`)
  await server.client.ok('DELETE', `/${db}/new3?rev=${rev}`)
  assert.equal((await search('common')).total_rows, 24)
  const { _rev: other } = await server.client.ok('GET', `/${db}/new4`)
  await server.client.ok('PUT', `/${db}/new4`, { _rev: other, text: 'changed' })
  assert.deepEqual([(await search('common')).total_rows, ids(await search('changed'))], [23, ['new4']])
  const { name, search_index: info } = await server.client.ok('GET', path.replace('_search', '_search_info'))
  assert.deepEqual([name, info.doc_count, info.updates_pending], ['_design/d/animals', 30, 0])
  const size = await server.client.ok('GET', path.replace('_search', '_search_disk_size'))
  assert.deepEqual([size.name, typeof size.search_index.disk_size], ['_design/d/animals', 'number'])
})

it('bad requests get a clear error', async (server) => {
  const { db, path } = await load(server)
  const reason = async (query, status = 400) => {
    const response = await server.client.get(`${path}?${query}`)
    assert.equal(response.status, status, JSON.stringify(response.json))
    return response.json
  }
  assert.deepEqual(await reason(''), { error: 'query_parse_error', reason: "Query must include a 'q' or 'query' argument" })
  assert.deepEqual(await reason('q=x%20AND'), { error: 'bad_request', reason: "Cannot parse 'x AND': expected a word, at character 6." })
  assert.deepEqual(await reason('q=x&limit=201'), { error: 'query_parse_error', reason: 'Value for limit is too large, must not exceed 200' })
  assert.deepEqual(await reason('q=x&limit=-1'), { error: 'query_parse_error', reason: 'limit must be greater than or equal to zero' })
  assert.deepEqual(await reason('q=x&stale=update_after'), { error: 'query_parse_error', reason: 'stale only available as stale=ok' })
  assert.match((await reason('q=x&bookmark=nonsense')).reason, /Invalid bookmark/)
  assert.match((await reason('q=*:*&sort="name"')).reason, /cannot sort string field as numeric field/)
  assert.match((await reason('q=x&partition=p')).reason, /not supported on this index/)
  assert.match((await reason('q=%ff')).reason, /UTF-8/)
  const missing = await server.client.get(`/${db}/_design/d/_search/nothing?q=x`)
  assert.deepEqual([missing.status, missing.json], [404, { error: 'not_found', reason: 'nothing not found.' }])
  const put = async (index) => (await server.client.put(`/${db}/_design/bad`, { indexes: { i: index } })).json
  assert.match((await put({ index: 'function (' })).reason, /index function in the 'i' search index/)
  assert.match((await put({ index: 'function (doc) {}', analyzer: 'klingon' })).reason, /Unknown analyzer `klingon`/)
  await server.client.ok('PUT', `/${db}/_design/none`, { indexes: { i: {} } })
  const without = await server.client.get(`/${db}/_design/none/_search/i?q=x`)
  assert.deepEqual([without.status, without.json], [400, { error: 'invalid_design_doc', reason: 'index `i` must have parameter `index`' }])
})

it('partitions are searched one at a time', async (server) => {
  const db = `partitioned-${Date.now()}`
  await server.client.ok('PUT', `/${db}?partitioned=true`)
  await server.client.ok('PUT', `/${db}/_design/d`, DESIGN)
  await server.client.ok('POST', `/${db}/_bulk_docs`, { docs: ANIMALS.map((doc) => ({ ...doc, _id: `${doc.class ?? 'other'}:${doc._id}` })) })
  const path = `/${db}/_design/d/_search/animals`
  assert.deepEqual(ids(await server.client.ok('GET', `${path}?q=hunt&partition=mammal`)), ['mammal:fox'])
  assert.deepEqual(ids(await server.client.ok('GET', `/${db}/_partition/bird/_design/d/_search/animals?q=hunt&sort="name<string>"`)), ['bird:eagle', 'bird:hen'])
  // The default limit is that of partitioned databases, also for an index of the whole database.
  await server.client.ok('PUT', `/${db}/_design/global`, { ...DESIGN, options: { partitioned: false } })
  await server.client.ok('POST', `/${db}/_bulk_docs`, { docs: Array.from({ length: 30 }, (_, n) => ({ _id: `p:${n}`, text: 'more' })) })
  assert.equal((await server.client.ok('GET', `/${db}/_design/global/_search/animals?q=more`)).rows.length, 30)
  const all = await server.client.get(`${path}?q=hunt`)
  assert.deepEqual([all.status, all.json.reason], [400, '`partition` parameter is mandatory for queries to this index.'])
})

it('the old index serves searches that do not wait while a changed one is built', async (server) => {
  const { db, search } = await load(server)
  assert.deepEqual(ids(await search('quick')), ['fox'])
  const { _rev: rev } = await server.client.ok('GET', `/${db}/_design/d`)
  const changed = structuredClone(DESIGN)
  changed.indexes.animals.analyzer = 'keyword'
  changed.autoupdate = false
  await server.client.ok('PUT', `/${db}/_design/d`, { ...changed, _rev: rev })
  assert.deepEqual(ids(await search('quick', { stale: 'ok' })), ['fox'])
  assert.deepEqual(ids(await search('quick')), [])
  assert.deepEqual(ids(await search('"Eats frogs."', { stale: 'ok' })), ['snake'])
  await server.client.ok('POST', `/${db}/_search_cleanup`)
})

it('divan search prints a table', async (server) => {
  const { db } = await load(server, [...ANIMALS, { _id: 'odd\u001b[31m', text: 'an odd\nant', legs: 1 }])
  const run = (...args) => runDivan(['search', db, ...args, '--url', server.url, '--user', server.credentials])
  const lines = async (...args) => (await run(...args)).stdout.trimEnd().split('\n').map((line) => line.trim().split(/\s{2,}/))
  const [head, first, ...rest] = await lines('d/animals', 'ants', '--limit', '2')
  assert.deepEqual(head, ['SCORE', 'DOCUMENT', 'FIELDS'])
  assert.match(first[0], /^\d\.\d\d$/)
  assert.deepEqual(first.slice(1), ['odd\\u001b[31m', 'default: an odd\\nant'])
  assert.deepEqual(rest.at(-1), ['2 of 3 documents'])
  assert.deepEqual((await lines('d/animals', 'name:*', '--sort', '-name<string>')).map(([order]) => order).slice(0, 3), ['ORDER', 'Red fox', 'Hen'])
  const { rows } = JSON.parse((await run('d/animals', 'fox', '--sort', '["legs"]', '--json')).stdout)
  assert.deepEqual(ids({ rows }), ['eagle', 'hen', 'fox'])
  for (const [args, message] of [[['animals', 'x'], /`animals` is not DESIGN\/INDEX/], [['d/animals', 'x AND'], /Cannot parse 'x AND'/], [['d/other', 'x'], /other not found/]]) {
    const { code, stderr } = await run(...args)
    assert.deepEqual([code, message.test(stderr)], [1, true], stderr)
  }
})

test('an index survives kills, and divan verify finds no damage', async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  await server.client.ok('PUT', '/db')
  await server.client.ok('PUT', '/db/_design/d', DESIGN)
  const docs = Array.from({ length: 3_000 }, (_, n) => ({ _id: `d${n}`, text: `word${n % 100} all`, legs: n }))
  await server.client.ok('POST', '/db/_bulk_docs', { docs })
  for (let n = 0; n < 4; n++) {
    const indexed = async () => (await server.client.ok('GET', '/db/_design/d/_search_info/animals')).search_index.doc_count
    const before = await indexed()
    await waitFor('the index to grow', async () => before === docs.length || (await indexed()) > before)
    await server.kill()
    server = await Server.start({ dataDir })
  }
  const found = await server.client.ok('GET', '/db/_design/d/_search/animals?q=word7&limit=200')
  assert.equal(found.total_rows, 30)
  assert.equal((await server.client.ok('GET', '/db/_design/d/_search/animals?q=legs:[10%20TO%2019]%20AND%20all')).total_rows, 10)
  await server.stop()
  const { code, stdout } = await runDivan(['verify', dataDir])
  assert.equal(code, 0, stdout)
})
