// Validation, filters and update functions: many writers, slow functions, functions that change, shared work.
import assert from 'node:assert/strict'
import nano from 'nano'
import { shareServer, testWithServer } from './support/server.mjs'

const it = shareServer({ env: { DIVAN_CHTTPD_AUTH_ITERATIONS: '10', DIVAN_COUCHDB_OS_PROCESS_TIMEOUT: '1000' } })

const ENDLESS = 'while (true) {}'
const validation = (body) => ({ validate_doc_update: `function (doc, old, user) { ${body} }` })
const put = (server, target, body = {}) => server.client.ok('PUT', target, body)

async function answer(client, method, target, body) {
  const { status, json } = await client.request(method, target, { body })
  return status >= 400 ? `${status} ${json.reason}` : status
}

it('every document of many writers is validated, for its own user', async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/_security`, { members: { names: [], roles: ['writer'] } })
  const rule = "if (user.name !== doc.owner && user.roles.indexOf('_admin') < 0) throw {forbidden: user.name + ' is not ' + doc.owner}"
  await put(server, `/${db}/_design/v`, validation(rule))
  const clients = {}
  for (const name of ['ann', 'bob', 'cleo']) {
    await put(server, `/_users/org.couchdb.user:${name}`, { name, type: 'user', roles: ['writer'], password: 'pw' })
    clients[name] = server.as(`${name}:pw`)
  }
  const names = Object.keys(clients)
  const writes = Array.from({ length: 150 }, async (_, i) => {
    const [name, owner] = [names[i % 3], names[(i * 7) % 5 % 3]]
    const wanted = name === owner ? 201 : `403 ${name} is not ${owner}`
    assert.equal(await answer(clients[name], 'PUT', `/${db}/d${i}`, { owner }), wanted)
    return name === owner
  })
  const written = (await Promise.all(writes)).filter(Boolean).length
  assert.ok(written > 0 && written < 150)
  assert.equal((await server.client.ok('GET', `/${db}`)).doc_count, written + 1)
})

// Each answered write was accepted by a function that was the database's at that moment.
it('a change of the function applies to all writes after it', async (server) => {
  const db = await server.newDatabase()
  let { rev } = await put(server, `/${db}/_design/v`, validation('if (doc.round < 0) throw {forbidden: "old"}'))
  let stop = false
  let round = 0 // the function refuses documents of earlier rounds
  const late = []
  const writers = Array.from({ length: 8 }, async (_, w) => {
    for (let i = 0; !stop; ++i) {
      const before = round
      const { status } = await server.client.request('PUT', `/${db}/${w}-${i}`, { body: { round: before - 1 } })
      if (status === 201 && before > 0) late.push([w, i])
    }
  })
  for (let next = 1; next <= 20; ++next) {
    const design = { ...validation(`if (doc.round < ${next}) throw {forbidden: "old"}`), _rev: rev }
    rev = (await put(server, `/${db}/_design/v`, design)).rev
    round = next
  }
  stop = true
  await Promise.all(writers)
  assert.deepEqual(late, [])
})

const EVIL = 'if (doc.evil) throw {forbidden: "evil"}'

async function evilDocuments(server, db) {
  const { results } = await server.client.ok('GET', `/${db}/_changes?style=all_docs&include_docs=true`)
  const open = results.map(async ({ id, changes }) =>
    Promise.all(changes.map(({ rev }) => server.client.ok('GET', `/${db}/${id}?rev=${rev}`)))
  )
  return (await Promise.all(open)).flat().filter(({ evil }) => evil).map(({ _id }) => _id)
}

// The second edit is a conflict until the first one is written.
it('a second edit of a document in a request is validated, too', async (server) => {
  const [db, other] = [await server.newDatabase(), await server.newDatabase()]
  await put(server, `/${db}/_design/v`, validation(EVIL))
  const { rev } = await put(server, `/${db}/x`)
  const deleted = await server.client.ok('POST', `/${db}/_bulk_docs`, { docs: [{ _id: 'x', _rev: rev, _deleted: true }, { _id: 'x', evil: 1 }] })
  assert.deepEqual(deleted.map(({ error }) => error), [undefined, 'forbidden'])
  const known = await put(server, `/${other}/y`, { ok: 1 }) // revisions can be predicted
  const docs = [{ _id: 'y', ok: 1 }, { _id: 'y', _rev: known.rev, evil: 1 }, { _id: 'y', _rev: known.rev, n: 1 }]
  const edits = await server.client.ok('POST', `/${db}/_bulk_docs`, { docs })
  assert.deepEqual(edits.map(({ error }) => error), [undefined, 'forbidden', undefined])
  const many = Array.from({ length: 50 }, (_, n) => ({ _id: 'z', _rev: known.rev, n }))
  const conflicts = await server.client.ok('POST', `/${db}/_bulk_docs`, { docs: [{ _id: 'z', ok: 1 }, ...many] })
  assert.equal(conflicts.filter(({ ok }) => ok).length, 2)
  assert.deepEqual(await evilDocuments(server, db), [])
})

it('an update that is sent before its document exists is validated', async (server) => {
  const [db, other] = [await server.newDatabase(), await server.newDatabase()]
  await put(server, `/${db}/_design/v`, validation(EVIL))
  const { rev } = await put(server, `/${other}/x`, { ok: 1 })
  for (let n = 0; n < 60; ++n) {
    const evil = { _rev: rev, evil: 1 }
    const first = server.client.request('PUT', `/${db}/d${n}`, { body: { ok: 1 } })
    const [, one, two] = await Promise.all([
      first,
      server.client.request('PUT', `/${db}/d${n}`, { body: evil }),
      server.client.request('POST', '/_transact', { body: { docs: { [db]: [{ _id: `d${n}`, ...evil }] } } })
    ])
    for (const { status } of [one, two]) assert.ok(status === 409 || status === 403, `${status}`)
  }
  assert.deepEqual(await evilDocuments(server, db), [])
})

it('replicated revisions that replace each other are validated', async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/_design/v`, validation(EVIL))
  await server.client.ok('PUT', `/${db}/_revs_limit`, '1')
  const { rev } = await put(server, `/${db}/x`)
  const [, id] = rev.split('-')
  const docs = [
    { _id: 'x', _revisions: { start: 2, ids: ['bb', id] } },
    { _id: 'x', _rev: rev, evil: 1 },
    { _id: 'x', _revisions: { start: 3, ids: ['cc', 'bb', id] }, evil: 1 }
  ]
  const refused = await server.client.ok('POST', `/${db}/_bulk_docs`, { new_edits: false, docs })
  assert.deepEqual(refused.map(({ rev }) => rev), ['3-cc'])
  assert.deepEqual(await evilDocuments(server, db), [])
})

