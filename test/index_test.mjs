// Indexes while they are built, and what the server reports meanwhile.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { onlyEmbedded, Server, shareServer, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer()

// A map function that takes a while.
const slow = (ms) => `function (doc) { var end = Date.now() + ${ms}; while (Date.now() < end) {} emit(doc._id) }`

async function load(server, count) {
  const db = await server.newDatabase()
  await server.client.ok('POST', `/${db}/_bulk_docs`, { docs: Array.from({ length: count }, () => ({})) })
  return db
}

const tasks = async (server, db) =>
  (await server.client.ok('GET', '/_active_tasks')).filter(({ database }) => database === db)

it('a build shows its progress, and disappears when it is complete', async (server) => {
  // The build would take ten minutes, so that its progress is seen on a slow machine, too.
  const long = await load(server, 600)
  await server.client.ok('PUT', `/${long}/_design/d`, { views: { v: { map: slow(1000) } } })
  const [task] = await waitFor('the build to show', async () => {
    const found = await tasks(server, long)
    return found.length > 0 && found
  })
  assert.deepEqual([task.type, task.design_document], ['indexer', '_design/d'])
  assert.ok(task.changes_done <= task.total_changes)
  assert.ok(task.progress >= 0 && task.progress <= 100)
  const building = await server.client.ok('GET', `/${long}/_design/d/_info`)
  assert.ok(building.view_index.updates_pending.total > 0)
  await server.client.ok('DELETE', `/${long}`)

  const db = await load(server, 600)
  await server.client.ok('PUT', `/${db}/_design/d`, { views: { v: { map: slow(0) } } })
  assert.equal((await server.client.ok('GET', `/${db}/_design/d/_view/v`)).total_rows, 600)
  const { view_index: built } = await server.client.ok('GET', `/${db}/_design/d/_info`)
  assert.deepEqual(built.updates_pending, { minimum: 0, preferred: 0, total: 0 })
  const { file, external, active } = built.sizes // the store has no sizes of recent writes
  assert.ok(Number.isInteger(file) && external === file && active === file, JSON.stringify(built.sizes))
  await waitFor('the builds to be gone', async () =>
    [...(await tasks(server, db)), ...(await tasks(server, long))].length === 0)
})

it('queries wait for the same build', async (server) => {
  const db = await load(server, 500)
  await server.client.ok('PUT', `/${db}/_design/d`, { views: { v: { map: slow(1) } } })
  const before = await server.metric('divan_js_documents_total')
  const queries = Array.from({ length: 10 }, () => server.client.ok('GET', `/${db}/_design/d/_view/v?limit=1`))
  for (const { total_rows } of await Promise.all(queries)) assert.equal(total_rows, 500)
  // Each document was mapped once, not once for every query.
  assert.ok((await server.metric('divan_js_documents_total')) - before <= 500)
})

test('an index has a size', async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  const db = await load(server, 600)
  await server.client.ok('PUT', `/${db}/_design/d`, { views: { v: { map: slow(0) } } })
  await server.client.ok('GET', `/${db}/_design/d/_view/v`)
  await server.stop()
  server = await Server.start({ dataDir }) // which flushes the memtable to files
  const { sizes } = (await server.client.ok('GET', `/${db}/_design/d/_info`)).view_index
  assert.ok(sizes.file > 1000 && sizes.file < 1_000_000, JSON.stringify(sizes))
  await server.stop()
})

it('a design document with a long name is indexed', async (server) => {
  const db = await server.newDatabase()
  await server.client.ok('PUT', `/${db}/a`, {})
  for (const name of ['\u0001'.repeat(1900), '"'.repeat(3900)]) {
    const target = `/${db}/_design/${encodeURIComponent(name)}`
    await server.client.ok('PUT', target, { views: { v: { map: 'function (doc) { emit(doc._id, 1) }' } } })
    assert.equal((await server.client.ok('GET', `${target}/_view/v`)).total_rows, 1)
  }
})

