// Replications that documents of replicator databases ask for, and what _scheduler shows of them.
import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import { listening, remote } from './support/replication.mjs'
import { ADMIN, Server, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const [username, password] = ADMIN.split(':')

async function withServer(body) {
  const server = await Server.start()
  try {
    for (const db of ['_replicator', 'source']) await server.client.ok('PUT', `/${db}`)
    await server.client.ok('POST', '/source/_bulk_docs', { docs: Array.from({ length: 100 }, (_, n) => ({ _id: `d${n}`, n })) })
    await body(server, server.client)
  } finally {
    await server.stop()
  }
}

const put = (client, id, doc, db = '_replicator') => client.ok('PUT', `/${encodeURIComponent(db)}/${id}`, doc)
const schedulerDoc = (client, id, db = '_replicator') => client.ok('GET', `/_scheduler/docs/${encodeURIComponent(db)}/${id}`)

async function outcome(client, id, db = '_replicator') {
  return waitFor(`the outcome of ${id}`, async () => {
    const doc = await client.ok('GET', `/${encodeURIComponent(db)}/${id}`)
    return doc._replication_state ? doc : undefined
  })
}
const reaches = (client, id, state, db) => waitFor(`${id} to be ${state}`, async () => {
  const shown = await schedulerDoc(client, id, db)
  return shown.state === state ? shown : undefined
})
const copied = (client, db, id) => waitFor(`${id} in ${db}`, async () => (await client.get(`/${db}/${id}`)).status === 200)
const jobs = async (client) => (await client.ok('GET', '/_scheduler/jobs')).jobs

test('a document is a replication, whose outcome it gets', () => withServer(async (server, client) => {
  await put(client, 'once', { source: 'source', target: 'target', create_target: true, comment: 'kept' })
  const doc = await outcome(client, 'once')
  assert.equal(doc._replication_state, 'completed')
  assert.equal(doc.comment, 'kept')
  assert.match(doc._replication_state_time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  assert.equal(doc._replication_stats.docs_written, 100)
  assert.equal((await client.ok('GET', '/target')).doc_count, 100)
  const shown = await schedulerDoc(client, 'once')
  assert.equal(shown.state, 'completed')
  assert.equal(shown.id, doc._replication_id)
  assert.equal(shown.info.docs_written, 100)
  assert.equal(shown.source, 'source')
  assert.equal(shown.error_count, 0)
  // It runs again without its outcome, and not with it.
  await client.ok('PUT', '/source/new', {})
  const edited = await put(client, 'once', { ...doc, comment: 'edited' })
  await put(client, 'once', { _rev: edited.rev, source: doc.source, target: doc.target })
  const second = await outcome(client, 'once')
  assert.equal(second._replication_stats.docs_written, 1)
  assert.equal((await client.ok('GET', '/target')).doc_count, 101)
}))

test('a continuous one runs until its document is changed or deleted, over a restart', async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  for (const db of ['_replicator', 'source', 'other', 'target']) await server.client.ok('PUT', `/${db}`)
  await put(server.client, 'c', { source: 'source', target: 'target', continuous: true })
  await server.client.ok('PUT', '/source/first', {})
  await copied(server.client, 'target', 'first')
  const running = await reaches(server.client, 'c', 'running')
  const [job] = await jobs(server.client)
  assert.equal(job.id, running.id)
  assert.equal(job.doc_id, 'c')
  assert.equal(job.database, '_replicator')
  assert.deepEqual(job.history.map(({ type }) => type), ['started', 'added'])
  const task = await waitFor('the progress', async () => {
    const [found] = (await server.client.ok('GET', '/_active_tasks')).filter(({ type }) => type === 'replication')
    return found.docs_written > 0 ? found : undefined
  })
  assert.equal(task.replication_id, running.id)
  assert.equal(task.doc_id, 'c')
  assert.equal(task.continuous, true)
  assert.equal(task.docs_written, 1)
  await server.kill()
  server = await Server.start({ dataDir })
  const { client } = server
  await client.ok('PUT', '/source/second', {})
  await copied(client, 'target', 'second')
  // A request for the same replication finds it, and does not take it over.
  const asked = await client.ok('POST', '/_replicate', { source: 'source', target: 'target', continuous: true })
  assert.equal(asked._local_id, running.id)
  assert.equal((await jobs(client))[0].doc_id, 'c')
  const doc = await client.ok('GET', '/_replicator/c')
  assert.equal(doc._replication_state, undefined)
  await put(client, 'c', { ...doc, source: 'other' })
  await client.ok('PUT', '/other/third', {})
  await copied(client, 'target', 'third')
  await waitFor('one job', async () => (await jobs(client)).length === 1)
  assert.equal((await jobs(client))[0].source, 'other')
  await client.ok('DELETE', `/_replicator/c?rev=${(await client.ok('GET', '/_replicator/c'))._rev}`)
  await waitFor('no job', async () => (await jobs(client)).length === 0)
  assert.equal((await client.get('/_scheduler/docs/_replicator/c')).status, 404)
  await server.stop()
})

test('a failed attempt is repeated, and what cannot succeed fails', () => withServer(async (server, client) => {
  await put(client, 'later', { source: 'missing', target: 'target', create_target: true })
  const crashing = await reaches(client, 'later', 'crashing')
  assert.equal(crashing.error_count, 1)
  assert.match(crashing.info.error, /Database does not exist/)
  assert.equal((await client.ok('GET', '/_replicator/later'))._replication_state, undefined)
  assert.deepEqual((await jobs(client))[0].history.map(({ type }) => type), ['crashed', 'started', 'added'])
  await put(client, 'never', { source: 'source', target: 'target', create_target: true, filter: 'nothing' })
  const failed = await outcome(client, 'never')
  assert.equal(failed._replication_state, 'failed')
  assert.match(failed._replication_state_reason, /`filter` must be of the form/)
  const shown = await schedulerDoc(client, 'never')
  assert.equal(shown.state, 'failed')
  assert.equal(shown.info.error, failed._replication_state_reason)
  // Cancelled by the request that describes it.
  await client.ok('POST', '/_replicate', { cancel: true, replication_id: crashing.id })
  assert.match((await outcome(client, 'later'))._replication_state_reason, /cancelled/)
}))

test('the same replication in two documents is one job, of the first', () => withServer(async (server, client) => {
  const doc = { source: 'source', target: 'target', create_target: true, continuous: true }
  await put(client, 'first', doc)
  await reaches(client, 'first', 'running')
  await put(client, 'second', doc)
  const second = await outcome(client, 'second')
  assert.equal(second._replication_state, 'failed')
  assert.match(second._replication_state_reason, /already started by document `first` in db `_replicator`/)
  await client.ok('DELETE', `/_replicator/second?rev=${second._rev}`)
  await reaches(client, 'first', 'running')
  assert.equal((await jobs(client)).length, 1)
  await client.ok('POST', '/_replicate', { source: 'source', target: 'other', create_target: true, continuous: true })
  await put(client, 'third', { ...doc, target: 'other' })
  assert.match((await outcome(client, 'third'))._replication_state_reason, /already running as a transient replication/)
}))

test('a deleted replicator database ends its replications, and one of the same name has new ones', () => withServer(async (server, client) => {
  const db = 'ann/_replicator'
  await client.ok('PUT', `/${encodeURIComponent(db)}`)
  for (const target of ['a', 'b', 'c'])
    await put(client, target, { source: 'source', target, create_target: true, continuous: true }, db)
  for (const id of ['a', 'b', 'c']) await reaches(client, id, 'running', db)
  assert.equal((await client.ok('GET', '/_scheduler/docs/ann/_replicator/a')).database, db)
  assert.equal((await client.ok('GET', '/_scheduler/docs/ann/_replicator')).docs.length, 3)
  await client.ok('DELETE', `/${encodeURIComponent(db)}`)
  await client.ok('PUT', `/${encodeURIComponent(db)}`)
  await put(client, 'a', { source: 'source', target: 'd', create_target: true, continuous: true }, db)
  await reaches(client, 'a', 'running', db)
  await waitFor('one job', async () => (await jobs(client)).length === 1)
  assert.equal((await jobs(client))[0].target, 'd')
}))

test('invalid documents are refused, and those that replication brings fail', () => withServer(async (server, client) => {
  for (const [doc, reason] of [[{}, '`source` is missing.'], [{ source: 'source' }, '`target` is missing.'],
    [{ source: 'source', target: 'x', continuous: 'yes' }, '`continuous` must be a boolean.']]) {
    const { status, json } = await client.put('/_replicator/x', doc)
    assert.equal(status, 403, JSON.stringify(doc))
    assert.equal(json.reason, reason)
  }
  const { json: written } = await client.post('/_replicator/_bulk_docs', { docs: [{ _id: 'x' }, { _id: 'ok', source: 'source', target: 'target', create_target: true }] })
  assert.deepEqual(written.map(({ id, ok, error }) => [id, ok, error]), [['x', undefined, 'forbidden'], ['ok', true, undefined]])
  await client.ok('PUT', '/_replicator/_design/d', { views: {} })
  await client.ok('PUT', '/_replicator/_local/l', { any: 1 })
  // A copy of another server's database.
  await client.ok('PUT', '/copied')
  await client.ok('PUT', '/copied/bad', { source: 5, target: 'x' })
  await client.ok('PUT', '/copied/done', { source: 'source', target: 'x', _replication_state: 'completed' })
  await client.ok('PUT', '/copied/running', { source: 'source', target: 'x', create_target: true, _replication_state: 'triggered' })
  await client.ok('PUT', '/ann%2F_replicator')
  await client.ok('POST', '/_replicate', { source: 'copied', target: 'ann/_replicator' })
  assert.match((await outcome(client, 'bad', 'ann/_replicator'))._replication_state_reason, /`source` must be a string/)
  await waitFor('the one that ran there', async () => (await client.ok('GET', '/ann%2F_replicator/running'))._replication_state === 'completed')
  assert.equal((await client.ok('GET', '/ann%2F_replicator/done'))._rev.slice(0, 2), '1-')
}))

test('states of documents are listed, page by page', () => withServer(async (server, client) => {
  const docs = Array.from({ length: 450 }, (_, n) => ({ _id: `r${String(n).padStart(3, '0')}`, source: 'source', target: 'x', _replication_state: n % 3 ? 'completed' : 'failed' }))
  await client.ok('POST', '/_replicator/_bulk_docs', { docs })
  const ids = async (query) => (await client.ok('GET', `/_scheduler/docs${query}`)).docs.map(({ doc_id: id }) => id)
  const all = docs.map(({ _id }) => _id)
  assert.deepEqual(await ids(''), all)
  assert.deepEqual(await ids('?descending=true'), [...all].reverse())
  assert.deepEqual(await ids('?skip=195&limit=10'), all.slice(195, 205))
  assert.deepEqual(await ids('?states=failed'), all.filter((_, n) => n % 3 === 0))
  assert.deepEqual(await ids('?states=failed,completed&limit=1'), [all[0]])
  assert.deepEqual(await ids('?states=running'), [])
  await put(client, 'proxied', { source: 'http://127.0.0.1:1/a', target: 'x', source_proxy: 'socks5://ann:secret@127.0.0.1:1' })
  const proxied = await schedulerDoc(client, 'proxied')
  assert.deepEqual([proxied.source_proxy, proxied.target_proxy], ['socks5://127.0.0.1:1', null])
  assert.equal((await client.get('/_scheduler/docs?states=none')).status, 400)
  assert.equal((await client.get('/_scheduler/docs/source')).status, 400)
  assert.equal((await client.get('/_scheduler/docs/none%2F_replicator')).status, 404)
  assert.equal((await server.as().get('/_scheduler/docs')).status, 401)
}))

test('admins of a replicator database who are not server administrators replicate by URLs, and its members see nothing', () => withServer(async (server, client) => {
  for (const name of ['ann', 'bob'])
    await client.ok('PUT', `/_users/org.couchdb.user:${name}`, { name, type: 'user', roles: [], password: 'a password' })
  const db = '/ann%2F_replicator'
  await client.ok('PUT', db)
  await client.ok('PUT', `${db}/_security`, { admins: { names: ['ann'], roles: [] }, members: { names: ['bob'], roles: [] } })
  const ann = server.as('ann:a password'), bob = server.as('bob:a password')
  assert.equal((await bob.get(`${db}/_all_docs`)).status, 403)
  assert.equal((await bob.put(`${db}/x`, { source: 'http://127.0.0.1:1/a', target: 'http://127.0.0.1:1/b' })).status, 403)
  const url = (name) => ({ url: `${server.url}/${name}`, auth: { basic: { username: 'ann', password: 'a password' } } })
  for (const doc of [{ source: 'source', target: url('mine') }, { source: url('source'), target: 'mine' },
    { source: url('a'), target: url('b'), user_ctx: { name: 'root', roles: ['_admin'] } }]) {
    for (const bytes of [JSON.stringify(doc), JSON.stringify(doc).replace('user_ctx', 'user_ct\\u0078').replace('source', 's\\u006furce')])
      assert.equal((await ann.put(`${db}/x`, bytes)).status, 403, bytes)
    const { json: [result] } = await ann.post(`${db}/_bulk_docs`, { new_edits: false, docs: [{ ...doc, _id: 'x', _rev: '1-abc' }] })
    assert.equal(result?.error, 'forbidden')
  }
  for (const name of ['from', 'mine']) {
    await client.ok('PUT', `/${name}`)
    await client.ok('PUT', `/${name}/_security`, { members: { names: ['ann'], roles: [] } })
  }
  await client.ok('PUT', '/from/d', {})
  assert.equal((await ann.put(`${db}/x`, { source: url('from'), target: url('mine') })).status, 201)
  await copied(client, 'mine', 'd')
  assert.equal((await outcome(client, 'x', 'ann/_replicator'))._replication_state, 'completed')
}))

test('users of different replicator databases do not share replications', () => withServer(async (server, client) => {
  await client.ok('PUT', '/ann%2F_replicator')
  const replication = (password) => ({ source: remote(server, 'source'), target: { ...remote(server, 'target'), auth: { basic: { username, password } } }, continuous: true })
  await client.ok('PUT', '/target')
  await put(client, 'squat', replication('wrong'), 'ann/_replicator')
  await reaches(client, 'squat', 'crashing', 'ann/_replicator')
  await put(client, 'real', replication(password))
  await copied(client, 'target', 'd99')
  assert.equal((await schedulerDoc(client, 'real')).state, 'running')
}))

test('a request for a replication that crashes does not wait for it', () => withServer(async (server, client) => {
  const doc = { source: 'missing', target: 'target', create_target: true }
  await put(client, 'd', doc)
  await reaches(client, 'd', 'crashing')
  const { status, json: { reason } } = await client.post('/_replicate', doc)
  assert.equal(status, 500)
  assert.match(reason, /Database does not exist/)
}))

test('a document may be large, but not too large for its outcome', () => withServer(async (server, client) => {
  const doc = (bytes) => ({ source: 'source', target: 'target', create_target: true, text: 'x'.repeat(bytes) })
  assert.equal((await client.put('/_replicator/large', doc(4_000_000))).status, 413)
  await put(client, 'large', doc(3_900_000))
  assert.equal((await outcome(client, 'large'))._replication_state, 'completed')
  // One that replication brings.
  await client.ok('PUT', '/copied')
  await client.ok('PUT', '/copied/a', doc(7_999_900))
  await client.ok('PUT', '/copied/b', { ...doc(1), target: 'other' })
  await client.ok('PUT', '/ann%2F_replicator')
  await client.ok('POST', '/_replicate', { source: 'copied', target: 'ann/_replicator' })
  assert.equal((await outcome(client, 'b', 'ann/_replicator'))._replication_state, 'completed')
}))

test('slow peers leave threads to others', () => withServer(async (server, client) => {
  await client.ok('PUT', '/_node/_local/_config/replicator/max_jobs', '"4"')
  const requests = []
  const slow = http.createServer((request) => requests.push(request))
  await listening(slow, async (port) => {
    const source = `http://127.0.0.1:${port}/db`
    await client.ok('PUT', '/ann%2F_replicator')
    const docs = Array.from({ length: 10 }, (_, n) => ({ _id: `s${n}`, source, target: `t${n}`, create_target: true }))
    await client.ok('POST', '/ann%2F_replicator/_bulk_docs', { docs })
    await waitFor('slow ones to work', () => requests.length > 0)
    await client.ok('POST', '/_replicate', { source: 'source', target: 'target', create_target: true })
    assert.ok(requests.length <= 2, `${requests.length} work`)
  })
}))

test('retries whose peers do not respond leave threads to other replications of their database', () => withServer(async (server, client) => {
  for (const [name, value] of [['max_jobs', '4'], ['retries_per_request', '0'], ['connection_timeout', '3600000']])
    await client.ok('PUT', `/_node/_local/_config/replicator/${name}`, JSON.stringify(value))
  let responds = true, silent = 0
  const source = http.createServer((request, response) => {
    if (responds) response.writeHead(500).end()
    else ++silent
  })
  await listening(source, async (port) => {
    const docs = Array.from({ length: 6 }, (_, n) => ({ _id: `s${n}`, source: `http://127.0.0.1:${port}/db`, target: `t${n}`, create_target: true }))
    await client.ok('POST', '/_replicator/_bulk_docs', { docs })
    await waitFor('all to fail', async () => (await client.ok('GET', '/_scheduler/docs?states=crashing')).docs.length === 6)
    responds = false
    // After pauses of 30 s.
    await waitFor('retries', () => silent >= 2)
    await put(client, 'good', { source: 'source', target: 'target', create_target: true })
    assert.equal((await outcome(client, 'good'))._replication_state, 'completed')
  })
}))

test('many documents at once', () => withServer(async (server, client) => {
  const docs = Array.from({ length: 250 }, (_, n) => ({ _id: `r${n}`, source: 'source', target: `t${n}`, create_target: true, doc_ids: [`d${n % 100}`] }))
  await client.ok('POST', '/_replicator/_bulk_docs', { docs })
  await waitFor('all to be completed', async () => (await client.ok('GET', '/_scheduler/docs?states=completed')).docs.length === 250)
  for (const n of [0, 99, 249]) assert.equal((await client.ok('GET', `/t${n}`)).doc_count, 1)
}))