it("a user's slow documents neither refuse nor block those of others", async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/_security`, { members: { names: ['slow'], roles: [] } })
  await put(server, '/_users/org.couchdb.user:slow', { name: 'slow', type: 'user', roles: [], password: 'pw' })
  const design = validation('if (doc.memory) { const a = []; for (;;) a.push(new Array(100000).fill(doc.memory)); } if (doc.bad) throw {forbidden: "bad"}')
  const { rev } = await put(server, `/${db}/_design/v`, design)
  const docs = Array.from({ length: 20 }, (_, n) => ({ _id: `slow${n}`, memory: n + 1 }))
  const slow = server.as('slow:pw').request('POST', `/${db}/_bulk_docs`, { body: { docs } })
  const good = Array.from({ length: 10 }, (_, n) => put(server, `/${db}/good${n}`))
  await Promise.all(good)
  const { json } = await slow
  assert.ok(json.every(({ error }) => error === 'validation_function_failed'))
  await put(server, `/${db}/_design/v`, { ...validation(''), _rev: rev })
  await put(server, `/${db}/x`, { bad: 1 })
})

it('a large request is validated in pages, each document against the one that it replaces', async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/_design/v`, validation('if (old && old.n >= doc.n) throw {forbidden: "" + old.n}'))
  const ids = Array.from({ length: 3000 }, (_, n) => `d${n}`)
  const text = 'x'.repeat(2000)
  const first = await server.client.ok('POST', `/${db}/_bulk_docs`, { docs: ids.map((_id, n) => ({ _id, n, text })) })
  assert.ok(first.every(({ ok }) => ok))
  const docs = first.map(({ id, rev }, n) => ({ _id: id, _rev: rev, n: n % 2 === 0 ? n : n + 1 }))
  const second = await server.client.ok('POST', `/${db}/_bulk_docs`, { docs })
  second.forEach((result, n) => assert.equal(result.reason ?? 'ok', n % 2 === 0 ? `${n}` : 'ok'))
})

