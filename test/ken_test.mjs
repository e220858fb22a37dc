// Background index builds by ken.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runDivan, Server, shareServer, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer({ env: { DIVAN_DIVAN_JS_PROCESSES: '4' } })

const view = (map, rest = {}) => ({ ...rest, views: { v: { map } } })
const emit = (value) => `function (doc) { emit(${JSON.stringify(value)}) }`
// A map function that takes a while.
const slow = (ms, value = 1) => `function (doc) { var end = Date.now() + ${ms}; while (Date.now() < end) {} emit(${value}) }`

async function load(server, count, db) {
  db ??= await server.newDatabase()
  for (let done = 0; done < count; done += 10_000) {
    const docs = Array.from({ length: Math.min(10_000, count - done) }, () => ({}))
    await server.client.ok('POST', `/${db}/_bulk_docs`, { docs })
  }
  return db
}
const put = (server, db, name, design) => server.client.ok('PUT', `/${db}/_design/${name}`, design)
const ken = (server) => server.client.ok('GET', '/_ken')
const rows = async (server, db, name) =>
  (await server.client.ok('GET', `/${db}/_design/${name}/_view/v?update=false&limit=0`)).total_rows
const built = (server, db, name, count) =>
  waitFor(`${db}/${name} to be built`, async () => (await rows(server, db, name)) === count)
const idle = (server) =>
  waitFor('ken to have nothing to do', async () => {
    const { counts, expanding } = await ken(server)
    return counts.queue === 0 && counts.active === 0 && expanding === null
  })

it('an index is built before it is queried, and again after a change', async (server) => {
  const db = await load(server, 10)
  await put(server, db, 'd', view(emit(1)))
  await built(server, db, 'd', 10)
  await load(server, 5, db)
  await built(server, db, 'd', 15)
  const metrics = (await server.client.get('/_node/_local/_prometheus')).text
  const metric = (name) => Number(metrics.split('\n').find((line) => line.startsWith(`divan_index_${name}{database="${db}"`))?.split(' ')[1])
  assert.equal(metric('rows_total'), 15)
  assert.equal(metric('documents_total'), 16)
  assert.ok(metric('map_seconds_total') > 0)
})

it('autoupdate switches it off, entirely or for views; other languages are ignored', async (server) => {
  const db = await load(server, 3)
  await put(server, db, 'off', view(emit('off'), { autoupdate: false }))
  await put(server, db, 'noviews', view(emit('noviews'), { autoupdate: { views: false } }))
  await put(server, db, 'erlang', view('fun({Doc}) -> ok end.', { language: 'erlang' }))
  await put(server, db, 'other', view(emit('other'), { autoupdate: { indexes: false } }))
  await built(server, db, 'other', 3)
  await idle(server)
  assert.equal(await rows(server, db, 'off'), 0)
  assert.equal(await rows(server, db, 'noviews'), 0)
  // A query builds them nevertheless.
  assert.equal((await server.client.ok('GET', `/${db}/_design/off/_view/v`)).total_rows, 3)
})

it('an ignored database is not indexed until the setting is removed', async (server) => {
  const db = await server.newDatabase()
  const setting = `/_node/_local/_config/ken.ignore/${db}`
  await server.client.ok('PUT', setting, JSON.stringify('true'))
  await load(server, 3, db)
  await put(server, db, 'd', view(emit('ignored')))
  const other = await load(server, 3)
  await put(server, other, 'd', view(emit('other')))
  await built(server, other, 'd', 3)
  await idle(server)
  assert.equal(await rows(server, db, 'd'), 0)
  await server.client.ok('DELETE', setting)
  await built(server, db, 'd', 3)
})

it("a database's removal stops its builds", async (server) => {
  const db = await load(server, 3000)
  await put(server, db, 'd', view(slow(5)))
  await waitFor('the build to run', async () => {
    const { active } = await ken(server)
    return active.some(({ database, state }) => database === db && state === 'running')
  })
  await server.client.ok('DELETE', `/${db}`)
  await idle(server)
  const { rows: jobs = [] } = await server.client.ok('GET', '/_jobs/views')
  assert.deepEqual(jobs.filter(({ id }) => id.endsWith(`:${db}`)), [])
})

