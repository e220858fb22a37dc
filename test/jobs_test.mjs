// The job queue and its workers over HTTP: waiting, waking, and fencing. docs/jobs.md
import assert from 'node:assert/strict'
import { shareServer, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer()
let types = 0

// Declares a type of the test's own and returns functions for it.
async function newType(server, settings = {}) {
  const type = `type${++types}`
  const { client } = server
  await client.ok('PUT', `/_jobs/${type}`, settings)
  return {
    type,
    add: (id, job = {}) => client.ok('PUT', `/_jobs/${type}/${id}`, job),
    get: (id) => client.ok('GET', `/_jobs/${type}/${id}`),
    counts: async () => (await client.ok('GET', `/_jobs/${type}`)).counts,
    accept: async (options = {}) =>
      (await client.ok('POST', `/_jobs/${type}/_accept`, { timeout: 60_000, ...options })).jobs,
    act: (id, action, body) => client.post(`/_jobs/${type}/${id}/_${action}`, body),
    follow: (id, feed) => client.open(`/_jobs/${type}/${id}?feed=${feed}&heartbeat=60000`)
  }
}

async function assertHalt(answer) {
  const { status, json } = await answer
  assert.deepEqual([status, json.error], [409, 'halt'])
}

it('a job from its adding to its end, as its feed shows it', async (server) => {
  const jobs = await newType(server)
  await jobs.add('a', { data: { to: 'ann' } })
  const feed = await jobs.follow('a', 'continuous')
  const events = await jobs.follow('a', 'eventsource')
  assert.equal((await feed.row()).state, 'pending')

  const [{ lock, data, attempt }] = await jobs.accept()
  assert.deepEqual([data, attempt], [{ to: 'ann' }, 1])
  assert.equal((await feed.row()).state, 'running')

  assert.equal((await jobs.act('a', 'update', { lock, progress: { done: 1 } })).status, 200)
  assert.deepEqual((await feed.row()).progress, { done: 1 })

  assert.equal((await jobs.act('a', 'finish', { lock, data: { sent: true } })).status, 200)
  const last = await feed.row()
  assert.deepEqual([last.state, last.data], ['finished', { sent: true }])
  assert.equal(await feed.ended(), 'end')
  assert.equal(await events.ended(), 'end')
  assert.ok(events.text.includes('"state":"finished"'))
  assert.deepEqual(await jobs.counts(), { pending: 0, running: 0, finished: 1, failed: 0, cancelled: 0 })
})

it('the feed of a job shows its removal', async (server) => {
  const jobs = await newType(server)
  await jobs.add('a')
  const feed = await jobs.follow('a', 'continuous')
  await feed.row()
  await server.client.ok('DELETE', `/_jobs/${jobs.type}/a`)
  assert.equal((await feed.row()).state, 'not_found')
  assert.equal(await feed.ended(), 'end')
})

it('the feed of a running job shows its removal, and its worker gets halt', async (server) => {
  const jobs = await newType(server)
  await jobs.add('a')
  const [{ lock }] = await jobs.accept()
  const feed = await jobs.follow('a', 'continuous')
  assert.equal((await feed.row()).state, 'running')
  await server.client.ok('DELETE', `/_jobs/${jobs.type}/a`)
  assert.equal((await feed.row()).state, 'not_found')
  assert.equal(await feed.ended(), 'end')
  for (const action of ['update', 'finish']) await assertHalt(jobs.act('a', action, { lock }))
})

it('the pause after a failure doubles, up to its limit', async (server) => {
  const jobs = await newType(server, { backoff_min: 10_000, backoff_max: 25_000 })
  await jobs.add('a')
  for (const pause of [10_000, 20_000, 25_000, 25_000]) {
    const [{ lock }] = await jobs.accept({ max_scheduled_at: Date.now() + 3_600_000 })
    const before = Date.now()
    assert.equal((await jobs.act('a', 'fail', { lock })).status, 200)
    const after = Date.now()
    // With a jitter of up to a quarter.
    const { due_at: due } = await jobs.get('a')
    assert.ok(due >= before + pause * 0.75 - 1 && due <= after + pause, `${due - before} ms, not ${pause}`)
  }
})

it('an accept that waits gets a job when it is added', async (server) => {
  const jobs = await newType(server)
  const waiting = jobs.accept()
  for (let i = 0; i < 20; ++i) assert.equal((await jobs.counts()).pending, 0)
  await jobs.add('a')
  assert.deepEqual((await waiting).map(({ id }) => id), ['a'])
})

it('an accept that waits gets a job when it is due, and not before', async (server) => {
  const jobs = await newType(server)
  const due = Date.now() + 300
  await jobs.add('a', { scheduled_at: due })
  assert.deepEqual(await jobs.accept({ timeout: 0 }), [])
  const [{ id }] = await jobs.accept()
  assert.equal(id, 'a')
  assert.ok(Date.now() >= due)
})

it('an accept that waits gets a job when it is released', async (server) => {
  const jobs = await newType(server)
  await jobs.add('a')
  const [{ lock }] = await jobs.accept()
  const waiting = jobs.accept()
  await jobs.act('a', 'release', { lock })
  assert.equal((await waiting)[0].id, 'a')
})

it('an accept finishes jobs first, in the same request', async (server) => {
  const jobs = await newType(server, { max_running: 1 })
  const other = await newType(server)
  for (const id of ['a', 'b']) await jobs.add(id)
  const [first] = await jobs.accept()
  // The limit of running jobs is reached, but not after the finish.
  const { client } = server
  const finish = (job, more) => ({ type: job.type, id: job.id, lock: job.lock, ...more })
  const body = { types: [jobs.type, other.type], finish: [finish(first, { result: { n: 1 } })] }
  const next = await client.ok('POST', '/_jobs/_accept', body)
  assert.deepEqual([next.jobs.map(({ id }) => id), next.finished], [['b'], [{ ok: true }]])
  assert.deepEqual([(await jobs.get('a')).state, (await jobs.get('a')).result], ['finished', { n: 1 }])

  // Each has its own result, and the response does not wait for jobs.
  const again = await client.ok('POST', '/_jobs/_accept', { ...body, finish: [finish(first), finish(next.jobs[0])] })
  assert.deepEqual([again.jobs, again.finished[0].error, again.finished[0].status, again.finished[1]], [[], 'halt', 409, { ok: true }])

  // More than an io thread ends at once.
  for (let i = 0; i < 100; ++i) await other.add(`job${i}`)
  const many = (await other.accept({ limit: 99 })).map(({ id, lock }) => ({ id, lock }))
  const rest = await client.ok('POST', `/_jobs/${other.type}/_accept`, { finish: many })
  assert.deepEqual([rest.jobs.length, rest.finished.length, rest.finished.every(({ ok }) => ok)], [1, 99, true])
  assert.deepEqual(await other.counts(), { pending: 0, running: 1, finished: 99, failed: 0, cancelled: 0 })
})

it('an accept with `finish` that is refused finishes nothing', async (server) => {
  const jobs = await newType(server)
  await jobs.add('a')
  const [{ id, lock }] = await jobs.accept()
  const accept = async (more) => {
    const { status, json } = await server.client.post(`/_jobs/${jobs.type}/_accept`, { finish: [{ id, lock }], ...more })
    return [status, json.error]
  }
  assert.deepEqual(await accept({ worker: { role: 'r', id: 'nobody' } }), [404, 'not_found'])
  assert.deepEqual(await accept({ timeout: 1 }), [400, 'bad_request'])
  assert.deepEqual(await accept({ finish: [{ id, lock }, { id, lock }] }), [400, 'bad_request'])
  assert.deepEqual(await accept({ finish: [{ id }] }), [400, 'bad_request'])
  assert.deepEqual(await accept({ finish: [{ id, lock, type: jobs.type }] }), [400, 'bad_request'])
  assert.equal((await jobs.get('a')).state, 'running')
})

it('an accept that waits for a type at its max_running gets a job when another ends, or the limit grows', async (server) => {
  const jobs = await newType(server, { max_running: 1 })
  for (const id of ['a', 'b', 'c']) await jobs.add(id)
  const [first] = await jobs.accept()
  const waiting = jobs.accept()
  for (let i = 0; i < 20; ++i) assert.equal((await jobs.counts()).running, 1)
  assert.equal((await jobs.act(first.id, 'finish', { lock: first.lock })).status, 200)
  assert.equal((await waiting).length, 1)

  const again = jobs.accept()
  for (let i = 0; i < 20; ++i) assert.equal((await jobs.counts()).running, 1)
  await server.client.ok('PUT', `/_jobs/${jobs.type}`, { max_running: 2 })
  assert.equal((await again).length, 1)
})

it('many workers share many jobs, and each job runs once', async (server) => {
  const jobs = await newType(server)
  const all = Array.from({ length: 60 }, (_, i) => ({ id: `job${String(i).padStart(2, '0')}` }))
  const done = []
  const epochs = new Set()
  const worker = async () => {
    while (done.length < all.length) {
      for (const { id, lock, epoch } of await jobs.accept({ limit: 3, timeout: 50 })) {
        assert.equal((await jobs.act(id, 'finish', { lock })).status, 200)
        done.push(id)
        epochs.add(`${id} ${epoch}`)
      }
    }
  }
  const workers = Array.from({ length: 6 }, worker)
  await server.client.ok('POST', `/_jobs/${jobs.type}/_bulk`, { jobs: all })
  await Promise.all(workers)
  assert.deepEqual(done.sort(), all.map(({ id }) => id))
  assert.equal(epochs.size, all.length)
  assert.deepEqual(await jobs.counts(), { pending: 0, running: 0, finished: 60, failed: 0, cancelled: 0 })
})

it('a silent worker loses its job to another, and its reports are refused', async (server) => {
  const jobs = await newType(server, { timeout: 100 })
  await jobs.add('a', { data: 0 })
  let [first] = await jobs.accept()
  let [second] = await jobs.accept() // waits until the first attempt is lost
  await server.client.ok('PUT', `/_jobs/${jobs.type}`, { timeout: 600_000 })
  // On a slow machine the second attempt may have timed out before the timeout was raised.
  while ((await jobs.act('a', 'update', { lock: second.lock })).status !== 200) {
    first = second
    ;[second] = await jobs.accept()
  }
  assert.ok(second.epoch > first.epoch)
  assert.equal(second.attempt, first.attempt + 1)
  for (const action of ['update', 'finish', 'fail', 'release']) {
    await assertHalt(jobs.act('a', action, { lock: first.lock }))
  }
  assert.equal((await jobs.act('a', 'finish', { lock: second.lock, data: 2 })).status, 200)
  assert.equal((await jobs.get('a')).data, 2)
})

it("a job's data may be as large as a document", async (server) => {
  const jobs = await newType(server)
  const data = { text: 'ü'.repeat(1_000_000) }
  await jobs.add('a', { data })
  const [accepted] = await jobs.accept()
  assert.deepEqual(accepted.data, data)
  const text = 'x'.repeat(9_000_000)
  const { status, json } = await server.client.put(`/_jobs/${jobs.type}/b`, { data: text })
  assert.deepEqual([status, json.error], [413, 'too_large'])
})

it('more jobs than a transaction can hold are refused, and the error has the possible number', async (server) => {
  const jobs = await newType(server)
  const { status, json } = await server.client.post(`/_jobs/${jobs.type}/_bulk`, { jobs: new Array(100_000).fill({}) })
  assert.deepEqual([status, json.error], [413, 'transaction_too_large'])
  assert.match(json.reason, /^The 100000 jobs of this request exceed the 10000000 bytes that a transaction may write/)
  const most = Number(/in several requests of at most (\d+) small jobs/.exec(json.reason)[1])
  assert.equal((await jobs.counts()).pending, 0)
  // The maximum is accepted.
  const added = await server.client.post(`/_jobs/${jobs.type}/_bulk`, { jobs: new Array(most).fill({}) })
  assert.equal(added.status, 201)
  assert.equal((await jobs.counts()).pending, most)
})

testWithServer('accepts that wait are answered when the server stops', {}, async (server) => {
  const jobs = await newType(server)
  const held = await server.client.open('/_workers/role/w/_hold', { method: 'POST', body: { timeout: 60_000 } })
  await held.row()
  // All requests that wait have subscribed to the server's stop.
  const before = await server.metric('divan_events_subscribers')
  const other = server.as(server.credentials)
  const waiting = other.post(`/_jobs/${jobs.type}/_accept`, { timeout: 60_000 })
  await waitFor('the acceptor to wait', async () => (await server.metric('divan_events_subscribers')) > before)
  await server.stop()
  assert.deepEqual((await waiting).json, { jobs: [] })
  other.close()
  assert.equal(await held.ended(), 'end')
})

it('a periodic job runs for its tick, and waits for the next one', async (server) => {
  const jobs = await newType(server)
  await jobs.add('tick', { data: { n: 1 }, schedule: { cron: '* * * * *' } })
  const { scheduled_at: tick, state } = await jobs.get('tick')
  assert.equal(state, 'pending')
  assert.ok(tick > Date.now() - 5_000 && tick % 60_000 === 0)
  const [{ lock, data }] = await jobs.accept({ max_scheduled_at: tick, timeout: 0 })
  assert.deepEqual(data, { n: 1 })
  assert.equal((await jobs.act('tick', 'finish', { lock, data: { n: 2 } })).status, 200)
  const next = await jobs.get('tick')
  assert.equal(next.state, 'pending')
  assert.ok(next.scheduled_at > tick && next.scheduled_at % 60_000 === 0)
  assert.deepEqual(next.data, { n: 2 })
})

it('the feed of all jobs shows each change, and the metrics count it', async (server) => {
  const { client } = server
  const feed = await client.open('/_jobs/_events?heartbeat=60000')
  const events = await client.open('/_jobs/_events?feed=eventsource&heartbeat=60000')
  const jobs = await newType(server)
  // Other tests may use the queue meanwhile.
  const next = async () => {
    for (;;) {
      const row = await feed.row()
      if (row.type === jobs.type) return row
    }
  }
  await jobs.add('a')
  const [{ lock }] = await jobs.accept()
  await jobs.act('a', 'fail', { lock, error: 'no' })
  const rows = [await next(), await next(), await next()]
  assert.deepEqual(
    rows.map(({ id, state, attempt, outcome }) => [id, state, attempt, outcome]),
    [
      ['a', 'pending', 0, undefined],
      ['a', 'running', 1, undefined],
      ['a', 'pending', 1, 'failed']
    ]
  )
  await waitFor('the event', () => events.text.includes('"outcome":"failed"'))
  const metrics = await (await client.get('/_node/_local/_prometheus')).text
  assert.match(metrics, new RegExp(`divan_job_attempts_total{outcome="failed",type="${jobs.type}"} 1`))
  assert.match(metrics, new RegExp(`divan_job_run_seconds_count{type="${jobs.type}"} 1`))
  assert.equal((await client.get('/_jobs/_events?feed=longpoll')).status, 400)
})

it('a job shows its attempts, the oldest first', async (server) => {
  const jobs = await newType(server, { backoff_min: 0, backoff_max: 0 })
  await jobs.add('a')
  const [first] = await jobs.accept()
  await jobs.act('a', 'fail', { lock: first.lock, error: 'no' })
  const [second] = await jobs.accept()
  const shown = async () =>
    (await jobs.get('a')).history.map(({ attempt, epoch, outcome, error }) => [attempt, epoch, outcome, error])
  const failed = [1, first.epoch, 'failed', 'no']
  assert.deepEqual(await shown(), [failed, [2, second.epoch, undefined, undefined]])
  await jobs.act('a', 'finish', { lock: second.lock })
  assert.deepEqual(await shown(), [failed, [2, second.epoch, 'finished', undefined]])
})