testWithServer('slow functions delay the writes of their own databases only', {
  env: { DIVAN_CHTTPD_REQUEST_THREADS: '4', DIVAN_COUCHDB_OS_PROCESS_TIMEOUT: '300' }
}, async (server) => {
  // More than there are threads for functions.
  const slow = Array.from({ length: 20 }, (_, n) => `slow${n}`)
  for (const db of slow) {
    await put(server, `/${db}`)
    await put(server, `/${db}/_design/v`, { ...validation(ENDLESS), filters: { f: `function () { ${ENDLESS} }` } })
  }
  await put(server, '/good')
  await put(server, '/good/_design/v', { ...validation('if (doc.bad) throw {forbidden: "bad"}'), filters: { f: 'function (doc) { return doc.n }' } })
  const waiting = [
    ...slow.map((db) => server.client.request('PUT', `/${db}/d`, { body: {} })),
    ...slow.slice(0, 4).map((db) => server.client.request('GET', `/${db}/_changes?filter=v/f`))
  ]
  let over = 0
  for (const request of waiting) request.then(() => ++over)
  for (let n = 0; n < 20; ++n) await put(server, `/good/d${n}`, { n })
  assert.equal(await answer(server.client, 'PUT', '/good/x', { bad: 1 }), '403 bad')
  const { results } = await server.client.ok('GET', '/good/_changes?filter=v/f')
  assert.equal(results.length, 19)
  const selected = await server.client.ok('POST', '/good/_changes?filter=_selector', { selector: { n: { $gt: 10 } } })
  assert.equal(selected.results.length, 9)
  assert.ok(over < waiting.length, 'the slow functions were not slow')
  for (const { status, json } of await Promise.all(waiting)) {
    assert.equal(status, 500)
    assert.match(json.reason, /exceeded the time limit/)
  }
})

testWithServer('feeds with equal filters share the calls', {}, async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/_design/d`, { filters: { f: 'function (doc, req) { return doc.n > req.query.min }' } })
  const open = (min) => server.client.open(`/${db}/_changes?feed=continuous&since=now&heartbeat=10&filter=d/f&min=${min}`)
  const feeds = await Promise.all(Array.from({ length: 100 }, () => open(1)))
  const other = await open(5)
  const ids = async () => [...new Set((await Promise.all(feeds.map((feed) => feed.row()))).map(({ id }) => id))]
  await put(server, `/${db}/first`, { n: 9 })
  assert.deepEqual(await ids(), ['first'])
  assert.equal((await other.row()).id, 'first')
  const reads = await server.metric('divan_feed_store_reads_total')
  await put(server, `/${db}/a`, { n: 1 })
  await put(server, `/${db}/b`, { n: 2 })
  assert.deepEqual(await ids(), ['b'])
  // Not one for each feed; several for each write, if the function is tried out.
  assert.ok((await server.metric('divan_feed_store_reads_total')) <= reads + 12)
  await put(server, `/${db}/c`, { n: 6 })
  assert.equal((await other.row()).id, 'c')
  for (const feed of [...feeds, other]) feed.close()
})

it('a filtered feed does not repeat or miss rows', async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/_design/d`, { filters: { odd: 'function (doc) { return doc.n % 2 }' } })
  const feed = await server.client.open(`/${db}/_changes?feed=continuous&heartbeat=60000&filter=d/odd&include_docs=true`)
  const writers = Array.from({ length: 4 }, async (_, w) => {
    for (let n = 0; n < 50; ++n) await put(server, `/${db}/${w}-${n}`, { n })
  })
  const ids = new Set()
  while (ids.size < 100) {
    const { id, doc } = await feed.row()
    assert.ok(!ids.has(id), `${id} comes twice`)
    assert.equal(doc.n % 2, 1)
    ids.add(id)
  }
  feed.close()
  await Promise.all(writers)
  const { results } = await server.client.ok('GET', `/${db}/_changes?filter=d/odd`)
  assert.deepEqual(results.map(({ id }) => id).sort(), [...ids].sort())
})