it('_active_tasks has the fields of an indexer', async (server) => {
  const db = await load(server, 20_000)
  await put(server, db, 'd', view(slow(1, 2)))
  const task = await waitFor('some of the build to be done', async () =>
    (await server.client.ok('GET', '/_active_tasks')).find(({ database, changes_done }) => database === db && changes_done > 0)
  )
  assert.equal(task.type, 'indexer')
  assert.equal(task.design_document, '_design/d')
  for (const field of ['node', 'pid']) assert.equal(typeof task[field], 'string', field)
  for (const field of ['progress', 'changes_done', 'total_changes', 'started_on', 'updated_on', 'rate']) {
    assert.ok(Number.isInteger(task[field]), field)
  }
  assert.ok(task.rate > 0 && task.rate <= 1000 * 10)
  assert.ok(task.changes_done <= task.total_changes)
  await server.client.ok('DELETE', `/${db}`)
})

it('/_ken is for administrators', async (server) => {
  assert.equal((await server.as(undefined).get('/_ken')).status, 401)
  assert.equal((await server.client.request('PUT', '/_ken')).status, 405)
})

it('commits of an index are events', async (server) => {
  const db = await load(server, 1)
  const feed = await server.client.open(`/_events/_db/${db}?heartbeat=60000`)
  await put(server, db, 'd', view(emit('events')))
  for (;;) {
    const row = await feed.row()
    assert.ok(row, 'the feed has ended')
    if (row.type === 'index_commit' && row.id === '_design/d') break
  }
  feed.close()
})

it('a changed design document is built beside the old index, which answers until the new one is complete', async (server) => {
  const db = await load(server, 1000)
  await put(server, db, 'd', { views: { v: { map: emit('old'), reduce: '_count' } } })
  await waitFor('the index', async () => (await server.client.ok('GET', `/${db}/_design/d/_view/v?update=false`)).rows[0]?.value === 1000)
  const { _rev } = await server.client.ok('GET', `/${db}/_design/d`)
  const map = slow(3, '"new"')
  await put(server, db, 'd', { _rev, views: { a: { map }, v: { map, reduce: '_count' } } })
  const key = async (update) => {
    const found = await server.client.ok('GET', `/${db}/_design/d/_view/v?group=true&update=${update}`)
    return found.rows.map(({ key, value }) => [key, value])
  }
  // This holds while the new one is being built, and also after a cleanup of indexes.
  const seen = new Set()
  await waitFor('the build to run', async () => {
    seen.add(JSON.stringify(await key('false')))
    // On a slow machine the build may end before it is seen.
    const is_over = seen.has(JSON.stringify([['new', 1000]]))
    return is_over || (await server.client.ok('GET', '/_active_tasks')).some(({ database }) => database === db)
  })
  await server.client.ok('POST', `/${db}/_view_cleanup`, {})
  await waitFor('the new index to answer', async () => {
    const rows = await key('false')
    seen.add(JSON.stringify(rows))
    return rows[0][0] === 'new'
  })
  assert.deepEqual([...seen], [JSON.stringify([['old', 1000]]), JSON.stringify([['new', 1000]])])
  // No rows of the old index are left.
  await server.client.ok('POST', `/${db}/_view_cleanup`, {})
  assert.deepEqual(await key('false'), [['new', 1000]])
})

testWithServer(
  'settings come from the file, take effect at run time, and invalid ones are refused',
  { local: '[ken]\nlimit = 42\nbatch_channels = 3\n' },
  async (server) => {
    const { settings } = await ken(server)
    assert.deepEqual(settings, {
      limit: 42, batch_channels: 3, incremental_channels: 80, max_incremental_updates: 1000,
      batch_size: 1, delay: 5000, prune_interval: 60000
    })
    const put = (name, value) => server.client.request('PUT', `/_node/_local/_config/ken/${name}`, { body: JSON.stringify(value) })
    assert.equal((await put('limit', '7')).json, '42')
    await waitFor('the setting to count', async () => (await ken(server)).settings.limit === 7)
    for (const [name, value] of [['limit', '0'], ['batch_size', '-1'], ['prune_interval', '1000'], ['delay', 'x']]) {
      assert.equal((await put(name, value)).status, 400, name)
    }
    assert.equal((await put('delay', '0')).status, 200)
  }
)

