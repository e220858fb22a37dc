// Map functions that never end: their effect on others, and how they are reported.
import assert from 'node:assert/strict'
import { testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

// No call times out here: the limit is an hour of processor time.
const FOR_EVER = { local: '[couchdb]\nos_process_timeout = 3600000\n', env: { DIVAN_DIVAN_JS_PROCESSES: '2', DIVAN_DIVAN_BUILDERS: '3' } }
const view = (map) => ({ views: { v: { map } } })
const loop = (number) => view(`function (doc) { while (true) {} } // ${number}`)
const ken = (server) => server.client.ok('GET', '/_ken')

async function loopingDatabases(server, databases, indexes) {
  const names = []
  for (let d = 0; d < databases; ++d) {
    const db = await server.newDatabase()
    await server.client.ok('POST', `/${db}/_bulk_docs`, { docs: Array.from({ length: 10 }, () => ({})) })
    for (let n = 0; n < indexes; ++n) await server.client.ok('PUT', `/${db}/_design/${n}`, loop(n))
    names.push(db)
  }
  return names
}

testWithServer('builds that never end do not block other indexes', FOR_EVER, async (server) => {
  const looping = await loopingDatabases(server, 5, 4)
  const held = (state) => state.builders.running.filter(({ database, small }) => looping.includes(database) && !small)
  // They hold all background processes: two.
  await waitFor('them to hold all that they can', async () => {
    const state = await ken(server)
    return held(state).length === 3 && state.javascript.running.filter(({ purpose }) => purpose === 'build').length === 2
  })
  const db = await server.newDatabase()
  await server.client.ok('PUT', `/${db}/_design/d`, view('function (doc) { emit(doc.n) }'))
  for (let n = 0; n < 20; ++n) {
    await server.client.ok('PUT', `/${db}/${n}`, { n })
    assert.equal((await server.client.ok('GET', `/${db}/_design/d/_view/v`)).total_rows, n + 1)
  }
  // Also without a query.
  await server.client.ok('PUT', `/${db}/more`, {})
  await waitFor('ken to have built it', async () =>
    (await server.client.ok('GET', `/${db}/_design/d/_view/v?update=false`)).total_rows === 21)
  // None of the others has progressed or ended.
  const state = await ken(server)
  assert.equal(held(state).length, 3)
  assert.equal(state.builders.threads, 5)
  assert.equal(state.builders.reserved, 2)
  assert.equal(state.javascript.processes, 2)
  assert.equal(state.javascript.reserved, 2)
  for (const { os_pid: pid, age, design_document: design } of state.javascript.running) {
    assert.ok(pid > 0 && age >= 0 && design.startsWith('_design/'))
  }
  const running = state.active.filter(({ state }) => state === 'running')
  assert.ok(running.length > 0)
  for (const { worker, age } of running) {
    assert.equal(worker.role, '_background')
    assert.ok(age >= 0)
  }
  // One database never holds all processes.
  const counts = looping.map((db) => held(state).filter(({ database }) => database === db).length)
  assert.ok(Math.max(...counts) < 3, counts.join())

  const tasks = (await server.client.ok('GET', '/_active_tasks')).filter(({ database }) => looping.includes(database))
  assert.ok(tasks.length >= 3)
  for (const task of tasks) {
    assert.deepEqual([task.type, task.changes_done, task.progress, task.process_status], ['indexer', 0, 0, 'running'])
    assert.ok(task.total_changes >= 10)
    assert.equal(task.indexer_pid, task.pid)
  }

  // They end when their databases are deleted, although no call of a function returns.
  for (const name of looping) await server.client.ok('DELETE', `/${name}`)
  await waitFor('all of them to end', async () => {
    const { builders, javascript } = await ken(server)
    return builders.busy === 0 && javascript.busy === 0
  })
})

testWithServer(
  'an index whose functions time out answers with its error, is retried after growing pauses, and runs each document once',
  { local: '[couchdb]\nos_process_timeout = 100\n' },
  async (server) => {
    const [db] = await loopingDatabases(server, 1, 1)
    const query = async () => (await server.client.request('GET', `/${db}/_design/0/_view/v`)).json
    const failures = async () => (await ken(server)).waiting.find(({ database }) => database === db)
    await waitFor('it to have failed', async () => (await failures())?.failures >= 1)
    const processed = async () =>
      Number(/^divan_js_failures_total (\d+)/m.exec((await server.client.get('/_node/_local/_prometheus')).text)[1])
    const calls = await processed()
    for (let n = 0; n < 3; ++n) {
      const { error, reason } = await query()
      assert.equal(error, 'index_build_failed')
      assert.match(reason, /Map function `v` of `_design\/0` in .* exceeded the time limit of one call/)
    }
    assert.equal(await processed(), calls)
    const waiting = await waitFor('them to be counted', async () => {
      const found = await failures()
      return found?.failures >= 4 && found
    })
    assert.equal(waiting.why, 'failed')
    assert.match(waiting.error, /exceeded the time limit of one call/)
    assert.ok(waiting.retry_at - waiting.failed_at >= 5000 * 2 ** 3)
  }
)
