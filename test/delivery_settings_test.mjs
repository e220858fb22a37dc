// The setting `deliver` of job types: changes, validation, secrets and permissions. docs/delivery.md
import assert from 'node:assert/strict'
import { ALLOWED, newSecret, newType, newUser, signature, withReceiver } from './support/delivery.mjs'
import { newGate } from './support/receiver.mjs'
import { shareServer } from './support/server.mjs'

const it = withReceiver(shareServer({ env: ALLOWED }))

it('a change of the settings keeps other members, and null restores a default', async (server, receiver) => {
  const secret = newSecret()
  const jobs = await newType(server, receiver.url('/a'), { secret, timeout: 5000, fail_on: [422], rate: { per_second: 100 } })
  await jobs.deliver({ concurrency: 3 })
  await jobs.set({ max_attempts: 7 })
  const { deliver, max_attempts: attempts } = await jobs.settings()
  assert.deepEqual([deliver.url, deliver.timeout, deliver.concurrency, deliver.fail_on, deliver.rate, attempts],
    [receiver.url('/a'), 5000, 3, [422], { per_second: 100 }, 7])
  await jobs.deliver({ timeout: null, concurrency: null, fail_on: null, rate: null, url: receiver.url('/b') })
  const changed = (await jobs.settings()).deliver
  assert.deepEqual([changed.url, changed.timeout ?? 30_000, changed.concurrency ?? 10, changed.fail_on ?? [], changed.rate ?? null],
    [receiver.url('/b'), 30_000, 10, [], null])
  await jobs.add('a')
  await jobs.finished('a')
  const [request] = receiver.requests
  assert.deepEqual([request.url, request.headers['webhook-signature']], ['/b', signature(secret, request)])
})

it('without delivery the jobs wait for workers again', async (server, receiver) => {
  const jobs = await newType(server, receiver.url())
  await jobs.add('a')
  await jobs.finished('a')
  await jobs.set({ deliver: null })
  assert.equal((await jobs.settings()).deliver ?? null, null)
  await jobs.add('b', { n: 1 })
  const { jobs: [job] } = await server.client.ok('POST', `/_jobs/${jobs.type}/_accept`, { timeout: 60_000 })
  assert.deepEqual([job.id, job.data], ['b', { n: 1 }])
  await server.client.ok('POST', `/_jobs/${jobs.type}/b/_finish`, { lock: job.lock })
  assert.equal(receiver.requests.length, 1)
})

it('jobs that wait when delivery begins are sent', async (server, receiver) => {
  const jobs = await newType(server, receiver.url())
  await jobs.set({ deliver: null })
  await jobs.add('a')
  await jobs.deliver({ url: receiver.url() })
  await jobs.finished('a')
})

it('a request ends with the settings with which it began', async (server, receiver) => {
  const gate = newGate()
  receiver.answer = () => gate.passed.then(() => 422)
  const jobs = await newType(server, receiver.url(), { fail_on: [422] })
  await jobs.add('a')
  await receiver.received(1)
  await jobs.set({ deliver: null })
  gate.open()
  assert.equal((await jobs.failed('a')).failures, 1)
})

it('invalid settings are refused with a reason', async (server, receiver) => {
  const url = receiver.url()
  const bad = [
    [1, /deliver/], ['x', /deliver/], [[], /deliver/], [{}, /url/], [{ url: null }, /url/], [{ url, other: 1 }, /other/],
    ...[1, '', 'x', 'ftp://example.com/', 'file:///etc/passwd', 'http://', 'http://ann@example.com/', 'https://ann:pw@example.com/',
      'http://a b/', 'http://a/\r\nx: y'].map((value) => [{ url: value }, /url/]),
    ...[1, 'GET', 'DELETE', 'post '].map((method) => [{ url, method }, /method/]),
    ...['x', [], { a: 1 }, { 'a b': 'x' }, { '': 'x' }, { a: 'x\r\ny: z' }, { a: 'x\u0000' }].map((headers) => [{ url, headers }, /headers/]),
    ...[99, 300_001, 1000.5, '1000'].map((timeout) => [{ url, timeout }, /timeout/]),
    ...[0, 1001, 1.5, '1'].map((concurrency) => [{ url, concurrency }, /concurrency/]),
    ...[5, {}, { per_second: 0 }, { per_second: 0.0009 }, { per_second: 100_001 }, { per_second: '1' }, { per_second: 1, per_minute: 1 }]
      .map((rate) => [{ url, rate }, /rate|per_/]),
    ...[1, '', 'x', newSecret().slice(6), newSecret(23), newSecret(65), 'whsec_!!!', [1], Array.from({ length: 6 }, () => newSecret())]
      .map((secret) => [{ url, secret }, /secret/]),
    ...[422, 'x', ['x'], [99], [1000], [422.5]].map((statuses) => [{ url, fail_on: statuses }, /fail_on/]),
    ...['yes', 1].map((result) => [{ url, result }, /result/])
  ]
  for (const [deliver, reason] of bad) {
    const { status, json } = await server.client.put('/_jobs/refused', { deliver })
    assert.deepEqual([status, json.error], [400, 'bad_request'], JSON.stringify(deliver))
    assert.match(json.reason, reason, JSON.stringify(deliver))
  }
  assert.equal((await server.client.get('/_jobs/refused')).status, 404)
  // A change that is refused changes nothing.
  const jobs = await newType(server, url, { timeout: 1000 })
  const before = await jobs.settings()
  assert.equal((await server.client.put(`/_jobs/${jobs.type}`, { max_attempts: 3, deliver: { timeout: 2000, concurrency: 0 } })).status, 400)
  assert.deepEqual(await jobs.settings(), before)
})

