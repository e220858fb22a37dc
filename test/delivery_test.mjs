// Jobs that the server sends as webhooks: requests, signatures, and when there are none. docs/delivery.md
import assert from 'node:assert/strict'
import { Webhook } from 'standardwebhooks'
import { ALLOWED, newSecret, newType, newUser, signature, withReceiver } from './support/delivery.mjs'
import { newGate } from './support/receiver.mjs'
import { runDivan, shareServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = withReceiver(shareServer({ env: ALLOWED }))

it('a job is sent as a request', async (server, receiver) => {
  const began = Math.floor(Date.now() / 1000)
  const jobs = await newType(server, receiver.url('/hooks?a=b'))
  const data = { to: 'ann', text: 'Grüße \u0000 "…"', list: [1, null, true, 1.5] }
  await jobs.add('welcome', data)
  const job = await jobs.finished('welcome')
  const [{ method, url, headers, body }] = receiver.requests
  assert.deepEqual([receiver.requests.length, method, url, JSON.parse(body)], [1, 'POST', '/hooks?a=b', data])
  assert.equal(headers['content-type'], 'application/json')
  assert.match(headers['webhook-id'], /^[^\s.]+$/)
  assert.match(headers['webhook-timestamp'], /^\d+$/)
  assert.ok(headers['webhook-timestamp'] >= began && headers['webhook-timestamp'] <= Date.now() / 1000)
  assert.equal(headers['webhook-signature'], undefined)
  assert.deepEqual([headers['divan-type'], headers['divan-id'], headers['divan-attempt']], [jobs.type, 'welcome', '1'])
  assert.ok(headers['divan-lock'])
  assert.equal(headers['divan-epoch'], `${job.epoch}`)
  assert.deepEqual([job.attempt, job.failures, job.progress, job.result], [1, 0, { status: 200 }, undefined])
  assert.equal(job.history.at(-1).outcome, 'finished')
})

it('the id of a job is percent-encoded', async (server, receiver) => {
  const jobs = await newType(server, receiver.url())
  const id = 'ä b/100%\u20ac"'
  await jobs.add(id)
  await jobs.finished(id)
  const encoded = receiver.requests[0].headers['divan-id']
  assert.match(encoded, /^[\x21-\x7e]+$/)
  assert.equal(decodeURIComponent(encoded), id)
})

it('the method and further header fields are those of the settings', async (server, receiver) => {
  const headers = { Authorization: 'Bearer abc', 'X-Two-Words': 'one two', 'Content-Type': 'application/vnd.example+json' }
  const jobs = await newType(server, receiver.url(), { method: 'PATCH', headers })
  await jobs.add('a')
  await jobs.finished('a')
  await jobs.deliver({ method: 'PUT' })
  await jobs.add('b')
  await jobs.finished('b')
  await jobs.deliver({ method: null, headers: null })
  await jobs.add('c')
  await jobs.finished('c')
  const [a, b, c] = receiver.requests
  assert.deepEqual([a.method, b.method, c.method], ['PATCH', 'PUT', 'POST'])
  for (const request of [a, b]) {
    assert.deepEqual(['authorization', 'x-two-words', 'content-type'].map((name) => request.headers[name]), Object.values(headers))
  }
  assert.deepEqual([c.headers.authorization, c.headers['content-type']], [undefined, 'application/json'])
})

it('jobs are sent at their time and not before', async (server, receiver) => {
  const jobs = await newType(server, receiver.url())
  const due = Date.now() + 300
  await jobs.add('later', {}, { scheduled_at: due })
  await jobs.finished('later')
  assert.ok(receiver.requests[0].at >= due)
})

it('signatures are those of Standard Webhooks', async (server, receiver) => {
  for (const bytes of [24, 32, 64]) {
    const secret = newSecret(bytes)
    const jobs = await newType(server, receiver.url(), { secret })
    const data = { text: 'ü'.repeat(1000) }
    await jobs.add('a', data)
    await jobs.finished('a')
    const request = receiver.requests.at(-1)
    assert.equal(request.headers['webhook-signature'], signature(secret, request))
    assert.deepEqual(new Webhook(secret).verify(request.body, request.headers), data)
    assert.throws(() => new Webhook(newSecret()).verify(request.body, request.headers), /No matching signature/)
  }
})

it('a secret is replaced while both are valid', async (server, receiver) => {
  const [first, second] = [newSecret(), newSecret()]
  const jobs = await newType(server, receiver.url(), { secret: first })
  const send = async (id) => {
    await jobs.add(id)
    await jobs.finished(id)
    return receiver.requests.at(-1)
  }
  const verifies = (secret, { body, headers }) => {
    try {
      return !!new Webhook(secret).verify(body, headers)
    } catch {
      return false
    }
  }
  await jobs.deliver({ secret: [first, second] })
  const both = await send('a')
  assert.deepEqual(both.headers['webhook-signature'].split(' '), [signature(first, both), signature(second, both)])
  assert.deepEqual([verifies(first, both), verifies(second, both)], [true, true])
  await jobs.deliver({ secret: second })
  const one = await send('b')
  assert.deepEqual([verifies(first, one), verifies(second, one)], [false, true])
  await jobs.deliver({ secret: null })
  assert.equal((await send('c')).headers['webhook-signature'], undefined)
})

it('the id of the message is the same in all attempts at a run with the same data', async (server, receiver) => {
  receiver.answer = (request, count) => (count < 3 ? 400 : 200)
  const jobs = await newType(server, receiver.url(), { secret: newSecret() })
  await jobs.add('a', { n: 1 })
  await jobs.finished('a')
  const attempts = receiver.requests.map(({ headers }) => headers)
  assert.deepEqual(attempts.map((headers) => headers['divan-attempt']), ['1', '2', '3'])
  assert.equal(new Set(attempts.map((headers) => headers['webhook-id'])).size, 1)
  assert.equal(new Set(attempts.map((headers) => headers['divan-lock'])).size, 3)
  const epochs = attempts.map((headers) => Number(headers['divan-epoch']))
  assert.ok(epochs[0] < epochs[1] && epochs[1] < epochs[2], `${epochs}`)

  // Another run, and another job.
  assert.equal((await jobs.act('a', 'resubmit')).status, 200)
  await receiver.received(4)
  await jobs.add('b', { n: 1 })
  await receiver.received(5)
  assert.equal(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size, 3)
})

it('the id of the message is another one when the data have changed between attempts', async (server, receiver) => {
  receiver.answer = (request, count) => (count === 1 ? 400 : 200)
  const jobs = await newType(server, receiver.url(), {}, { backoff_min: 3_600_000, backoff_max: 3_600_000 })
  await jobs.add('a', { n: 1 })
  await waitFor('the failure', async () => (await jobs.get('a')).failures === 1)
  await jobs.add('a', { n: 2 }, { scheduled_at: 0 })
  await jobs.finished('a')
  const [first, second] = receiver.requests
  assert.deepEqual([JSON.parse(first.body), JSON.parse(second.body)], [{ n: 1 }, { n: 2 }])
  assert.notEqual(first.headers['webhook-id'], second.headers['webhook-id'])
})

it('a paused type is not delivered', async (server, receiver) => {
  const jobs = await newType(server, receiver.url('/paused'), {}, { paused: true })
  const others = await newType(server, receiver.url('/others'))
  await jobs.add('a')
  await others.addMany(20)
  await others.allFinished(20)
  assert.equal(receiver.of(jobs.type, 'a').length, 0)
  assert.equal((await jobs.get('a')).state, 'pending')
  await jobs.set({ paused: false })
  await jobs.finished('a')
})

it('a job that is cancelled before is not sent, and one that is cancelled meanwhile is cancelled', async (server, receiver) => {
  const gate = newGate()
  receiver.answer = () => gate.passed.then(() => 200)
  const jobs = await newType(server, receiver.url(), {}, { paused: true })
  await jobs.add('never')
  assert.equal((await jobs.act('never', 'cancel')).status, 200)
  await jobs.set({ paused: false })
  await jobs.add('meanwhile')
  await receiver.received(1)
  assert.equal((await jobs.act('meanwhile', 'cancel')).status, 200)
  gate.open()
  await jobs.cancelled('meanwhile')
  assert.deepEqual([receiver.of(jobs.type, 'never').length, (await jobs.get('never')).state], [0, 'cancelled'])
})

it('a job that is added again during its request is sent once more', async (server, receiver) => {
  const gate = newGate()
  receiver.answer = (request, count) => (count === 1 ? gate.passed.then(() => 200) : 200)
  const jobs = await newType(server, receiver.url())
  await jobs.add('a', { n: 1 })
  await receiver.received(1)
  await jobs.add('a', { n: 2 })
  gate.open()
  await receiver.received(2)
  await jobs.finished('a')
  assert.deepEqual(receiver.requests.map(({ body }) => JSON.parse(body).n), [1, 2])
  assert.notEqual(...receiver.requests.map(({ headers }) => headers['webhook-id']))
})

it('changes of documents become requests through a trigger', async (server, receiver) => {
  const jobs = await newType(server, receiver.url())
  const db = await server.newDatabase()
  const trigger = { selector: { kind: 'user' }, on: ['created'], job: { type: jobs.type, id: 'welcome-{_id}', data: { to: '{email}' } } }
  await server.client.ok('PUT', `/${db}/_design/mails`, { triggers: { welcome: trigger } })
  await server.client.ok('POST', `/${db}/_bulk_docs`, { docs: [{ _id: 'ann', kind: 'user', email: 'ann@example.com' }, { _id: 'x', kind: 'other' }] })
  await jobs.finished('welcome-ann')
  const { to, _trigger: source } = JSON.parse(receiver.requests[0].body)
  assert.deepEqual([receiver.requests.length, to, source.db, source.id], [1, 'ann@example.com', db, 'ann'])
})

it('`divan jobs redeliver` sends again what has failed, or the jobs that are named', async (server, receiver) => {
  receiver.answer = ({ body }, count) => (count === 1 && JSON.parse(body).bad ? 410 : 200)
  const jobs = await newType(server, receiver.url())
  for (const [id, bad] of [['a', true], ['b', true], ['c', false], ['d', false]]) await jobs.add(id, { bad })
  for (const id of ['a', 'b']) await jobs.failed(id)
  for (const id of ['c', 'd']) await jobs.finished(id)
  const redeliver = async (...ids) => {
    const { code, stderr } = await runDivan(['jobs', 'redeliver', jobs.type, ...ids, '--url', server.url, '--user', server.credentials])
    assert.equal(code, 0, stderr)
  }
  await redeliver()
  await jobs.allFinished(4)
  assert.equal(receiver.requests.length, 6)
  await redeliver('c')
  await receiver.received(7)
  await jobs.allFinished(4)
  assert.deepEqual(['a', 'b', 'c', 'd'].map((id) => receiver.of(jobs.type, id).length), [2, 2, 2, 1])
})

it('GET /_deliver counts requests, for administrators', async (server, receiver) => {
  const shown = async () => (await server.client.ok('GET', '/_deliver')).nodes[0]
  const before = await waitFor('the node', shown)
  assert.equal(typeof before.node, 'string')
  const gate = newGate()
  receiver.answer = ({ body }) => (JSON.parse(body).bad ? 410 : gate.passed.then(() => 200))
  const jobs = await newType(server, receiver.url())
  await jobs.add('good')
  await jobs.add('bad', { bad: true })
  await jobs.failed('bad')
  await waitFor('the request under way', async () => (await shown()).requests >= 1)
  gate.open()
  await jobs.finished('good')
  await waitFor('the counts', async () => {
    const now = await shown()
    return now.delivered > before.delivered && now.failed > before.failed && now.requests === 0
  })
  assert.equal((await (await newUser(server, 'john', ['jobs'])).get('/_deliver')).status, 401)
  assert.equal((await server.as(undefined).get('/_deliver')).status, 401)
})
