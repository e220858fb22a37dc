// Spatial indexes: queries as of Cloudant's geospatial queries, while documents and indexes change.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test as anyTest } from 'node:test'
import { onlyEmbedded, runDivan, Server, shareServer, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer()
const test = onlyEmbedded(anyTest)

const DESIGN = { st_indexes: { places: { index: 'function (doc) { if (doc.geometry) st_index(doc.geometry) }' } } }
const point = (...coordinates) => ({ type: 'Point', coordinates })

// The places of the time-zone database, with their coordinates (zone1970.tab: ±DDMM±DDDMM or with seconds).
function places() {
  const degrees = (text) => {
    const [, sign, whole, minutes, seconds = '0'] = /^([+-])(\d{2,3})(\d{2})(\d{2})?$/.exec(text)
    return (sign === '-' ? -1 : 1) * (Number(whole) + Number(minutes) / 60 + Number(seconds) / 3600)
  }
  return readFileSync('/usr/share/zoneinfo/zone1970.tab', 'utf8').split('\n')
    .filter((line) => line && !line.startsWith('#'))
    .map((line) => line.split('\t'))
    .map(([, at, name]) => {
      const [, latitude, longitude] = /^([+-]\d+)([+-]\d+)$/.exec(at)
      return { _id: name, geometry: point(degrees(longitude), degrees(latitude)) }
    })
}

async function load(server, docs) {
  const db = await server.newDatabase()
  await server.client.ok('PUT', `/${db}/_design/d`, DESIGN)
  await server.client.ok('POST', `/${db}/_bulk_docs`, { docs })
  const query = (params, more = {}) =>
    server.client.ok('GET', `/${db}/_design/d/_geo/places?${new URLSearchParams({ ...params, ...more })}`)
  return { db, query }
}
const ids = ({ rows }) => rows.map(({ id }) => id)

it('the nearest are found in order, also those that are nearer outside of the area, and at a pole', async (server) => {
  const line = (...coordinates) => ({ type: 'MultiPoint', coordinates })
  const near = [{ _id: 'two places', geometry: line([1, 0], [15, 0]) }, { _id: 'one', geometry: point(10.5, 0) }]
  const others = Array.from({ length: 60 }, (_, i) => ({ _id: `other ${i}`, geometry: point(14 + i * 0.01, 1) }))
  const { query } = await load(server, [...near, ...others])
  const area = { bbox: '10,-5,20,5', lat: 0, lon: 0, nearest: true }
  const pages = async (query, params, size, count) => {
    const found = []
    for (let bookmark; found.length < count;) {
      const page = await query(params, { limit: size, ...(bookmark && { bookmark }) })
      if (page.rows.length === 0) break
      found.push(...ids(page))
      bookmark = page.bookmark
    }
    return found
  }
  for (const size of [1, 100]) assert.deepEqual((await pages(query, area, size, 3)).slice(0, 2), ['two places', 'one'])
  const poles = [1, 121, -100].map((longitude) => ({ _id: `pole ${longitude}`, geometry: point(longitude, 90) }))
  const away = poles.flatMap(({ geometry: { coordinates: [longitude] } }) => Array.from({ length: 60 }, (_, i) => ({ _id: `${longitude} ${i}`, geometry: point(longitude + i * 0.01, 10) })))
  const { query: atPole } = await load(server, [...poles, ...away])
  for (const size of [1, 2, 5]) {
    const found = await pages(atPole, { lat: 90, lon: 1, nearest: true }, size, 3)
    assert.deepEqual(found.slice(0, 3).sort(), poles.map(({ _id }) => _id).sort(), `pages of ${size}`)
  }
})

it('a geometry of many parts across the antimeridian is found by each of them', async (server) => {
  const parts = [[[170, 0], [-160, 1]], [[-170, 5], [-165, 5]], ...Array.from({ length: 63 }, (_, i) => [[171 + i * 0.1, 0.5], [171 + i * 0.1, 0.6]])]
  const { query } = await load(server, [{ _id: 'many', geometry: { type: 'MultiLineString', coordinates: parts } }])
  for (const bbox of ['-163,0,-161,2', '-170,4,-165,6', '170,-1,171,1']) assert.deepEqual(ids(await query({ bbox })), ['many'], bbox)
})

it('places of the time-zone database are found by boxes, circles, polygons and distance', async (server) => {
  const all = places()
  const { db, query } = await load(server, all)
  const alps = ids(await query({ bbox: '5,43,17,49' })).sort()
  const expected = all.filter(({ geometry: { coordinates: [lon, lat] } }) => lon >= 5 && lon <= 17 && lat >= 43 && lat <= 49)
  assert.deepEqual(alps, expected.map(({ _id }) => _id).sort())
  assert.ok(alps.includes('Europe/Zurich') && alps.includes('Europe/Vienna'), alps)
  const near = await query({ lat: 47.37, lon: 8.55, nearest: true, limit: 3 })
  assert.equal(near.rows[0].id, 'Europe/Zurich')
  assert.deepEqual(near.rows.map(({ distance }) => distance), near.rows.map(({ distance }) => distance).sort((a, b) => a - b))
  assert.ok(near.rows[0].distance < 5_000, near.rows[0].distance)
  assert.deepEqual(ids(await query({ lat: 47.37, lon: 8.55, radius: 10_000 })), ['Europe/Zurich'])
  assert.deepEqual(ids(await query({ lat: 47.37, lon: 8.55, rangex: 10_000, rangey: 9_000 })), ['Europe/Zurich'])
  // Across the antimeridian, from Fiji to Samoa.
  const pacific = ids(await query({ bbox: '175,-22,-170,-12' }))
  assert.ok(pacific.includes('Pacific/Fiji') && pacific.includes('Pacific/Apia'), pacific)
  assert.ok(!pacific.includes('Europe/London'))
  const polygon = 'POLYGON((175 -22, -170 -22, -170 -12, 175 -12, 175 -22))'
  assert.deepEqual(ids(await query({ g: polygon, relation: 'contains' })).sort(), pacific.sort())
  const body = { g: { type: 'Polygon', coordinates: [[[175, -22], [-170, -22], [-170, -12], [175, -12], [175, -22]]] }, relation: 'contains' }
  assert.deepEqual(ids(await server.client.ok('POST', `/${db}/_design/d/_geo/places`, body)).sort(), pacific.sort())
  const { geo_index: info, name, updates_pending: pending } = await server.client.ok('GET', `/${db}/_design/d/_geo_info/places`)
  assert.deepEqual([name, info.doc_count, pending], ['_design/d/places', all.length, 0])
})

it('pages continue at a bookmark, while documents are written', async (server) => {
  const docs = Array.from({ length: 95 }, (_, n) => ({ _id: `p${n}`, geometry: point(n / 10, n / 20) }))
  const { db, query } = await load(server, docs)
  for (const params of [{ bbox: '-1,-1,20,20' }, { lat: 0, lon: 0, nearest: true }]) {
    const found = []
    let bookmark
    for (;;) {
      const page = await query(params, bookmark ? { bookmark, limit: 10 } : { limit: 10 })
      if (page.rows.length === 0) {
        assert.equal(page.bookmark, bookmark)
        break
      }
      found.push(...ids(page))
      bookmark = page.bookmark
      await server.client.ok('PUT', `/${db}/other-${found.length}-${params.lat}`, { geometry: point(-100, 40) })
    }
    const mine = found.filter((id) => id.startsWith('p'))
    assert.equal(new Set(mine).size, mine.length)
    assert.deepEqual([...mine].sort(), docs.map(({ _id }) => _id).sort())
  }
})

it('results have documents, revisions and forms', async (server) => {
  const { db, query } = await load(server, [{ _id: 'a', geometry: { type: 'Feature', properties: {}, geometry: point(1, 2) }, n: 1 }])
  const { _rev: rev } = await server.client.ok('GET', `/${db}/a`)
  const { rows } = await query({ bbox: '0,0,3,3', include_docs: true })
  assert.deepEqual(rows.map(({ id, rev, geometry }) => ({ id, rev, geometry })), [{ id: 'a', rev, geometry: point(1, 2) }])
  assert.equal(rows[0].doc.n, 1)
  const collection = await query({ bbox: '0,0,3,3', format: 'geojson' })
  assert.equal(collection.type, 'FeatureCollection')
  assert.deepEqual(collection.features, [{ _id: 'a', _rev: rev, type: 'Feature', properties: {}, geometry: point(1, 2) }])
  // A query waits for what was written before it.
  await server.client.ok('PUT', `/${db}/b`, { geometry: point(2, 2) })
  assert.deepEqual(ids(await query({ bbox: '0,0,3,3' })).sort(), ['a', 'b'])
})

it('divan near prints a table', async (server) => {
  const { db } = await load(server, [
    { _id: 'zurich', geometry: point(8.55, 47.37) },
    { _id: 'sydney\u001b[31m', geometry: { type: 'LineString', coordinates: [[151.2, -33.9], [151.3, -33.9]] } }
  ])
  await server.client.ok('GET', `/${db}/_design/d/_geo/places?bbox=0,0,1,1`)
  const run = (...args) => runDivan(['near', db, ...args, '--url', server.url, '--user', server.credentials])
  const lines = async (...args) => (await run(...args)).stdout.trimEnd().split('\n').map((line) => line.trim().split(/\s{2,}/))
  const [head, first, second] = await lines('d/places', '--at', '47.37,8.56')
  assert.deepEqual(head, ['DISTANCE', 'DOCUMENT', 'GEOMETRY'])
  assert.deepEqual(first, ['755 m', 'zurich', 'Point 8.55 47.37'])
  assert.match(second[0], /^165\d\d\.\d km$/)
  assert.deepEqual(second.slice(1), ['sydney\\u001b[31m', 'LineString'])
  assert.equal((await lines('d/places', '--at=-33.9,151.25', '--radius', '1000')).at(1)[0], '0 m')
  const { rows } = JSON.parse((await run('d/places', '--at', '47.37,8.55', '--limit', '1', '--json')).stdout)
  assert.deepEqual(rows.map(({ id }) => id), ['zurich'])
  for (const [args, message] of [
    [['places', '--at', '1,2'], /`places` is not DESIGN\/INDEX/],
    [['d/places', '--at', '1'], /`1` is not LATITUDE,LONGITUDE/],
    [['d/places', '--at', '91,0'], /latitude 91 is not from -90 to 90/],
    [['d/other', '--at', '1,2'], /missing_named_index/]
  ]) {
    const { code, stderr } = await run(...args)
    assert.deepEqual([code, message.test(stderr)], [1, true], stderr)
  }
})

it('what is left out is counted, and documents are counted for each index', async (server) => {
  const db = await server.newDatabase()
  await server.client.ok('PUT', `/${db}/_design/d`, {
    st_indexes: { a: DESIGN.st_indexes.places, b: { index: 'function (doc) { if (doc.other) st_index(doc.other) }' } }
  })
  await server.client.ok('POST', `/${db}/_bulk_docs`, {
    docs: [{ geometry: point(1, 2) }, { geometry: point(3, 4), other: point(5, 6) }, { geometry: point(300, 4) }]
  })
  await server.client.ok('GET', `/${db}/_design/d/_geo/a?bbox=0,0,1,1`)
  const info = (index) => server.client.ok('GET', `/${db}/_design/d/_geo_info/${index}`)
  assert.deepEqual([(await info('a')).geo_index.doc_count, (await info('b')).geo_index.doc_count], [2, 1])
  assert.equal((await info('a')).left_out.documents, 1)
})

it('a changed definition is built beside the old one, which serves queries that do not wait', async (server) => {
  const { db, query } = await load(server, [{ _id: 'a', geometry: point(1, 1) }])
  assert.deepEqual(ids(await query({ bbox: '0,0,2,2' })), ['a'])
  const { _rev: rev } = await server.client.ok('GET', `/${db}/_design/d`)
  const slow = `function (doc) { var end = Date.now() + 3000; while (Date.now() < end) {} if (doc.geometry) st_index({ type: 'Point', coordinates: [50, 50] }) }`
  await server.client.ok('PUT', `/${db}/_design/d`, { _rev: rev, st_indexes: { places: { index: slow } } })
  assert.deepEqual(ids(await query({ bbox: '0,0,2,2' }, { update: 'false' })), ['a'])
  assert.deepEqual(ids(await query({ bbox: '49,49,51,51' })), ['a'])
  assert.deepEqual(ids(await query({ bbox: '0,0,2,2' }, { update: 'false' })), [])
})

it('autoupdate switches off the builds of spatial indexes alone', async (server) => {
  const db = await server.newDatabase()
  const views = { v: { map: 'function (doc) { emit(doc._id) }' } }
  await server.client.ok('PUT', `/${db}/_design/d`, { ...DESIGN, views, autoupdate: { st_indexes: false } })
  await server.client.ok('PUT', `/${db}/a`, { geometry: point(1, 1) })
  await waitFor('ken to build the view', async () =>
    (await server.client.ok('GET', `/${db}/_design/d/_view/v?update=false`)).rows.length === 1)
  const path = `/${db}/_design/d/_geo/places?bbox=0,0,2,2`
  assert.deepEqual(ids(await server.client.ok('GET', `${path}&update=false`)), [])
  assert.deepEqual(ids(await server.client.ok('GET', path)), ['a'])
})

it('a partition has no spatial index of its own', async (server) => {
  const db = `${await server.newDatabase()}-parts`
  await server.client.ok('PUT', `/${db}?partitioned=true`)
  await server.client.ok('PUT', `/${db}/_design/d`, { ...DESIGN, options: { partitioned: false } })
  await server.client.ok('PUT', `/${db}/x:1`, { geometry: point(1, 2) })
  assert.equal((await server.client.ok('GET', `/${db}/_design/d/_geo/places?bbox=0,0,3,3`)).rows.length, 1)
  const refused = await server.client.get(`/${db}/_partition/x/_design/d/_geo/places?bbox=0,0,3,3`)
  assert.deepEqual([refused.status, refused.json.error], [400, 'query_parse_error'])
})

it('bad input is refused, and what is wrong is said', async (server) => {
  const { db } = await load(server, [])
  const reason = async (params, status = 400) => {
    const found = await server.client.get(`/${db}/_design/d/_geo/places?${new URLSearchParams(params)}`)
    assert.equal(found.status, status, JSON.stringify(found.json))
    return found.json.reason
  }
  assert.match(await reason({}), /One of `bbox`, `g`, `radius`/)
  assert.match(await reason({ bbox: '1,2,3' }), /four numbers/)
  assert.match(await reason({ bbox: '1,2,3,400' }), /latitude 400/)
  assert.match(await reason({ g: 'POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))' }), /Self-intersection at 1 1/)
  assert.match(await reason({ g: 'POLYGON((0 0, 1 1, 1 0, 0 1))' }), /do not form a closed linestring/)
  assert.match(await reason({ bbox: '0,0,1,1', limit: 1000 }), /from 0 to 200/)
  assert.match(await reason({ bbox: '0,0,1,1', relation: 'beside' }), /Expected contains/)
  assert.match(await reason({ bbox: '0,0,1,1', bookmark: 'AAAA' }), /Invalid bookmark/)
  assert.equal((await server.client.get(`/${db}/_design/d/_geo/none?bbox=0,0,1,1`)).status, 404)
  assert.equal((await server.client.get(`/${db}/_design/none/_geo/places?bbox=0,0,1,1`)).status, 404)
  const design = (st_indexes) => server.client.put(`/${db}/_design/e`, { st_indexes })
  assert.equal((await design({ a: { index: 'function (' } })).status, 400)
  assert.equal((await design({ a: { index: 1 } })).status, 400)
  assert.equal((await design({ a: {} })).status, 400)
  assert.equal((await design([])).status, 400)
})

test('ken builds the index, a killed server continues, and verify finds nothing', async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  await server.client.ok('PUT', '/db')
  await server.client.ok('PUT', '/db/_design/d', DESIGN)
  const docs = (from) => Array.from({ length: 1000 }, (_, n) => ({ _id: `p${from + n}`, geometry: point((n % 360) - 180, (from / 100) % 80) }))
  for (let from = 0; from < 5000; from += 1000) await server.client.ok('POST', '/db/_bulk_docs', { docs: docs(from) })
  await server.kill()
  server = await Server.start({ dataDir })
  await waitFor('ken to build the index', async () =>
    (await server.client.ok('GET', '/db/_design/d/_geo_info/places')).geo_index.doc_count === 5000)
  const { rows } = await server.client.ok('GET', '/db/_design/d/_geo/places?bbox=-180,-1,-179.5,1&update=false&limit=200')
  assert.equal(rows.length, 3)
  await server.client.ok('POST', '/db/_geo_cleanup')
  await server.stop()
  const { code, stdout } = await runDivan(['verify', dataDir])
  assert.equal(code, 0, stdout)
})
