// Replication between databases of one server and of two, by POST /_replicate.
import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import { ADMIN, Server, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

// The leaves of all documents, with their bodies and attachments.
async function leaves(client, db) {
  const { results } = await client.ok('GET', `/${db}/_changes?style=all_docs`)
  const wanted = results.flatMap(({ id, changes }) => changes.map(({ rev }) => ({ id, rev })))
  const { results: found } = await client.ok('POST', `/${db}/_bulk_get?revs=true&attachments=true`, { docs: wanted })
  return found.map(({ docs: [{ ok }] }) => ok).sort((a, b) => (a._id + a._rev < b._id + b._rev ? -1 : 1))
}

const [username, password] = ADMIN.split(':')
const remote = (server, db) => ({ url: `${server.url}/${db}`, auth: { basic: { username, password } } })

// A database with conflicts, deletions, attachments and design documents.
async function fill(client, db, count = 300) {
  await client.ok('PUT', `/${db}`)
  const docs = Array.from({ length: count }, (_, n) => ({ _id: `d${n}`, n, text: 'é'.repeat(n % 50) }))
  docs.push({ _id: 'attached', _attachments: { 'a.txt': { content_type: 'text/plain', data: Buffer.from('hello'.repeat(5000)).toString('base64') } } })
  docs.push({ _id: '_design/d', views: { v: { map: 'function (doc) { emit(doc.n) }' } } })
  const written = await client.ok('POST', `/${db}/_bulk_docs`, { docs })
  for (const { id, rev } of written.slice(0, 20)) await client.ok('PUT', `/${db}/${id}`, { _rev: rev, changed: true })
  for (const { id, rev } of written.slice(20, 40)) await client.ok('DELETE', `/${db}/${id}?rev=${rev}`)
  const conflicts = written.slice(10, 60).map(({ id, rev }) => ({ _id: id, _rev: '2-abc', _revisions: { start: 2, ids: ['abc', rev.slice(2)] }, other: true }))
  assert.deepEqual(await client.ok('POST', `/${db}/_bulk_docs`, { new_edits: false, docs: conflicts }), [])
}

async function withServers(count, body) {
  const servers = []
  try {
    for (let i = 0; i < count; ++i) servers.push(await Server.start())
    await body(...servers)
  } finally {
    for (const server of servers) await server.stop()
  }
}

const replicate = (server, body) => server.client.ok('POST', '/_replicate', body)

test('both sides have the same leaves, whoever of them replicates', () => withServers(2, async (a, b) => {
  await fill(a.client, 'source')
  const expected = await leaves(a.client, 'source')
  assert.ok(expected.length > 320)
  await replicate(a, { source: 'source', target: 'local', create_target: true })
  await replicate(a, { source: 'source', target: remote(b, 'pushed'), create_target: true })
  const { history: [session] } = await replicate(b, { source: remote(a, 'source'), target: 'pulled', create_target: true })
  assert.equal(session.docs_written, expected.length)
  assert.equal(session.doc_write_failures, 0)
  assert.deepEqual(await leaves(a.client, 'local'), expected)
  assert.deepEqual(await leaves(b.client, 'pushed'), expected)
  assert.deepEqual(await leaves(b.client, 'pulled'), expected)
}))

test('a replication goes on from its checkpoint, which both sides have', () => withServers(2, async (a, b) => {
  await fill(a.client, 'source', 100)
  const body = { source: 'source', target: remote(b, 'target'), create_target: true }
  const first = await replicate(a, body)
  const again = await replicate(a, body)
  assert.equal(again.no_changes, true)
  assert.equal(again.history[0].missing_checked, 0)
  await a.client.ok('PUT', '/source/new', { n: 1 })
  const third = await replicate(a, body)
  assert.equal(third.history[0].docs_written, 1)
  assert.equal(third.history[0].start_last_seq, first.source_last_seq)
  const [mine] = (await a.client.ok('GET', '/source/_local_docs?include_docs=true')).rows
  const [others] = (await b.client.ok('GET', '/target/_local_docs?include_docs=true')).rows
  assert.equal(mine.id, others.id)
  assert.equal(mine.doc.session_id, third.session_id)
  assert.deepEqual(mine.doc.history, others.doc.history)
}))

test('a continuous replication follows its source, over a restart, until it is cancelled', async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  for (const db of ['source', 'target']) await server.client.ok('PUT', `/${db}`)
  const body = { source: 'source', target: 'target', continuous: true }
  const { _local_id: id } = await replicate(server, body)
  assert.equal((await replicate(server, body))._local_id, id)
  const arrives = (id) => waitFor(`${id} in the target`, async () => (await server.client.get(`/target/${id}`)).status === 200)
  await server.client.ok('PUT', '/source/first', {})
  await arrives('first')
  await server.kill()
  server = await Server.start({ dataDir })
  await server.client.ok('PUT', '/source/second', {})
  await arrives('second')
  const { total_rows: total, jobs: [job] } = await server.client.ok('GET', '/_scheduler/jobs')
  assert.equal(total, 1)
  assert.equal(job.id, id)
  assert.equal(job.source, 'source')
  assert.equal((await server.client.ok('GET', `/_scheduler/jobs/${encodeURIComponent(id)}`)).target, 'target')
  await replicate(server, { ...body, cancel: true })
  await waitFor('the end of the replication', async () => (await server.client.ok('GET', '/_scheduler/jobs')).total_rows === 0)
  assert.equal((await server.client.post('/_replicate', { ...body, cancel: true })).status, 404)
  await server.stop()
})