testWithServer('queries that wait are answered when the server stops', { args: ['--no-background'] }, async (server) => {
  await server.client.ok('PUT', '/db')
  await server.client.ok('PUT', '/db/_design/d', { views: { v: { map: 'function (doc) { emit(1) }' } } })
  const waiting = [1, 2, 3].map(() => server.client.get('/db/_design/d/_view/v'))
  const waits = async () => (await server.client.ok('GET', '/db/_design/d/_info')).view_index.waiting_clients
  await waitFor('them to wait', async () => (await waits()) === 3)
  server.terminate()
  for (const { status, json } of await Promise.all(waiting)) {
    assert.deepEqual([status, json.error], [503, 'service_unavailable'])
  }
  await server.ended()
})

testWithServer('an index shows how many clients wait for it', { args: ['--no-background'] }, async (server) => {
  const db = await load(server, 1)
  await server.client.ok('PUT', `/${db}/_design/d`, { views: { v: { map: slow(0) } } })
  await server.client.ok('PUT', `/${db}/_design/other`, { views: { v: { map: slow(1) } } })
  const waiting = async (name) => (await server.client.ok('GET', `/${db}/_design/${name}/_info`)).view_index.waiting_clients
  assert.equal(await waiting('d'), 0)
  const impatient = new AbortController()
  const headers = { Authorization: 'Basic ' + Buffer.from(server.client.credentials).toString('base64') }
  const target = `/${db}/_design/d/_view/v`
  const givenUp = assert.rejects(fetch(server.url + target, { signal: impatient.signal, headers }))
  const answer = server.client.get(target)
  await waitFor('both to wait', async () => (await waiting('d')) === 2)
  assert.equal(await waiting('other'), 0)
  impatient.abort()
  await givenUp
  await waitFor('one to be gone', async () => (await waiting('d')) === 1)
  await server.client.ok('DELETE', `/${db}/_design/d?rev=${(await server.client.ok('GET', `/${db}/_design/d`))._rev}`)
  assert.equal((await answer).status, 404)
  await server.client.ok('PUT', `/${db}/_design/d`, { views: { v: { map: slow(0) } } })
  assert.equal(await waiting('d'), 0)
})

it("a database's deletion ends its builds", async (server) => {
  const db = await load(server, 5000)
  await server.client.ok('PUT', `/${db}/_design/d`, { views: { v: { map: slow(100) } } })
  await waitFor('the build to show', async () => (await tasks(server, db)).length > 0)
  const query = server.client.get(`/${db}/_design/d/_view/v`)
  await server.client.ok('DELETE', `/${db}`)
  await waitFor('the build to be gone', async () => (await tasks(server, db)).length === 0)
  const answer = await query
  assert.equal(answer.status, 404, answer.text)
})

onlyEmbedded(it)('the metrics of the store move', async (server) => {
  const before = await server.metric('divan_store_commits_total')
  await load(server, 1)
  assert.ok((await server.metric('divan_store_commits_total')) > before)
})

it('metrics are lines that Prometheus reads', async (server) => {
  const db = await load(server, 1)
  await server.client.ok('PUT', `/_jobs/${db}`)
  await server.client.ok('PUT', `/_jobs/${db}/a`, {})
  const { text, headers } = await server.client.get('/_node/_local/_prometheus')
  assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  for (const line of text.trimEnd().split('\n')) {
    assert.match(line, /^(# (HELP|TYPE) [a-z_:]+ .+|[a-z_:]+(\{[a-z_]+="([^"\\]|\\.)*"(,[a-z_]+="([^"\\]|\\.)*")*\})? \S+)$/)
  }
  assert.ok(text.includes(`divan_jobs{state="pending",type="${db}"} 1`), text)
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  for (const [, name, type] of types) assert.equal(type === 'counter', name.endsWith('_total'), `${name} is a ${type}`)
  assert.ok(types.filter(([, , type]) => type === 'counter').length > 15)
})

it('a build continues after a restart from its last batch', async () => {
  const dataDir = temporaryDirectory()
  const server = await Server.start({ dataDir })
  const db = await load(server, 4000)
  await server.client.ok('PUT', `/${db}/_design/d`, { views: { v: { map: slow(1) } } })
  const { changes_done } = await waitFor('some of the build to be done', async () => {
    const [task] = await tasks(server, db)
    return task?.changes_done > 0 && task
  })
  await server.stop()
  const again = await Server.start({ dataDir })
  assert.equal((await again.client.ok('GET', `/${db}/_design/d/_view/v`)).total_rows, 4000)
  assert.ok((await again.metric('divan_js_documents_total')) <= 4000 - changes_done)
  await again.stop()
})
