// What responses of receivers mean for jobs that are delivered. docs/delivery.md
import assert from 'node:assert/strict'
import { ALLOWED, newType, newUser, withReceiver } from './support/delivery.mjs'
import { closeEarly, drip, halfResponse, hang, late, Receiver, redirect } from './support/receiver.mjs'
import { shareServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = withReceiver(shareServer({ env: ALLOWED }))

// A response with the status that the job's data name.
const asTheDataSay = ({ body }) => JSON.parse(body).status
const json = (status, value, headers = {}) =>
  ({ status, headers: { 'Content-Type': 'application/json', ...headers }, body: typeof value === 'string' ? value : JSON.stringify(value) })

it('statuses 2xx finish the job', async (server, receiver) => {
  receiver.answer = asTheDataSay
  const jobs = await newType(server, receiver.url())
  for (const status of [200, 201, 203, 204, 205, 206, 299]) {
    await jobs.add(`of${status}`, { status })
    const { failures, progress } = await jobs.finished(`of${status}`)
    assert.deepEqual([failures, progress, receiver.of(jobs.type, `of${status}`).length], [0, { status }, 1])
  }
})

it('other statuses fail the attempt, which is repeated up to max_attempts', async (server, receiver) => {
  receiver.answer = asTheDataSay
  for (const status of [300, 304, 400, 401, 403, 404, 408, 422, 429, 499, 500, 501, 502, 503, 504, 599]) {
    const jobs = await newType(server, receiver.url(), {}, { max_attempts: 2 })
    await jobs.add('a', { status })
    const { failures, last_error: error } = await jobs.failed('a')
    assert.deepEqual([failures, receiver.of(jobs.type, 'a').length], [2, 2], `${status}`)
    assert.match(error, new RegExp(`127\\.0\\.0\\.1.*${status}`))
  }
})

it('statuses 409, 410 and those of fail_on fail the job at once', async (server, receiver) => {
  receiver.answer = asTheDataSay
  const jobs = await newType(server, receiver.url(), { fail_on: [400, 422, 501] })
  for (const status of [409, 410, 400, 422, 501]) {
    await jobs.add(`of${status}`, { status })
    const { last_error: error } = await jobs.failed(`of${status}`)
    assert.equal(receiver.of(jobs.type, `of${status}`).length, 1)
    assert.match(error, new RegExp(`${status}`))
  }
})

it('an error has the beginning of the response only', async (server, receiver) => {
  receiver.answer = { status: 410, body: 'It is gone. \u0000\u001b[31m' + 'x'.repeat(2_000_000) }
  const jobs = await newType(server, receiver.url())
  await jobs.add('a')
  const { last_error: error } = await jobs.failed('a')
  assert.match(error, /410.*It is gone\./)
  assert.ok(error.length < 10_000)
})

it('after Retry-After the job waits, which is not a failure', async (server, receiver) => {
  for (const [status, seconds] of [[429, '1'], [503, '1'], [429, '0'], [503, new Date(Date.now() + 1000).toUTCString()]]) {
    receiver.answer = (request, count) => (count === 1 ? { status, headers: { 'Retry-After': seconds } } : 200)
    const jobs = await newType(server, receiver.url(), {}, { max_attempts: 1 })
    await jobs.add('a')
    const { failures } = await jobs.finished('a')
    assert.deepEqual([failures, receiver.of(jobs.type, 'a').length], [0, 2], `${status} ${seconds}`)
  }
})

it('the job waits for the time of Retry-After, at most a day, and the others of its type for a part of it', async (server, receiver) => {
  for (const [value, seconds] of [['3600', 3600], ['1000000', 86_400], ['99999999999999999999', 86_400], [new Date(Date.now() + 7200_000).toUTCString(), 7200]]) {
    receiver.answer = { status: 503, headers: { 'Retry-After': value } }
    const jobs = await newType(server, receiver.url(), { concurrency: 1 }, { max_attempts: 1 })
    const before = Date.now()
    await jobs.add('a')
    const { failures, due_at: due } = await waitFor('the pause', async () => {
      const job = await jobs.get('a')
      return job.state === 'pending' && job.due_at > Date.now() + 1_000_000 && job
    })
    const after = Date.now()
    assert.equal(failures, 0)
    // A date has whole seconds.
    assert.ok(due >= before + seconds * 1000 - 60_000 && due <= after + seconds * 1000 + 1000, `${value}: ${due - before}`)
    const others = await newType(server, receiver.url('/others'))
    receiver.answer = 200
    await jobs.add('b')
    await others.addMany(10)
    await others.allFinished(10)
    assert.equal(receiver.of(jobs.type, 'b').length, 0)
    const paused = await waitFor('the pause to be shown', jobs.watched)
    assert.equal(paused.state, 'paused')
    assert.ok(paused.retry_at <= Date.now() + 60_000)
  }
})

it('time-outs, closed connections and incomplete responses fail the attempt', async (server, receiver) => {
  const faults = { hang, closeEarly, halfResponse, drip, late: () => late(2000) }
  for (const [name, fault] of Object.entries(faults)) {
    receiver.answer = ({ headers }) => (headers['divan-attempt'] === '1' ? (name === 'late' ? fault() : fault) : 200)
    const jobs = await newType(server, receiver.url(), { timeout: 300 })
    await jobs.add(name)
    const { history } = await jobs.finished(name)
    assert.deepEqual(history.map(({ outcome }) => outcome), ['failed', 'finished'], name)
    assert.match(history[0].error, /127\.0\.0\.1/, name)
  }
})

it('a receiver that does not listen fails the attempt', async (server, receiver) => {
  await receiver.stop()
  const jobs = await newType(server, receiver.url(), {}, { max_attempts: 1 })
  await jobs.add('a')
  assert.match((await jobs.failed('a')).last_error, /127\.0\.0\.1/)
  const again = await Receiver.start({ port: receiver.port })
  try {
    await jobs.act('a', 'resubmit')
    await jobs.finished('a')
  } finally {
    await again.stop()
  }
})

it('a request that lasts longer than the timeout of the type is not lost', async (server, receiver) => {
  receiver.answer = () => late(1500)
  const jobs = await newType(server, receiver.url(), { timeout: 300_000 }, { timeout: 100 })
  await jobs.add('a')
  const { history } = await jobs.finished('a')
  assert.deepEqual([history.map(({ outcome }) => outcome), receiver.requests.length], [['finished'], 1])
})

it('with `result`, the JSON of a 2xx response is the result of the job', async (server, receiver) => {
  const jobs = await newType(server, receiver.url(), { result: true })
  const exact = JSON.stringify('x'.repeat(1_000_000 - 2))
  for (const [id, value] of [['object', { sent: [1, 'ü', null] }], ['text', '"abc"'], ['number', '1'], ['large', exact]]) {
    receiver.answer = json(201, value)
    await jobs.add(id)
    const { result, progress } = await jobs.finished(id)
    assert.deepEqual([result, progress], [typeof value === 'string' ? JSON.parse(value) : value, { status: 201 }], id)
  }
})

it('a result that is not JSON or too large is left out, and the progress says why', async (server, receiver) => {
  const jobs = await newType(server, receiver.url(), { result: true })
  const text = (bytes) => JSON.stringify('x'.repeat(bytes - 2))
  const bodies = { text: 'sent', empty: '', half: '{"a":', two: '{} {}', large: text(1_000_001), huge: text(20_000_000) }
  for (const [id, body] of Object.entries(bodies)) {
    receiver.answer = json(200, body)
    await jobs.add(id)
    const { result, progress, failures } = await jobs.finished(id)
    assert.deepEqual([result, failures, progress.status], [undefined, 0, 200], id)
    assert.ok(Object.keys(progress).length > 1, `${id}: ${JSON.stringify(progress)}`)
  }
  assert.equal(receiver.requests.length, Object.keys(bodies).length)
})

it('without `result`, responses are not kept', async (server, receiver) => {
  const jobs = await newType(server, receiver.url())
  for (const [id, body] of [['json', '{"a":1}'], ['text', 'sent'], ['huge', 'x'.repeat(20_000_000)]]) {
    receiver.answer = json(200, body)
    await jobs.add(id)
    const { result, progress } = await jobs.finished(id)
    assert.deepEqual([result, progress], [undefined, { status: 200 }], id)
  }
})

it('after 202 the receiver reports with the lock, and finishes the job', async (server, receiver) => {
  receiver.answer = 202
  const jobs = await newType(server, receiver.url(), { result: true })
  const user = await newUser(server, 'receiver', ['jobs'])
  await jobs.add('a')
  const [{ headers }] = await receiver.received(1)
  const lock = headers['divan-lock']
  await waitFor('the response', async () => (await jobs.get('a')).progress?.status === 202)
  assert.equal((await jobs.get('a')).state, 'running')
  const report = (action, more) => user.post(`/_jobs/${jobs.type}/a/_${action}`, { lock, ...more })
  assert.equal((await report('update', { progress: { done: 1 } })).status, 200)
  assert.deepEqual((await jobs.get('a')).progress, { done: 1 })
  assert.equal((await report('finish', { result: { n: 2 } })).status, 200)
  const { state, result } = await jobs.get('a')
  assert.deepEqual([state, result, receiver.requests.length], ['finished', { n: 2 }, 1])
  assert.equal((await report('finish')).json.error, 'halt')
})

it('after 202 the receiver may report a failure', async (server, receiver) => {
  receiver.answer = 202
  const jobs = await newType(server, receiver.url())
  await jobs.add('a')
  const [{ headers }] = await receiver.received(1)
  await waitFor('the response', async () => (await jobs.get('a')).progress?.status === 202)
  assert.equal((await jobs.act('a', 'fail', { lock: headers['divan-lock'], error: 'no paper', retry: false })).status, 200)
  assert.equal((await jobs.failed('a')).last_error, 'no paper')
})

it('after 202 and silence the job is sent again, and the old lock is invalid', async (server, receiver) => {
  receiver.answer = (request, count) => (count === 1 ? 202 : 200)
  const jobs = await newType(server, receiver.url(), {}, { timeout: 100 })
  await jobs.add('a')
  const { history, failures } = await jobs.finished('a')
  const [first, second] = receiver.requests.map(({ headers }) => headers)
  assert.deepEqual([history.map(({ outcome }) => outcome), failures], [['lost', 'finished'], 0])
  assert.equal(first['webhook-id'], second['webhook-id'])
  assert.ok(Number(first['divan-epoch']) < Number(second['divan-epoch']))
  assert.equal((await jobs.act('a', 'finish', { lock: first['divan-lock'] })).json.error, 'halt')
})

it('jobs that receivers have accepted with 202 do not count as requests', async (server, receiver) => {
  receiver.answer = 202
  const jobs = await newType(server, receiver.url(), { concurrency: 1 })
  await jobs.addMany(5)
  await receiver.received(5)
  await waitFor('the jobs to run', async () => (await jobs.counts()).running === 5)
})

it('a receiver may report and finish before it responds', async (server, receiver) => {
  const jobs = await newType(server, receiver.url(), { result: true })
  // Whatever it responds then.
  const responses = { ok: json(200, { late: true }), accepted: 202, failed: 500, gone: 410, cut: closeEarly, hang }
  for (const [id, response] of Object.entries(responses)) {
    await jobs.deliver({ timeout: response === hang ? 3000 : 60_000 })
    receiver.answer = async ({ headers }, count) => {
      const lock = headers['divan-lock']
      // A kept connection that ends without a response: the request is repeated on a new one.
      if (count === 2 && id === 'cut') return response
      assert.equal((await jobs.act(id, 'update', { lock, progress: { done: 1 } })).status, 200)
      assert.equal((await jobs.act(id, 'finish', { lock, result: { early: true } })).status, 200)
      return response
    }
    await jobs.add(id)
    await jobs.finished(id)
    await waitFor('the end of the request', () => receiver.open === 0)
    const { state, result } = await jobs.get(id)
    assert.deepEqual([state, result], ['finished', { early: true }], id)
    assert.ok(receiver.of(jobs.type, id).length === 1 || id === 'cut', id)
    assert.equal(new Set(receiver.of(jobs.type, id).map(({ headers }) => headers['divan-epoch'])).size, 1, id)
  }
})

it('redirects 307 and 308 within the origin are followed with all fields', async (server, receiver) => {
  for (const status of [307, 308]) {
    receiver.answer = ({ url }) => (url === '/old' ? redirect('/new?a=b', status) : 200)
    const jobs = await newType(server, receiver.url('/old'), { method: 'PUT', headers: { Authorization: 'Bearer abc' } })
    await jobs.add('a', { n: 1 })
    await jobs.finished('a')
    const [first, second, ...more] = receiver.of(jobs.type, 'a')
    assert.deepEqual([second.url, second.method, second.body, more], ['/new?a=b', 'PUT', first.body, []])
    for (const name of ['authorization', 'divan-lock', 'webhook-id', 'content-type', 'divan-attempt']) {
      assert.equal(second.headers[name], first.headers[name], name)
    }
  }
})

it('redirects to another origin get neither the further fields nor the lock', async (server, receiver) => {
  const other = await Receiver.start()
  try {
    receiver.answer = redirect(other.url('/new'), 308)
    const jobs = await newType(server, receiver.url(), { headers: { Authorization: 'Bearer abc', 'X-Key': 'def' } })
    await jobs.add('a', { n: 1 })
    await jobs.finished('a')
    const [{ headers, body, url }] = other.requests
    assert.deepEqual([JSON.parse(body), url, other.requests.length], [{ n: 1 }, '/new', 1])
    for (const name of ['authorization', 'x-key', 'divan-lock']) assert.equal(headers[name], undefined, name)
    for (const name of ['webhook-id', 'divan-id', 'content-type']) assert.equal(headers[name], receiver.requests[0].headers[name], name)
  } finally {
    await other.stop()
  }
})

it('up to three redirects are followed', async (server, receiver) => {
  receiver.answer = ({ url }) => (url === '/0' ? 200 : redirect(`/${Number(url.slice(1)) - 1}`))
  const jobs = await newType(server, receiver.url('/3'), {}, { max_attempts: 1 })
  await jobs.add('a')
  await jobs.finished('a')
  await jobs.deliver({ url: receiver.url('/4') })
  await jobs.add('b')
  assert.match((await jobs.failed('b')).last_error, /redirect/i)
  assert.deepEqual(receiver.of(jobs.type, 'b').map(({ url }) => url), ['/4', '/3', '/2', '/1'])
})

it('other redirects are failures', async (server, receiver) => {
  const answers = [301, 302, 303].map((status) => redirect('/new', status))
  answers.push({ status: 307 }, redirect('ftp://127.0.0.1/'), redirect('file:///etc/passwd'))
  for (const answer of answers) {
    receiver.answer = ({ url }) => (url === '/old' ? answer : 200)
    const jobs = await newType(server, receiver.url('/old'), {}, { max_attempts: 1 })
    await jobs.add('a')
    const { last_error: error } = await jobs.failed('a')
    assert.match(error, /127\.0\.0\.1/)
    assert.equal(receiver.of(jobs.type, 'a').length, 1, JSON.stringify(answer))
  }
})