test('documents are chosen by ids and by a selector', () => withServers(2, async (a, b) => {
  await fill(a.client, 'source', 100)
  const ids = ['d1', 'd50', 'none']
  const selector = { n: { $gte: 90 } }
  for (const [source, target] of [['source', 'target'], [remote(a, 'source'), 'target'], ['source', remote(b, 'target')]]) {
    const [server, other] = source.url ? [b, b] : target.url ? [a, b] : [a, a]
    const names = async (db) => (await other.client.ok('GET', `/${db}/_all_docs`)).rows.map(({ id }) => id)
    const to = (db) => (target.url ? remote(b, db) : db)
    const suffix = source.url ? '2' : target.url ? '3' : '1'
    await replicate(server, { source, target: to(`ids${suffix}`), create_target: true, doc_ids: ids })
    assert.deepEqual(await names(`ids${suffix}`), ['d1', 'd50'])
    await replicate(server, { source, target: to(`selected${suffix}`), create_target: true, selector })
    assert.deepEqual(await names(`selected${suffix}`), Array.from({ length: 10 }, (_, n) => `d${90 + n}`))
  }
}))

test('functions that validate documents of the target refuse some', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  await a.client.ok('POST', '/source/_bulk_docs', { docs: Array.from({ length: 50 }, (_, n) => ({ _id: `d${n}`, n })) })
  const validate_doc_update = 'function (doc, old, user) { if (doc.n % 5 == 0) throw { forbidden: "no " + user.name } }'
  for (const server of [a, b]) {
    await server.client.ok('PUT', '/target')
    await server.client.ok('PUT', '/target/_design/d', { validate_doc_update })
  }
  for (const target of ['target', remote(b, 'target')]) {
    const { history: [session] } = await replicate(a, { source: 'source', target })
    assert.equal(session.docs_written, 40)
    assert.equal(session.doc_write_failures, 10)
  }
  for (const server of [a, b]) assert.equal((await server.client.ok('GET', '/target')).doc_count, 41)
}))

test('a server that is killed while it replicates loses nothing', async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  await fill(server.client, 'source', 3000)
  for (let i = 0; i < 8; ++i) {
    const id = `target${i}`
    await replicate(server, { source: 'source', target: id, create_target: true, continuous: true })
    await waitFor('the first documents', async () => (await server.client.get(`/${id}`)).json.doc_count > 0)
    await server.kill()
    server = await Server.start({ dataDir })
  }
  const expected = await leaves(server.client, 'source')
  for (let i = 0; i < 8; ++i) {
    await waitFor('all documents', async () => (await server.client.ok('GET', `/target${i}/_changes?style=all_docs`)).results.length === 3002)
    assert.deepEqual(await leaves(server.client, `target${i}`), expected)
  }
  await server.stop()
})