it('a feed that waits goes on after what its filter did not select', async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/_design/d`, { filters: { odd: 'function (doc) { return doc.n % 2 }' } })
  const feed = await server.client.open(`/${db}/_changes?feed=continuous&since=now&timeout=3000&filter=d/odd`)
  for (let n = 0; n < 10; n += 2) await put(server, `/${db}/${n}`, { n })
  const { last_seq: last } = await feed.row()
  const { results } = await server.client.ok('GET', `/${db}/_changes?since=${last}`)
  assert.deepEqual(results, [])
  feed.close()
})

// The page is read again, on another thread.
it('a slow filter shows all rows, in both directions', async (server) => {
  const db = await server.newDatabase()
  const work = 'const end = Date.now() + 300; while (Date.now() < end);'
  await put(server, `/${db}/_design/d`, { filters: { slow: `function (doc) { ${work} return doc.n % 2 }`, endless: `function () { ${ENDLESS} }` } })
  await server.client.ok('POST', `/${db}/_bulk_docs`, { docs: Array.from({ length: 6 }, (_, n) => ({ _id: `d${n}`, n })) })
  const ids = async (query) => (await server.client.ok('GET', `/${db}/_changes?filter=d/slow${query}`)).results.map(({ id }) => id)
  assert.deepEqual(await ids('&descending=true'), ['d5', 'd3', 'd1'])
  assert.deepEqual(await ids('&descending=true&limit=2'), ['d5', 'd3'])
  assert.deepEqual(await ids(''), ['d1', 'd3', 'd5'])
  const { status } = await server.client.request('GET', `/${db}/_changes?filter=d/endless&descending=true`)
  assert.equal(status, 500)
})

it('a feed ends when its filter fails', async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/_design/d`, { filters: { f: 'function (doc) { return doc.a.b }' } })
  await put(server, `/${db}/good`, { a: { b: 1 } })
  const { json } = await server.client.request('GET', `/${db}/_changes?filter=d/f`)
  assert.equal(json.error, 'filter_function_failed') // of the design document itself
  const { last_seq } = await server.client.ok('GET', `/${db}/_changes`)
  const feed = await server.client.open(`/${db}/_changes?feed=continuous&since=${last_seq}&heartbeat=60000&filter=d/f`)
  await put(server, `/${db}/good2`, { a: { b: 1 } })
  assert.equal((await feed.row()).id, 'good2')
  await put(server, `/${db}/wrong`, { n: 1 })
  await feed.ended()
  assert.ok(!feed.text.includes('wrong'))
})

it('members use filters and update functions, and do not bypass validation', async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/_security`, { members: { names: ['dora'], roles: [] } })
  await put(server, `/${db}/_design/d`, {
    ...validation('if (!doc.by) throw {unauthorized: "who?"}'),
    filters: { mine: 'function (doc, req) { return doc.by === req.userCtx.name }' },
    updates: { sign: 'function (doc, req) { return [{_id: req.uuid, by: req.userCtx.name, body: req.body}, "signed " + JSON.stringify(req.headers).toLowerCase()] }' }
  })
  await put(server, '/_users/org.couchdb.user:dora', { name: 'dora', type: 'user', roles: [], password: 'pw' })
  const dora = server.as('dora:pw')
  await put(server, `/${db}/other`, { by: 'admin' })
  assert.equal(await answer(dora, 'PUT', `/${db}/x`, {}), '401 who?')
  const signed = await dora.request('POST', `/${db}/_design/d/_update/sign`, { body: 'text' })
  assert.equal(signed.status, 201)
  assert.match(signed.text, /^signed .*"host"/)
  assert.doesNotMatch(signed.text, /authorization|cookie/)
  const { results } = await dora.ok('GET', `/${db}/_changes?filter=d/mine&include_docs=true`)
  assert.deepEqual(results.map(({ doc }) => [doc.by, doc.body]), [['dora', 'text']])
})

it('nano runs update functions', async (server) => {
  const db = await server.newDatabase()
  const client = nano(`http://admin:secret@${server.client.hostname}:${server.client.port}`).use(db)
  await put(server, `/${db}/_design/d`, {
    updates: { inplace: 'function (doc, req) { const { field, value } = JSON.parse(req.body); doc[field] = value; return [doc, {json: {ok: true}}] }' }
  })
  await put(server, `/${db}/a`, { n: 1 })
  assert.deepEqual(await client.atomic('d', 'inplace', 'a', { field: 'n', value: 7 }), { ok: true })
  assert.equal((await client.get('a')).n, 7)
})
