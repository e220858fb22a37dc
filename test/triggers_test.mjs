// Triggers: changes of documents that lead to jobs. docs/triggers.md
import assert from 'node:assert/strict'
import { runDivan, Server, shareServer, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer()
let types = 0

// A database, a job type of the test's own, and functions for them.
async function setUp(server) {
  const { client } = server
  const type = `mail${++types}`
  await client.ok('PUT', `/_jobs/${type}`, {})
  const db = await server.newDatabase()
  const design = `/${db}/_design/t`
  let rev
  const define = async (triggers, more = {}) => {
    rev = (await client.ok('PUT', design, { _rev: rev, triggers, ...more })).rev
  }
  return {
    db, type, design, define,
    remove: async () => client.ok('DELETE', `${design}?rev=${rev}`).then(() => { rev = undefined }),
    trigger: (members) => define({ t: { job: { type, id: '{_id}', data: { n: '{n}' } }, ...members } }),
    put: (id, document) => client.ok('PUT', `/${db}/${id}`, document),
    delete: async (id) => client.ok('DELETE', `/${db}/${id}?rev=${(await client.ok('GET', `/${db}/${id}`))._rev}`),
    info: (name = 't') => client.ok('GET', `${design}/_trigger/${name}`),
    // Waits until the trigger has seen all changes.
    seen: (name = 't') => waitFor('the trigger', async () => (await client.ok('GET', `${design}/_trigger/${name}`)).behind === 0),
    jobs: async () => (await client.ok('GET', `/_jobs/${type}/_list`)).jobs,
    ids: async () => (await client.ok('GET', `/_jobs/${type}/_list`)).jobs.map(({ id }) => id).sort(),
    job: (id) => client.ok('GET', `/_jobs/${type}/${id}`)
  }
}

it('a change of a document that a selector matches adds a job, and nothing before the trigger', async (server) => {
  const at = await setUp(server)
  await at.put('before', { kind: 'user', n: 0 })
  await at.trigger({ selector: { kind: 'user' } })
  await at.put('ann', { kind: 'user', n: 1 })
  await at.put('order', { kind: 'order', n: 2 })
  await at.seen()
  assert.deepEqual(await at.ids(), ['ann'])
  const { data } = await at.job('ann')
  const { seq, ...trigger } = data._trigger
  assert.deepEqual([data.n, trigger], [1, { db: at.db, ddoc: '_design/t', name: 't', id: 'ann' }])
  assert.match(seq, /^\d+-[0-9a-f]+$/)
  const { jobs_added: added, left_out: leftOut, last_error: error, waits } = await at.info()
  assert.deepEqual([added, leftOut.documents, error, waits], [1, 0, null, null])
})

it('with since 0 it begins with the first change', async (server) => {
  const at = await setUp(server)
  const docs = Array.from({ length: 3000 }, (_, n) => ({ _id: `d${n}`, n }))
  await server.client.ok('POST', `/${at.db}/_bulk_docs`, { docs })
  await at.trigger({ since: '0' })
  await at.seen()
  assert.equal((await at.info()).jobs_added, 3000)
  const counts = (await server.client.ok('GET', `/_jobs/${at.type}`)).counts
  assert.equal(counts.pending, 3000)
})

it('created, updated and deleted documents are distinguished', async (server) => {
  const at = await setUp(server)
  await at.put('old', { n: 1 })
  await at.put('gone', { n: 1 })
  const job = (event) => ({ on: [event], job: { type: at.type, id: `${event}-{_id}`, data: { n: '{n}' } } })
  await at.define({ created: job('created'), updated: job('updated'), deleted: job('deleted') })
  const seen = () => Promise.all(['created', 'updated', 'deleted'].map(at.seen))
  const rev = async (id) => (await server.client.ok('GET', `/${at.db}/${id}`))._rev
  await at.put('old', { n: 2, _rev: await rev('old') })
  await at.delete('gone')
  await at.put('new', { n: 3 })
  await seen()
  assert.deepEqual(await at.ids(), ['created-new', 'deleted-gone', 'updated-old'])
  // The last state of a deleted document is known.
  assert.deepEqual((await at.job('deleted-gone')).data.n, 1)
  assert.equal((await at.job('created-new')).data._trigger.event, 'created')

  await at.delete('new')
  await seen()
  await at.put('gone', { n: 5 })
  await at.put('new', { n: 4 })
  await seen()
  assert.deepEqual(await at.ids(), ['created-gone', 'created-new', 'deleted-gone', 'deleted-new', 'updated-old'])
  assert.equal((await at.job('created-new')).data.n, 4)
})

it('a document that is created and updated before the trigger sees it was created', async (server) => {
  const at = await setUp(server)
  // The trigger waits, since the type does not exist.
  const missing = `${at.type}x`
  await at.define({ t: { on: ['created'], job: { type: missing, id: '{_id}' } } })
  await at.put('first', {})
  await waitFor('the trigger to wait', async () => (await at.info()).waits)
  assert.match((await at.info()).waits.error, /not declared/)
  let { rev } = await at.put('many', { n: 0 })
  for (let n = 1; n < 15; ++n) ({ rev } = await at.put('many', { n, _rev: rev }))
  await server.client.ok('POST', `/${at.db}/_compact`, {})
  await waitFor('the end of the compaction', async () => !(await server.client.ok('GET', `/${at.db}`)).compact_running)
  ;({ rev } = await at.put('short', {}))
  await server.client.ok('DELETE', `/${at.db}/short?rev=${rev}`)
  const ken = await server.client.ok('GET', '/_ken')
  assert.equal(ken.waiting.find(({ database }) => database === at.db).type, 'triggers')
  await server.client.ok('PUT', `/_jobs/${missing}`, {})
  await at.seen()
  assert.deepEqual((await server.client.ok('GET', `/_jobs/${missing}/_list`)).jobs.map(({ id }) => id).sort(), ['first', 'many'])
})

it('a function adds jobs', async (server) => {
  const at = await setUp(server)
  const map = `function (doc) {
    if (doc.total > 100) job('${at.type}', 'big-' + doc._id, { total: doc.total }, { priority: 1 })
    if (doc.total > 200) job('${at.type}', null, { huge: true }, { delay: 3600000 })
  }`
  await at.define({ t: { map } })
  await at.put('a', { total: 50 })
  await at.put('b', { total: 150 })
  await at.put('c', { total: 250 })
  await at.seen()
  const jobs = await at.jobs()
  assert.equal(jobs.length, 3)
  assert.ok(jobs.some(({ id }) => id === 'big-b'))
  assert.equal((await at.job('big-c')).priority, 1)
  const later = jobs.find(({ id }) => !id.startsWith('big'))
  assert.ok(later.scheduled_at > Date.now() + 3_000_000)
})

it('a document of which no job can be made is counted, and adds one when it is repaired', async (server) => {
  const at = await setUp(server)
  await at.trigger()
  const { rev } = await at.put('bad', { m: 1 })
  await at.put('good', { n: 1 })
  await at.seen()
  assert.deepEqual(await at.ids(), ['good'])
  let info = await at.info()
  assert.deepEqual([info.left_out.documents, info.left_out.examples[0].id, info.last_error.id], [1, 'bad', 'bad'])
  assert.match(info.last_error.reason, /no field `n`/)
  await at.put('bad', { n: 2, _rev: rev })
  await at.seen()
  assert.deepEqual(await at.ids(), ['bad', 'good'])
  info = await at.info()
  assert.deepEqual([info.left_out.documents, info.last_error.id], [0, 'bad'])
})

it('a changed trigger continues where the old one was, and a removed one leaves nothing', async (server) => {
  const at = await setUp(server)
  await at.trigger()
  await at.put('a', { n: 1 })
  await at.seen()
  await at.trigger({ job: { type: at.type, id: 'new-{_id}' } })
  await at.put('b', { n: 1 })
  await at.seen()
  assert.deepEqual(await at.ids(), ['a', 'new-b'])
  await at.trigger({ job: { type: at.type, id: 'all-{_id}' }, since: '0' })
  await at.seen()
  assert.deepEqual(await at.ids(), ['a', 'all-a', 'all-b', 'new-b'])
  await at.remove()
  await at.put('c', { n: 1 })
  await at.trigger()
  await at.put('d', { n: 1 })
  await at.seen()
  assert.deepEqual(await at.ids(), ['a', 'all-a', 'all-b', 'd', 'new-b'])
  assert.equal((await at.info()).jobs_added, 1)
})

it('documents after the trigger in the same request lead to jobs', async (server) => {
  const at = await setUp(server)
  const docs = [{ _id: 'a', n: 1 }, { _id: '_design/t', triggers: { t: { job: { type: at.type, id: '{_id}' } } } }, { _id: 'b', n: 1 }]
  await server.client.ok('POST', `/${at.db}/_bulk_docs`, { docs })
  await at.seen()
  assert.deepEqual(await at.ids(), ['b'])
})

it('max_per_second spreads jobs over time', async (server) => {
  const at = await setUp(server)
  await at.trigger({ max_per_second: 2 })
  const docs = Array.from({ length: 20 }, (_, n) => ({ _id: `d${n}`, n }))
  await server.client.ok('POST', `/${at.db}/_bulk_docs`, { docs })
  await at.seen()
  const times = (await at.jobs()).map(({ scheduled_at: time = 0 }) => time).filter((time) => time > 0).sort((a, b) => a - b)
  assert.ok(times.length >= 18, `${times}`)
  for (let i = 1; i < times.length; ++i) assert.ok(times[i] - times[i - 1] >= 499, `${times}`)
})

it('malformed triggers are refused', async (server) => {
  const at = await setUp(server)
  const job = { type: at.type }
  const bad = [
    [1, /not an object/], [{ t: 1 }, /must be an object/], [{ t: {} }, /either `job`/], [{ t: { job, map: 'function (doc) {}' } }, /either/],
    [{ t: { job, on: [] } }, /`on`/], [{ t: { job, on: ['read'] } }, /"read"/], [{ t: { job, since: 'x' } }, /`since`/], [{ t: { job, wrong: 1 } }, /`wrong`/],
    [{ t: { job: { ...job, id: '{a' } } }, /without a `}`/], [{ t: { job: { ...job, data: '}' } } }, /without a `{`/], [{ t: { job: { ...job, extra: 1 } } }, /`extra`/],
    [{ t: { job: { id: 'x' } } }, /`job.type`/], [{ t: { job: { type: '_x' } } }, /type/], [{ t: { job, max_per_second: 0 } }, /max_per_second/],
    [{ t: { job, selector: { a: { $x: 1 } } } }, /\$x/], [{ t: { map: 'function (' } }, /map function/], [{ t: { map: '' } }, /map function/], [{ t: { job: { ...job, data: [] } } }, /must be an object/], [{ '': { job } }, /name/]
  ]
  for (const [triggers, reason] of bad) {
    const { status, json } = await server.client.put(at.design, { triggers })
    assert.equal(status, 400, JSON.stringify(triggers))
    assert.match(json.reason, reason)
  }
  assert.equal((await server.client.get(`${at.design}/_trigger/t`)).status, 404)
  await at.trigger()
  assert.equal((await server.client.get(`${at.design}/_trigger/other`)).status, 404)
})

it('jobs of the server are not for triggers', async (server) => {
  const at = await setUp(server)
  await at.define({ t: { job: { type: 'replication', id: '{_id}' } } })
  await at.put('a', {})
  await at.seen()
  assert.match((await at.info()).last_error.reason, /the server's own/)
})

it('only those who may add jobs may write triggers', async (server) => {
  const at = await setUp(server)
  const { client } = server
  await client.ok('PUT', `/${at.db}/_security`, { admins: { names: ['dora', 'jim'] }, members: {} })
  for (const [name, roles] of [['dora', []], ['jim', ['jobs']]])
    await client.ok('PUT', `/_users/org.couchdb.user:${name}`, { type: 'user', name, password: 'pw', roles })
  const design = { triggers: { t: { job: { type: at.type, id: '{_id}' } } } }
  const dora = server.as('dora:pw'), jim = server.as('jim:pw')
  assert.equal((await dora.put(at.design, design)).status, 403)
  const bulk = await dora.post(`/${at.db}/_bulk_docs`, { docs: [{ _id: '_design/t', _rev: '1-abc', ...design }], new_edits: false })
  assert.equal(bulk.json[0]?.error ?? bulk.json.error, 'forbidden')
  assert.equal((await dora.put(`/${at.db}/_design/other`, {})).status, 201)
  assert.equal((await jim.put(at.design, design)).status, 201)
})

testWithServer('a process without ken shows why a trigger waits', { args: ['--background=jobs,triggers'] }, async (server) => {
  const at = await setUp(server)
  await at.define({ t: { job: { type: 'missing' } } })
  await at.put('a', {})
  const waiting = await waitFor('the trigger to wait', async () => (await server.client.ok('GET', '/_ken')).waiting[0])
  assert.deepEqual([waiting.type, waiting.database, waiting.behind], ['triggers', at.db, 1])
  assert.match(waiting.error, /`missing` is not declared/)
})

testWithServer('a trigger loses and repeats nothing when the server is killed', {}, async (first) => {
  let server = first
  const at = await setUp(server)
  await at.define({ t: { job: { type: at.type } } }) // without an id: a repetition would be another job
  let acknowledged = 0
  for (let round = 0; round < 5; ++round) {
    const writes = Array.from({ length: 10 }, () => {
      const docs = Array.from({ length: 50 }, () => ({}))
      return server.client.post(`/${at.db}/_bulk_docs`, { docs }).then(({ json }) => { acknowledged += json.length }, () => {})
    })
    await Promise.race(writes)
    await server.kill()
    await Promise.all(writes)
    server = await Server.start({ dataDir: first.dataDir, port: first.client.port })
  }
  try {
    await at.seen()
    const { doc_count: documents } = await server.client.ok('GET', `/${at.db}`)
    const { counts } = await server.client.ok('GET', `/_jobs/${at.type}`)
    assert.ok(documents - 1 >= acknowledged)
    assert.deepEqual([(await at.info()).jobs_added, counts.pending], [documents - 1, documents - 1])
  } finally {
    await server.stop()
  }
})

it('`divan triggers` shows the triggers of a database', async (server) => {
  const at = await setUp(server)
  await at.define({ t: { job: { type: at.type, id: '{_id}', data: { n: '{n}' } } }, waiting: { job: { type: 'undeclared' } } })
  await at.put('a', { n: 1 })
  await at.put('b', {})
  await at.seen()
  await waitFor('the reason', async () => (await at.info('waiting')).waits)
  const show = (...args) => runDivan(['triggers', at.db, ...args, '--url', server.url, '--user', server.credentials])
  const { code, stdout, stderr } = await show()
  assert.equal(code, 0, stderr)
  const rows = stdout.trimEnd().split('\n').map((line) => line.trimEnd().split(/ {2,}/))
  assert.deepEqual(rows[0], ['DESIGN DOCUMENT', 'TRIGGER', 'BEHIND', 'JOBS ADDED', 'LEFT OUT', 'PROBLEM'])
  const [design, name, behind, added, leftOut, problem] = rows.find((row) => row[1] === 't')
  assert.deepEqual([design, name, behind, added, leftOut], ['_design/t', 't', '0', '1', '1'])
  assert.match(problem, /^b: .*`n`/)
  assert.match(rows.find((row) => row[1] === 'waiting')[5], /^waits until .*undeclared/)
  const all = JSON.parse((await show('--json')).stdout)
  assert.deepEqual(all.map(({ design_document, name }) => [design_document, name]), [['_design/t', 't'], ['_design/t', 'waiting']])
  assert.equal((await runDivan(['triggers', 'missing-db', '--url', server.url, '--user', server.credentials])).code, 1)
})