test('users of the job queue cannot use replications', () => withServers(1, async (server) => {
  const { client } = server
  await client.ok('PUT', '/secret')
  await client.ok('PUT', '/_users/org.couchdb.user:w', { name: 'w', type: 'user', roles: ['jobs'], password: 'pw' })
  const worker = server.as('w:pw')
  const { _local_id: id } = await replicate(server, { source: 'secret', target: { url: `${server.url}/x`, auth: { basic: { username, password: 'hidden' } } }, continuous: true })
  for (const [method, target, body] of [
    ['POST', '/_jobs/replication', { data: { replication: { source: 'secret', target: 'mine' }, user: { name: 'admin', roles: ['_admin'] } } }],
    ['GET', `/_jobs/replication/${encodeURIComponent(id)}`], ['GET', '/_jobs/replication/_list'], ['POST', '/_jobs/_accept', { types: ['replication'] }],
    ['POST', '/_transact', { jobs: { add: [{ type: 'replication', data: {} }] } }]])
    assert.equal((await worker.request(method, target, { body })).status, 403, target)
  assert.ok(!JSON.stringify(await client.ok('GET', '/_scheduler/jobs')).includes('hidden'))
}))

test('a document that cannot be copied does not keep the others', () => withServers(2, async (a, b) => {
  const { client } = a
  await client.ok('PUT', '/source')
  await client.ok('POST', '/source/_bulk_docs', { docs: [{ _id: 'alone' }, { _id: 'p:1' }, { _id: 'p:2' }] })
  await client.put('/source/large/attachment', Buffer.alloc(9_000_000), { headers: { 'Content-Type': 'application/octet-stream' } })
  const params = { create_target: true, create_target_params: { partitioned: true } }
  for (const target of ['target', remote(b, 'target')]) {
    const { history: [session] } = await replicate(a, { source: 'source', target, ...params })
    assert.equal(session.docs_written, 2)
    assert.equal(session.doc_write_failures, 2)
  }
}))

test('many large documents are copied in pieces', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  for (let n = 0; n < 40; ++n) await a.client.ok('PUT', `/source/d${n}`, { n, text: 'x'.repeat(700_000) })
  for (const [server, body] of [[a, { source: 'source', target: 'local' }], [a, { source: 'source', target: remote(b, 'pushed') }],
    [b, { source: remote(a, 'source'), target: 'pulled' }], [a, { source: 'source', target: 'selected', selector: { n: { $gte: 0 } } }]])
    assert.equal((await replicate(server, { ...body, create_target: true })).history[0].docs_written, 40)
}))

test('changes that are no documents wake nobody for nothing, and those that are wake everybody', () => withServers(1, async ({ client }) => {
  await client.ok('PUT', '/source')
  for (let i = 0; i < 5; ++i) {
    const target = `target${i}`
    await client.ok('POST', '/_replicate', { source: 'source', target, create_target: true, continuous: true })
    await waitFor('the target', async () => (await client.get(`/${target}`)).status === 200)
  }
  for (let n = 0; n < 5; ++n) {
    const { rev } = await client.ok('PUT', `/source/d${n}`, {})
    await client.ok('PUT', `/source/_local/l${n}`, {})
    // Less than the time after which a replication looks by itself.
    for (let i = 0; i < 5; ++i) await waitFor('the document', async () => (await client.get(`/target${i}/d${n}`)).status === 200, { limit: 20_000 })
    if (n === 3) await client.ok('POST', '/source/_purge', { d3: [rev] })
  }
  const { jobs } = await client.ok('GET', '/_scheduler/jobs')
  assert.deepEqual(jobs.map(({ state }) => state), Array(5).fill('running'))
}))

test('a replication goes on when its target was created again, and when it was cancelled and asked for again', () => withServers(1, async ({ client }) => {
  await client.ok('PUT', '/source')
  await client.ok('PUT', '/source/a', {})
  const body = { source: 'source', target: 'target', continuous: true, create_target: true }
  await client.ok('POST', '/_replicate', body)
  const arrives = (id) => waitFor(`${id} in the target`, async () => (await client.get(`/target/${id}`)).status === 200)
  await arrives('a')
  for (let n = 0; n < 5; ++n) {
    await client.ok('POST', '/_replicate', { ...body, cancel: true })
    await client.ok('POST', '/_replicate', body)
    await client.ok('PUT', `/source/again${n}`, {})
    await arrives(`again${n}`)
  }
  await client.ok('POST', '/_replicate', { ...body, cancel: true })
  await client.ok('DELETE', '/target')
  await client.ok('POST', '/_replicate', body)
  await arrives('a')
}))