it('the limits of settings are valid', async (server, receiver) => {
  const jobs = await newType(server, receiver.url(), { timeout: 100, concurrency: 1, rate: { per_second: 0.001 }, secret: [newSecret(24)] })
  const secret = Array.from({ length: 5 }, () => newSecret(64))
  await jobs.deliver({ timeout: 300_000, concurrency: 1000, rate: { per_second: 100_000 }, secret })
  await jobs.add('a')
  await jobs.finished('a')
  const [request] = receiver.requests
  assert.deepEqual(request.headers['webhook-signature'].split(' '), secret.map((one) => signature(one, request)))
})

it('secrets and header values are shown to nobody, and what is shown can be written back', async (server, receiver) => {
  const secrets = [newSecret(), newSecret()]
  const headers = { Authorization: 'Bearer very-secret', 'X-Key': 'also-secret' }
  const jobs = await newType(server, receiver.url('/hidden-path'), { secret: secrets, headers })
  const hidden = [...secrets, 'very-secret', 'also-secret']
  for (const target of ['/_jobs', `/_jobs/${jobs.type}`]) {
    const { text } = await server.client.get(target)
    for (const value of hidden) assert.ok(!text.includes(value), text)
  }
  const shown = await jobs.settings()
  assert.deepEqual([shown.deliver.secret, Object.values(shown.deliver.headers)], [['***', '***'], ['***', '***']])
  assert.equal(shown.deliver.url, receiver.url('/hidden-path'))
  await jobs.set({ ...shown, deliver: { ...shown.deliver, timeout: 12_345 } })
  assert.equal((await jobs.settings()).deliver.timeout, 12_345)
  await jobs.add('a')
  await jobs.finished('a')
  const [request] = receiver.requests
  assert.deepEqual([request.headers.authorization, request.headers['x-key']], Object.values(headers))
  assert.deepEqual(request.headers['webhook-signature'].split(' '), secrets.map((secret) => signature(secret, request)))

  // One that is alone, and a header that is changed beside another.
  await jobs.deliver({ secret: secrets[0], headers: { Authorization: '***', 'X-Key': 'new' } })
  const { deliver } = await jobs.settings()
  assert.equal(deliver.secret, '***')
  await jobs.deliver(deliver)
  await jobs.add('b')
  await jobs.finished('b')
  const last = receiver.requests.at(-1)
  assert.deepEqual([last.headers.authorization, last.headers['x-key'], last.headers['webhook-signature']],
    [headers.Authorization, 'new', signature(secrets[0], last)])
  for (const value of hidden) assert.ok(!server.log.includes(value))
})

it('`***` without a present value is refused', async (server, receiver) => {
  const jobs = await newType(server, receiver.url())
  for (const [member, value] of [['secret', '***'], ['headers', { Authorization: '***' }]]) {
    const { status, json } = await server.client.put(`/_jobs/${jobs.type}`, { deliver: { [member]: value } })
    assert.equal(status, 400, member)
    assert.match(json.reason, new RegExp(member))
  }
})

it('only administrators set delivery; users with the role `jobs` add jobs and see the host', async (server, receiver) => {
  const secret = newSecret()
  const jobs = await newType(server, receiver.url('/hidden-path'), { secret, headers: { 'X-Key': 'hidden-key' } })
  const jim = await newUser(server, 'jim', ['jobs'])
  for (const deliver of [{ url: receiver.url() }, { timeout: 1000 }, null]) {
    assert.equal((await jim.put(`/_jobs/${jobs.type}`, { deliver })).status, 403)
  }
  assert.equal((await jim.put('/_jobs/of-jim', { deliver: { url: receiver.url() } })).status, 403)
  assert.equal((await server.client.get('/_jobs/of-jim')).status, 404)
  assert.equal((await jim.put(`/_jobs/${jobs.type}`, { max_attempts: 5 })).status, 201)

  const { deliver } = (await jim.ok('GET', `/_jobs/${jobs.type}`)).settings
  assert.deepEqual(Object.keys(deliver), ['host'])
  assert.match(deliver.host, /^127\.0\.0\.1(:\d+)?$/)
  for (const target of ['/_jobs', `/_jobs/${jobs.type}`]) assert.doesNotMatch((await jim.get(target)).text, /hidden-|whsec_/)
  await jim.ok('PUT', `/_jobs/${jobs.type}/a`, { data: { n: 1 } })
  await jobs.finished('a')
  assert.equal(receiver.requests[0].headers['webhook-signature'], signature(secret, receiver.requests[0]))
})

it('errors name the host of the URL and not its path', async (server, receiver) => {
  receiver.answer = { status: 400, body: 'No such customer.' }
  const jobs = await newType(server, receiver.url('/hidden-path?key=hidden-key'), {}, { max_attempts: 1 })
  await jobs.add('a')
  const { last_error: error } = await jobs.failed('a')
  assert.match(error, /127\.0\.0\.1/)
  assert.match(error, /400/)
  assert.match(error, /No such customer/)
  assert.doesNotMatch(error + server.log, /hidden-/)
})

it('an escaped name of the member is the same member', async (server, receiver) => {
  const jim = await newUser(server, 'jill', ['jobs'])
  const escaped = `{"\\u0064eliver":{"url":"${receiver.url()}"}}`
  assert.equal((await jim.request('PUT', '/_jobs/of-jill', { body: escaped })).status, 403)
  assert.equal((await server.client.get('/_jobs/of-jill')).status, 404)
  const { status, json } = await server.client.request('PUT', '/_jobs/escaped',
    { body: `{"\\u0064eliver":{"url":"${receiver.url()}","timeout":1}}` })
  assert.deepEqual([status, /timeout/.test(json.reason)], [400, true])
})