testWithServer(
  'GET /_ken shows what runs, what waits and why',
  { env: { DIVAN_DIVAN_JS_PROCESSES: '4' }, local: '[ken]\nbatch_channels = 1\nmax_incremental_updates = 100\n' },
  async (server) => {
    const first = await load(server, 2000)
    await put(server, first, 'big', view(slow(100))) // longer than the test
    await waitFor('the build to run', async () => (await ken(server)).active[0]?.state === 'running')
    const second = await load(server, 200)
    await put(server, second, 'waits', view(emit('waits')))
    const status = await waitFor('the second to wait', async () => {
      const found = await ken(server)
      return found.waiting.length > 0 && found
    })
    const [active] = status.active
    assert.deepEqual([active.database, active.design_document, active.type], [first, '_design/big', 'views'])
    assert.ok(active.behind > 0)
    const [waiting] = status.waiting
    assert.deepEqual([waiting.database, waiting.design_document, waiting.why, waiting.behind], [second, '_design/waits', 'batch_channels', 201])
    assert.match(waiting.reason, /max_incremental_updates/)
    assert.deepEqual(status.channels, { used: 1, batch: 1, incremental: 80 })
    assert.equal(status.retries[0].database, second)
    const metrics = (await server.client.get('/_node/_local/_prometheus')).text
    assert.match(metrics, /^divan_ken_channels_used 1$/m)
    assert.match(metrics, /^divan_ken_waiting 1$/m)
    assert.ok(metrics.includes(`divan_index_lag_changes{database="${second}",design_document="_design/waits"} 201`), metrics)
    // Small builds overtake it.
    const third = await load(server, 20)
    await put(server, third, 'small', view(emit('small')))
    await built(server, third, 'small', 20)
    assert.equal((await ken(server)).waiting.length, 1)
    await server.client.ok('DELETE', `/${first}`)
    await built(server, second, 'waits', 200)
  }
)

test('GET /_ken names the indexes that lack rows of documents until these are corrected, also after a restart', async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  const db = await load(server, 3)
  const lacking = async () => (await ken(server)).left_out.find(({ database }) => database === db)
  const bad = (await server.client.ok('PUT', `/${db}/bad`, { bad: true })).rev
  await put(server, db, 'd', view('function (doc) { if (doc.bad) throw "no"; emit(1) }'))
  await built(server, db, 'd', 3)
  const found = await waitFor('it to be listed', lacking)
  assert.deepEqual([found.design_document, found.type], ['_design/d', 'views'])
  assert.equal(found.left_out.documents, 1)
  assert.equal(found.left_out.examples[0].id, 'bad')
  assert.match(found.left_out.examples[0].reason, /View `v`: .*no/)
  // A valid document changes nothing.
  await load(server, 1, db)
  await built(server, db, 'd', 4)
  await server.stop()
  server = await Server.start({ dataDir })
  await waitFor('it to be listed again', lacking)
  assert.equal((await ken(server)).counts.left_out, 1)
  await server.client.ok('PUT', `/${db}/bad`, { _rev: bad })
  await built(server, db, 'd', 5)
  assert.equal(await lacking(), undefined)
  await server.stop()
})

testWithServer('one database with many changes does not delay fifty small ones', { env: { DIVAN_DIVAN_BUILDERS: '1' } }, async (server) => {
  const big = await load(server, 20_000)
  await put(server, big, 'd', view(slow(20))) // longer than the test
  await waitFor('the build to run', async () => (await ken(server)).active.length > 0)
  const small = []
  for (let i = 0; i < 50; ++i) {
    const db = await load(server, 10)
    await put(server, db, 'd', view(emit(i)))
    small.push(db)
  }
  for (const db of small) await built(server, db, 'd', 10)
  assert.ok((await rows(server, big, 'd')) < 20_000)
  await server.client.ok('DELETE', `/${big}`)
})

test('--background divides the work among processes', async () => {
  const dataDir = temporaryDirectory()
  const serve = (kinds) => Server.start({ dataDir, args: ['--background', kinds] })
  const state = async (server, path) => (await server.client.ok('GET', path)).state

  let server = await serve('ken')
  await server.client.ok('PUT', '/_jobs/mail', { timeout: 100 })
  await server.client.ok('PUT', '/_jobs/mail/one', { data: {} })
  await server.client.ok('POST', '/_jobs/mail/_accept', {})
  await server.client.ok('PUT', '/db')
  await server.client.ok('PUT', '/db/a', {})
  await put(server, 'db', 'd', view(emit(1)))
  const wanted = await waitFor('ken to ask', async () => (await server.client.ok('GET', '/_jobs/views/_list')).jobs[0])
  assert.equal(wanted.state, 'pending')
  assert.equal(await rows(server, 'db', 'd'), 0)
  await server.stop()

  server = await serve('views')
  await built(server, 'db', 'd', 1)
  assert.equal((await server.client.get('/_ken')).status, 404)
  assert.equal(await state(server, '/_jobs/mail/one'), 'running')
  await server.stop()

  server = await serve('jobs')
  await waitFor('the lost attempt', async () => (await state(server, '/_jobs/mail/one')) === 'pending')
  await server.stop()

  const { code, stderr } = await runDivan(['serve', '--data-dir', dataDir, '--background', 'ken,search'])
  assert.notEqual(code, 0)
  assert.match(stderr, /--background.*search.*jobs,ken,views,purge/)
})