// A source that answers what `answer` returns.
async function withSource(answer, body) {
  const source = http.createServer((request, response) => {
    let text = ''
    request.on('data', (bytes) => (text += bytes))
    request.on('end', () => {
      const [status, json] = answer(request.method, request.url, text)
      response.writeHead(status, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify(json))
    })
  })
  await new Promise((resolve) => source.listen(0, '127.0.0.1', resolve))
  try {
    await body(`http://127.0.0.1:${source.address().port}/db`)
  } finally {
    source.closeAllConnections()
    source.close()
  }
}

test('a source that answers nonsense is an error, and nothing is recorded as copied', () => withServers(1, async ({ client }) => {
  const changes = { results: [{ id: 'a', seq: '1', changes: [{ rev: '1-a' }] }], last_seq: '1', pending: 0 }
  const right = { 'GET /db': [200, { update_seq: '1' }], 'GET /db/_local': [404, {}], 'POST /db/_changes': [200, changes],
    'POST /db/_bulk_get': [200, { results: [{ id: 'a', docs: [{ ok: { _id: 'a', _rev: '1-a' } }] }] }], 'PUT /db/_local': [201, { rev: '0-1' }] }
  const rows = Array.from({ length: 100 }, () => changes.results[0])
  let number = 0
  const run = (wrong, puts) => withSource((method, url) => {
    const path = `${method} ${url.split('?')[0].replace(/(_local)\/.*/, '$1')}`
    if (path === 'PUT /db/_local') puts.push(url)
    return { ...right, ...wrong }[path] ?? [404, {}]
  }, async (source) => {
    const { status, json } = await client.post('/_replicate', { source, target: `target${++number}`, create_target: true })
    if (wrong['expected']) assert.equal(status, 200, JSON.stringify(json))
    else assert.match(json.reason ?? JSON.stringify(json), /bad_response|source_failed/)
  })
  const puts = []
  await run({ expected: true }, puts)
  assert.equal(puts.length, 1)
  for (const wrong of [
    { 'POST /db/_changes': [200, []] }, { 'POST /db/_changes': [200, { results: rows, last_seq: '0' }] }, { 'POST /db/_changes': [200, { results: [{ id: 1 }], last_seq: '1' }] },
    { 'POST /db/_bulk_get': [200, { results: [] }] }, { 'POST /db/_bulk_get': [200, { results: [{ id: 'a', docs: [] }] }] }, { 'POST /db/_bulk_get': [200, 5] },
    { 'POST /db/_bulk_get': [200, { results: [{ id: 'a', docs: [{ error: { error: 'internal_server_error' } }] }] }] }]) {
    const none = []
    await run(wrong, none)
    assert.deepEqual(none, [], JSON.stringify(wrong))
  }
}))

test('a request that cannot be a replication is refused, and one that fails says why', () => withServers(1, async (server) => {
  const { client } = server
  await client.ok('PUT', '/source')
  for (const body of [{}, { source: 'source' }, { source: '', target: 'x' }, { source: 1, target: 'x' }, { source: 'source', target: 'http://127.0.0.1' },
    { source: 'source', target: 'x', doc_ids: 5 }, { source: 'source', target: 'x', doc_ids: [], selector: {} }, { source: 'source', target: 'x', continuous: 1 },
    { source: { url: 'source', headers: { 'a\nb': 'c' } }, target: 'x' }, []])
    assert.equal((await client.post('/_replicate', body)).status, 400, JSON.stringify(body))
  const fails = async (body) => {
    const { status, json: { error, reason } } = await client.post('/_replicate', body)
    assert.equal(status, 500)
    assert.equal(error, 'replication_failed')
    return reason
  }
  assert.match(await fails({ source: 'none', target: 'source' }), /Database does not exist/)
  assert.match(await fails({ source: 'source', target: 'none' }), /Database does not exist/)
  assert.match(await fails({ source: { ...remote(server, 'source'), auth: { basic: { username, password: 'wrong' } } }, target: 'source' }), /unauthorized/)
  assert.equal((await server.as().post('/_replicate', { source: 'source', target: 'x' })).status, 401)
}))
