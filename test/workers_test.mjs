// Workers, and their jobs when they die, freeze, or lose their server. docs/jobs.md
import assert from 'node:assert/strict'
import path from 'node:path'
import { afterEach } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Server, shareServer, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'
import { killWorkers, WorkerProcess } from './support/worker_process.mjs'

const PLAIN = path.join(path.dirname(fileURLToPath(import.meta.url)), 'kits/plain.mjs')
const LONG = 3_600_000 // milliseconds: longer than any test, so that no timeout interferes
const it = shareServer()
let roles = 0
afterEach(killWorkers)

// A type of jobs of the test's own, and workers in a role of that name.
async function newRole({ client }) {
  const role = `role${++roles}`
  await client.ok('PUT', `/_jobs/${role}`, { timeout: LONG })
  return roleOf(client, role)
}

function roleOf(client, role) {
  const at = (id) => `/_workers/${role}/${id}`
  return {
    role,
    hold: async (id, body = {}) => {
      const stream = await client.open(`${at(id)}/_hold`, { method: 'POST', body: { timeout: LONG, ...body } })
      return Object.assign(stream, await stream.row())
    },
    heartbeat: (id, incarnation) => client.post(`${at(id)}/_heartbeat`, { incarnation }),
    remove: (id) => client.ok('DELETE', at(id)),
    members: async () => (await client.ok('GET', `/_workers/${role}`)).workers,
    add: (id) => client.ok('PUT', `/_jobs/${role}/${id}`, {}),
    get: (id) => client.ok('GET', `/_jobs/${role}/${id}`),
    accept: async ({ id, incarnation }) =>
      (await client.ok('POST', `/_jobs/${role}/_accept`, { timeout: 60_000, worker: { role, id, incarnation } })).jobs[0],
    act: (id, action, body) => client.post(`/_jobs/${role}/${id}/_${action}`, body)
  }
}

async function assertHalt(answer) {
  const { status, json } = await answer
  assert.deepEqual([status, json.error], [409, 'halt'])
}

it('a worker is registered as long as its connection is open, and its jobs are pending when it closes', async (server) => {
  const workers = await newRole(server)
  const held = await workers.hold('w', { timeout: 60_000 })
  assert.deepEqual([held.role, held.id, held.timeout], [workers.role, 'w', 60_000])
  assert.deepEqual((await workers.members()).map(({ id, incarnation }) => [id, incarnation]), [['w', held.incarnation]])
  await workers.add('a')
  const { lock } = await workers.accept(held)
  assert.deepEqual((await workers.get('a')).worker, { role: workers.role, id: 'w' })

  held.close()
  await waitFor('the worker to be gone', async () => (await workers.members()).length === 0)
  assert.equal((await workers.get('a')).state, 'pending')
  await assertHalt(workers.act('a', 'finish', { lock }))
})

it('an attempt that runs too long is ended, and the worker gets a line over the held connection', async (server) => {
  const workers = await newRole(server)
  await server.client.ok('PUT', `/_jobs/${workers.role}`, { max_runtime: 500, max_attempts: 1 })
  const held = await workers.hold('w', { timeout: 600_000 })
  await workers.add('a')
  const { lock, epoch } = await workers.accept(held)
  const { halt } = await held.row()
  assert.match(halt.reason, /`max_runtime` of 500 ms/)
  assert.deepEqual([halt.type, halt.id, halt.lock, halt.epoch], [workers.role, 'a', lock, epoch])
  const { state, failures, last_error: error } = await workers.get('a')
  assert.deepEqual([state, failures, error], ['failed', 1, halt.reason])
  await assertHalt(workers.act('a', 'update', { lock }))
  assert.deepEqual((await workers.members()).map(({ id }) => id), ['w'])
})

it('an attempt that somebody else releases is reported to its worker at once', async (server) => {
  const workers = await newRole(server)
  const held = await workers.hold('w', { timeout: 600_000 })
  await workers.add('a')
  const { lock, epoch } = await workers.accept(held)
  assert.equal((await workers.act('a', 'release', { epoch })).status, 200)
  const { halt } = await held.row()
  assert.deepEqual([halt.type, halt.id, halt.lock, halt.epoch], [workers.role, 'a', lock, epoch])
  assert.equal((await workers.get('a')).state, 'pending')
  await assertHalt(workers.act('a', 'finish', { lock }))
})

it('the list shows for how long a worker has been silent', async (server) => {
  const workers = await newRole(server)
  const { incarnation } = await server.client.ok('PUT', `/_workers/${workers.role}/w`, { timeout: LONG })
  const silence = async () => (await workers.members())[0].silence
  await waitFor('the first read', silence)
  const before = await silence()
  await waitFor('a longer silence', async () => await silence() > before + 1000)
  const { roles } = await server.client.ok('GET', '/_workers')
  assert.ok(roles.find(({ role }) => role === workers.role).workers[0].silence > before)
  // The server's own workers are not waited for.
  assert.equal('silence' in roles.find(({ role }) => role === '_node').workers[0], false)
  await workers.heartbeat('w', incarnation)
  await waitFor('the heartbeat to be seen', async () => await silence() < 1000)
})

it('an open connection does not replace the heartbeats of a worker', async (server) => {
  const workers = await newRole(server)
  const held = await workers.hold('w', { timeout: 900 })
  await workers.add('a')
  const { lock } = await workers.accept(held)
  const lines = []
  for (let line; (line = await held.line()) === ''; ) assert.ok(lines.push(line) < 100, 'it is never evicted')
  assert.ok(lines.length > 0, 'the server gave no sign of life before')
  assert.deepEqual((await workers.members()), [])
  assert.equal((await workers.get('a')).state, 'pending')
  await assertHalt(workers.act('a', 'finish', { lock }))
  await assertHalt(workers.heartbeat('w', held.incarnation))
  assert.match(held.text, /"halt"/)
  assert.equal(await held.ended(), 'end')
})

it('a held connection reports the end of its registration at once', async (server) => {
  const workers = await newRole(server)
  // It is held first, so its next empty line would come first: the halt must be faster than that.
  const other = await workers.hold('other')
  const held = await workers.hold('w')
  await workers.remove('w')
  assert.equal((await held.row()).error, 'halt')
  assert.equal(await held.ended(), 'end')
  assert.equal(other.text.trimEnd().split('\n').length, 1)
  assert.ok(!/\n\n/.test(other.text), 'the halt came only with the next line')
  other.close()
})

it('a worker that reconnects keeps its jobs, however the first connection ends', async (server) => {
  const workers = await newRole(server)
  const first = await workers.hold('w')
  await workers.add('a')
  const { lock } = await workers.accept(first)
  const second = await workers.hold('w', { incarnation: first.incarnation })
  assert.equal(second.incarnation, first.incarnation)
  assert.equal(await first.row(), undefined)
  assert.equal(await first.ended(), 'end')
  assert.deepEqual((await workers.members()).map(({ incarnation }) => incarnation), [first.incarnation])
  assert.equal((await workers.act('a', 'update', { lock })).status, 200)

  const third = await workers.hold('w')
  assert.notEqual(third.incarnation, first.incarnation)
  assert.equal((await second.row()).error, 'halt')
  await assertHalt(workers.act('a', 'update', { lock }))
  third.close()
  await waitFor('it to be gone', async () => (await workers.members()).length === 0)
})

it('the feed of a role shows workers that come and go', async (server) => {
  const { role, heartbeat } = await newRole(server)
  const feed = await server.client.open(`/_workers/${role}?feed=continuous&heartbeat=60000`)
  const ids = async () => (await feed.row()).workers.map(({ id }) => id)
  assert.deepEqual(await ids(), [])
  await server.client.ok('PUT', `/_workers/${role}/w1`, { timeout: 60_000 })
  assert.deepEqual(await ids(), ['w1'])
  // A heartbeat is not a change.
  assert.equal((await heartbeat('w1')).status, 200)
  await server.client.ok('PUT', `/_workers/${role}/w2`, { timeout: 60_000 })
  assert.deepEqual(await ids(), ['w1', 'w2'])
  const { seq } = await server.client.ok('GET', `/_workers/${role}`)
  const poll = await server.client.open(`/_workers/${role}?feed=longpoll&since=${seq}&heartbeat=60000`)
  await server.client.ok('DELETE', `/_workers/${role}/w1`)
  assert.deepEqual(await ids(), ['w2'])
  assert.equal(await poll.ended(), 'end')
  assert.deepEqual(JSON.parse(poll.text).results[0].workers.map(({ id }) => id), ['w2'])
  feed.close()
})

it('clients that leave the feed of a role, or do not read it, do not affect others', async (server) => {
  const { role } = await newRole(server)
  const follow = () => server.client.open(`/_workers/${role}?feed=continuous&heartbeat=60000`)
  const [leaves, reads, sleeps] = [await follow(), await follow(), await follow()]
  sleeps.response.pause()
  const enter = async (n) => {
    await server.client.ok('PUT', `/_workers/${role}/w`, { timeout: 60_000, opts: { n, text: 'x'.repeat(9_000) } })
    for (let row = { workers: [] }; row.workers[0]?.opts.n !== n; ) row = await reads.row()
  }
  await enter(1)
  leaves.close()
  for (let n = 2; n < 300; ++n) await enter(n)
  const { seq } = await server.client.ok('GET', `/_workers/${role}`)
  // It sees the last state when it reads again.
  sleeps.response.resume()
  for (let row; row?.seq !== seq; ) row = await sleeps.row()
  reads.close()
  sleeps.close()
})

for (const how of ['hold', 'beat']) {
  const what = how === 'hold' ? 'that holds a connection' : 'that only beats'
  const timeout = 1_000

  async function start(server) {
    const workers = await newRole(server)
    const db = await server.newDatabase()
    const url = server.url.replace('http://', `http://${server.credentials}@`)
    const worker = (id, settings) =>
      new WorkerProcess(process.execPath, PLAIN, url, JSON.stringify({ type: workers.role, id, how, db, ...settings }))
    return { workers, db, worker }
  }

  it(`the job of a process ${what} runs elsewhere when it is killed`, async (server) => {
    const { workers, worker } = await start(server)
    await workers.add('a')
    // Only the end of its connection shows that a worker that holds one has ended.
    const first = worker('first', { timeout: how === 'hold' ? LONG : timeout })
    await first.says('ran a')
    const second = worker('second', { timeout: LONG })
    await second.says('online')
    first.kill('SIGKILL')
    await second.says('ran a')
    assert.deepEqual((await workers.members()).map(({ id }) => id), ['second'])
  })

  it(`a process ${what} and was frozen cannot report any more`, async (server) => {
    const { workers, db, worker } = await start(server)
    await workers.add('a')
    const first = worker('first', { timeout })
    await first.says('ran a')
    first.kill('SIGSTOP')
    const second = worker('second', { timeout: LONG })
    // While the first one is still frozen.
    await second.says('ran a')
    const { epoch } = await workers.get('a')

    first.tell('end')
    first.kill('SIGCONT')
    for (const action of ['update', 'transact', 'fail', 'release', 'finish']) await first.says(`${action} 409 halt`)
    await first.says('heartbeat 409 halt')
    if (how === 'hold') await first.says('received halt')
    const job = await workers.get('a')
    assert.deepEqual([job.state, job.epoch, job.worker.id, job.progress, job.failures], ['running', epoch, 'second', undefined, 0])
    assert.equal((await server.client.get(`/${db}/first`)).status, 404)

    second.tell('end')
    await second.says('finish 409 halt')
    assert.deepEqual([second.said('update'), second.said('transact')], ['200', '200'].map((status) => `${status} `))
    assert.deepEqual([(await workers.get('a')).state, (await workers.get('a')).data], ['finished', { by: 'second' }])
    assert.equal((await server.client.get(`/${db}/second`)).status, 200)
    assert.equal((await server.client.get(`/${db}/first`)).status, 404)
  })
}

for (const how of ['stop', 'kill']) {
  testWithServer(`a worker that reconnects within its timeout keeps its jobs, another is evicted (${how})`, {}, async (server) => {
    const before = await newRole(server)
    const held = await before.hold('back')
    const lost = await before.hold('lost', { timeout: 4_000 })
    await before.add('a')
    const { lock } = await before.accept(held)
    await before.add('b')
    assert.equal((await before.heartbeat('lost', lost.incarnation)).status, 200)
    await before.accept(lost)
    const { port } = server.client
    if (how === 'stop') {
      server.ownsDirectory = false // keep its data
      await server.stop()
      // The end of the connection is not a halt.
      assert.equal(await held.row(), undefined)
      assert.equal(await held.ended(), 'end')
    } else {
      await server.kill()
    }

    const after = await Server.start({ dataDir: server.dataDir, port })
    try {
      const workers = roleOf(after.client, before.role)
      assert.equal((await workers.get('a')).state, 'running')
      const again = await workers.hold('back', { incarnation: held.incarnation })
      assert.equal(again.incarnation, held.incarnation)
      await waitFor('the other one to be missed', async () => (await workers.get('b')).state === 'pending')
      const job = await workers.get('a')
      assert.deepEqual([job.state, job.attempt], ['running', 1])
      assert.equal((await workers.act('a', 'finish', { lock })).status, 200)
      again.close()
      await waitFor('it to be gone', async () => (await workers.members()).length === 0)
    } finally {
      await after.kill()
    }
  })
}
