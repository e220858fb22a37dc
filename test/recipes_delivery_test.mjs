// The programs of docs/delivery-recipes.md, run unchanged except for ports, and killed where the text says that they tolerate it.
import assert from 'node:assert/strict'
import net from 'node:net'
import { PNG } from 'pngjs'
import { Webhook } from 'standardwebhooks'
import { freePort } from './support/cluster.mjs'
import { ALLOWED, newSecret } from './support/delivery.mjs'
import { programs, run } from './support/program.mjs'
import { closeEarly, hang, Receiver } from './support/receiver.mjs'
import { runDivan, Server, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const FILE = 'docs/delivery-recipes.md'

/**
 * A test of the programs under a heading: `body(server, at)`. `at.start(n, env, heading)` runs the n-th program, with the port of
 * `at.receiver` instead of the text's 8000; `at.restart(server)` kills the server and returns one on its data and port; `at.listen()`
 * starts a Receiver, at that port by default. What still runs at the end is ended.
 */
function testRecipe(heading, name, body) {
  testWithServer(`"${heading}": ${name}`, { env: ALLOWED }, async (server) => {
    const ends = []
    const secret = newSecret()
    const port = await freePort()
    const at = {
      secret,
      receiver: `http://127.0.0.1:${port}`,
      start(n, more = {}, from = heading) {
        const { language, source } = programs(FILE, from)[n]
        const own = source.replaceAll('8000', `${port}`)
        const program = run({ language, source: own, env: { SECRET: secret, ...more } }, server)
        ends.push(() => program.end())
        return program
      },
      async restart(previous) {
        await previous.kill()
        const again = await Server.start({ dataDir: server.dataDir, port: server.client.port, env: ALLOWED })
        ends.push(() => again.stop())
        return again
      },
      async listen(answer, at = port) {
        const service = await Receiver.start({ port: at, answer })
        ends.push(() => service.stop())
        return service
      }
    }
    try {
      await body(server, at)
    } finally {
      for (const end of ends.reverse()) await end()
    }
  })
}

const job = (server, type, id) => server.client.ok('GET', `/_jobs/${type}/${id}`)
const finished = (server, type, id) =>
  waitFor(`${type}/${id} to be finished`, async () => (await job(server, type, id)).state === 'finished')
const listens = (url) =>
  waitFor('the receiver to listen', () => {
    const { hostname, port } = new URL(url)
    const socket = net.connect({ host: hostname, port: Number(port) })
    return new Promise((resolve, reject) => socket.on('error', reject).on('connect', () => resolve(true))).finally(() => socket.destroy())
  })

// An outbox

testRecipe('An outbox', 'it prints what it is said to print, and sends the order', async (server, at) => {
  const service = await at.listen(204)
  assert.equal(await at.start(0).output(), programs(FILE, 'An outbox')[1].source)
  assert.equal(service.requests.length, 1)
  const [{ method, url, headers, body }] = service.requests
  const { _trigger, ...data } = new Webhook(at.secret).verify(body, headers)
  assert.deepEqual([method, url, data], ['POST', '/orders', { order: 'order-7', customer: 'Ann', total: 30 }])
  assert.deepEqual([_trigger.db, _trigger.id], ['shop', 'order-7'])
})

testRecipe('An outbox', 'orders are sent although service and server are down in between', async (server, at) => {
  const first = await at.listen(204)
  await at.start(0).output()
  await first.stop()

  // The service is down, and the server is killed. Then the server is killed during the request.
  await server.client.ok('PUT', '/shop/order-8', { kind: 'order', customer: 'Bob', total: 40 })
  await waitFor('a failed attempt', async () => (await job(server, 'order', 'order-8')).failures > 0)
  let now = await at.restart(server)
  const hanging = await at.listen(hang)
  await hanging.received()
  now = await at.restart(now)
  await hanging.stop()
  const second = await at.listen(204)
  await finished(now, 'order', 'order-8')
  const all = [...hanging.requests, ...second.requests]
  assert.ok(all.length >= 2 && all.every(({ body }) => JSON.parse(body).order === 'order-8'))
  assert.equal(new Set(all.map(({ headers }) => headers['webhook-id'])).size, 1)
  const epochs = all.map(({ headers }) => Number(headers['divan-epoch']))
  assert.deepEqual(epochs, [...epochs].sort((a, b) => a - b))

  // A change that is made after the order was sent does not send it again.
  const order = await now.client.ok('GET', '/shop/order-8')
  await now.client.ok('PUT', '/shop/order-8', { ...order, total: 41 })
  await waitFor('the trigger', async () => (await now.client.ok('GET', '/shop/_design/outbox/_trigger/order')).behind === 0)
  assert.equal((await now.client.ok('GET', '/_jobs/order')).counts.finished, 2)
})

testRecipe('An outbox', 'orders that failed permanently are sent again on request', async (server, at) => {
  const service = await at.listen(204)
  await at.start(0).output()
  service.answer = 410
  await server.client.ok('PUT', '/shop/order-8', { kind: 'order', customer: 'Bob', total: 40 })
  await waitFor('the failure', async () => (await job(server, 'order', 'order-8')).state === 'failed')
  service.answer = 204
  const { code, stderr } = await runDivan(['jobs', 'redeliver', 'order', '--url', server.url, '--user', server.credentials])
  assert.equal(code, 0, stderr)
  await finished(server, 'order', 'order-8')
  const ids = service.of('order', 'order-8').map(({ headers }) => headers['webhook-id'])
  assert.equal(new Set(ids).size, 2, 'it is a new message')
  assert.equal(service.of('order', 'order-7').length, 1)
})

// The receivers

for (const heading of ['A receiver in Node.js', 'A receiver in Python']) {
  const begin = async (server, at) => {
    const receiver = at.start(0)
    await listens(at.receiver)
    assert.equal(await at.start(0, {}, 'An outbox').output(), programs(FILE, 'An outbox')[1].source)
    await receiver.says('order-7: Ann pays 30')
    return receiver
  }
  const put = (server, id) => server.client.ok('PUT', `/shop/${id}`, { kind: 'order', customer: 'Bob', total: 40 })
  const message = (order) => JSON.stringify({ order, customer: 'Eve', total: 1 })
  const post = async (at, body, headers) => (await fetch(`${at.receiver}/orders`, { method: 'POST', body, headers })).status
  const signed = (secret, id, body, date = new Date()) => ({
    'webhook-id': id,
    'webhook-timestamp': `${Math.floor(date / 1000)}`,
    'webhook-signature': new Webhook(secret).sign(id, date, body)
  })

  testRecipe(heading, 'it takes jobs, and refuses what is forged or old', async (server, at) => {
    const receiver = await begin(server, at)
    const body = message('forged')
    const good = signed(at.secret, 'msg_1', body)
    const forged = {
      'no header': {},
      'no signature': { ...good, 'webhook-signature': '' },
      'not a signature': { ...good, 'webhook-signature': 'v1,\u00e4 v1, ,' },
      'another secret': signed(newSecret(), 'msg_1', body),
      'another id': { ...good, 'webhook-id': 'msg_2' },
      'another body': signed(at.secret, 'msg_1', message('other')),
      'another time': { ...good, 'webhook-timestamp': `${Number(good['webhook-timestamp']) - 1}` },
      'not a time': { ...good, 'webhook-timestamp': '9'.repeat(5000) },
      'too old': signed(at.secret, 'msg_1', body, new Date(Date.now() - 3_600_000)),
      'too early': signed(at.secret, 'msg_1', body, new Date(Date.now() + 3_600_000))
    }
    for (const [what, headers] of Object.entries(forged)) assert.equal(await post(at, body, headers), 400, what)
    const large = 'x'.repeat(3_000_000)
    const status = await post(at, large, signed(at.secret, 'msg_3', large)).catch(() => 'closed')
    assert.ok([413, 'closed'].includes(status), `${status}`)

    await put(server, 'order-8')
    await receiver.says('order-8: Bob pays 40')
    await finished(server, 'order', 'order-8')
    assert.equal(await post(at, message('order-9'), signed(at.secret, 'msg_4', message('order-9'))), 204)
    await receiver.says('order-9: Eve pays 1')
    assert.equal(receiver.stdout, 'order-7: Ann pays 30\norder-8: Bob pays 40\norder-9: Eve pays 1\n')
  })

  testRecipe(heading, 'it works once if a response is lost', async (server, at) => {
    const receiver = await begin(server, at)
    // A service in between passes requests on, and drops the first response.
    const between = await at.listen(async ({ body, headers }, count) => {
      const { host, connection, 'content-length': length, ...passed } = headers
      const status = await post(at, body, passed)
      return count === 1 ? closeEarly : status
    }, 0)
    await server.client.ok('PUT', '/_jobs/order', { deliver: { url: between.url('/orders') } })
    await put(server, 'order-8')
    await finished(server, 'order', 'order-8')
    assert.equal((await job(server, 'order', 'order-8')).attempt, 2)
    assert.equal(new Set(between.requests.map(({ headers }) => headers['webhook-id'])).size, 1)
    assert.equal(receiver.count('order-8'), 1)
  })

  testRecipe(heading, 'no job is lost while it is down or has another secret', async (server, at) => {
    const receiver = await begin(server, at)
    const body = message('order-6')
    const headers = signed(at.secret, 'msg_1', body)
    assert.equal(await post(at, body, headers), 204)
    await receiver.end()
    await put(server, 'order-8')
    await waitFor('a failed attempt', async () => (await job(server, 'order', 'order-8')).failures > 0)

    const wrong = at.start(0, { SECRET: newSecret() })
    await listens(at.receiver)
    await put(server, 'order-9')
    await waitFor('a refused attempt', async () => /\b400\b/.test((await job(server, 'order', 'order-9')).last_error))
    assert.equal(wrong.stdout, '')
    await wrong.end()

    const again = receiver.again()
    try {
      await again.says('order-8: Bob pays 40')
      await again.says('order-9: Bob pays 40')
      await finished(server, 'order', 'order-8')
      await finished(server, 'order', 'order-9')
      assert.deepEqual([again.count('order-8'), again.count('order-9')], [1, 1])
      if (heading === 'A receiver in Python') {
        assert.equal(await post(at, body, headers), 204)
        assert.equal(again.count('order-6'), 0, 'it has kept the id')
      }
    } finally {
      await again.end()
    }
  })
}

// Thumbnails

function image(width, height, [red, green, blue]) {
  const png = new PNG({ width, height })
  for (let i = 0; i < png.data.length; i += 4) png.data.set([red, green, blue, 255], i)
  return PNG.sync.write(png)
}

testRecipe('Thumbnails', 'each image gets one, even if worker and server are killed', async (server, at) => {
  await at.start(0).output()
  let now = server
  const trigger = async () => {
    const info = await now.client.ok('GET', '/photos/_design/thumbnails/_trigger/new')
    return info.behind === 0 && !info.waits && info
  }
  const upload = async (id, bytes, type = 'image/png') => {
    const { status, json } = await now.client.put(`/photos/${id}/original`, bytes, { headers: { 'Content-Type': type } })
    assert.equal(status, 201)
    return json
  }
  const N = 24
  for (let n = 0; n < N; ++n) await upload(`p${n}`, image(300, 200, [n, 100, 200]))
  await upload('a%20b', image(40, 30, [1, 2, 3]))
  await upload('text', 'no image', 'text/plain')
  await upload('broken', 'no image')

  const first = at.start(1)
  await first.says('thumbnail of', 3)
  await first.end()
  const second = first.again()
  try {
    await second.says('thumbnail of', 3)
    now = await at.restart(server)
    const done = async () => {
      const { counts } = await now.client.ok('GET', '/_jobs/thumbnail')
      return counts.pending + counts.running === 0 && counts
    }
    const photo = (id) => now.client.ok('GET', `/photos/${id}?attachments=true`)
    const thumbnail = async (id) => PNG.sync.read(Buffer.from((await photo(id))._attachments.thumbnail.data, 'base64'))
    await waitFor('all thumbnails', done)
    // It was not triggered by its own writes.
    assert.equal((await waitFor('the trigger', trigger)).jobs_added, N + 2)
    for (let n = 0; n < N; ++n) {
      assert.match((await photo(`p${n}`))._rev, /^2-/)
      const { width, height, data } = await thumbnail(`p${n}`)
      assert.deepEqual([width, height, [...data.subarray(-4)]], [100, 67, [n, 100, 200, 255]])
    }
    const { width, height } = await thumbnail('a%20b')
    assert.deepEqual([width, height], [40, 30])
    const { state, attempt, last_error: error } = await job(now, 'thumbnail', 'broken')
    assert.equal(state, 'failed', `after ${attempt} attempts: ${error}`)
    for (const id of ['text', 'broken']) assert.deepEqual(Object.keys((await photo(id))._attachments), ['original'])

    // A document that changes while its thumbnail is made.
    await upload('busy', image(2000, 1500, [1, 1, 1]))
    for (let n = 1; n <= 10; ) {
      const { status } = await now.client.put('/photos/busy', { ...(await now.client.get('/photos/busy')).json, n })
      if (status === 201) ++n
    }
    await waitFor('its thumbnail', async () => (await thumbnail('busy')).width === 100)
    assert.equal((await photo('busy')).n, 10)
    await waitFor('the end of its jobs', done)
    const before = (await waitFor('the trigger', trigger)).jobs_added

    // A new original, without the thumbnail of the old one; and a document that is deleted before the worker reads it.
    const { _rev } = await photo('p0')
    const original = { content_type: 'image/png', data: image(50, 80, [9, 9, 9]).toString('base64') }
    await now.client.ok('PUT', '/photos/p0', { _rev, _attachments: { original } })
    await waitFor('the new thumbnail', async () => (await thumbnail('p0')).height === 80)
    await now.client.ok('PUT', '/_jobs/thumbnail', { paused: true })
    const { rev } = await upload('gone', image(9, 9, [0, 0, 0]))
    await waitFor('the trigger', async () => (await trigger()).jobs_added === before + 2)
    await now.client.ok('DELETE', `/photos/gone?rev=${rev}`)
    await now.client.ok('PUT', '/_jobs/thumbnail', { paused: false })
    await finished(now, 'thumbnail', 'gone')
  } finally {
    await second.end()
  }
})

// A saga

testRecipe('A saga', 'all steps are done once, or undone, even if worker and server are killed', async (server, at) => {
  const LAMPS = 10
  const payments = new Map() // by order: {put: requests, state: charged or void}
  const kills = new Map() // by order: what its first charge does before the response
  await at.listen(async ({ method, url }) => {
    const order = decodeURIComponent(url.slice('/payments/'.length))
    const payment = payments.get(order) ?? { put: 0, state: 'new' }
    payments.set(order, payment)
    if (method === 'DELETE') {
      payment.state = 'void'
      return 200
    }
    ++payment.put
    if (payment.state === 'void') return 410
    if (order.startsWith('poor')) return 402
    if (order.startsWith('fault')) return 500
    payment.state = 'charged'
    const kill = kills.get(order)
    kills.delete(order)
    await kill?.()
    return 200
  })
  await server.client.ok('PUT', '/_jobs/charge', { backoff_min: 0, backoff_max: 10 })
  await at.start(0).output()
  let now = server
  const first = at.start(1)
  let second
  const killed = new Promise((resolve) => kills.set('good-3', () => first.end().then(resolve)))
  await first.says('order-7: shipped')

  const order = (_id, item = 'lamp') => ({ _id, kind: 'order', item, price: 30 })
  const good = Array.from({ length: 6 }, (_, n) => `good-${n}`)
  const bad = ['poor-1', 'fault 1', 'poor-2']
  const docs = [{ _id: 'chair', kind: 'item', left: 1 }, ...[...good, ...bad].map((id) => order(id))]
  try {
    await server.client.ok('POST', '/shop/_bulk_docs', { docs: docs.slice(0, 5) })
    await killed
    kills.set('good-4', () => at.restart(now).then((again) => (now = again)))
    second = first.again()
    await server.client.ok('POST', '/shop/_bulk_docs', { docs: docs.slice(5) })
    await waitFor('the restart', () => now !== server)
    await now.client.ok('POST', '/shop/_bulk_docs', { docs: [order('chair-1', 'chair'), order('chair-2', 'chair')] })
    const read = (id) => now.client.ok('GET', `/shop/${encodeURIComponent(id)}`)
    const reaches = (id, state) => waitFor(`${id} to be ${state}`, async () => (await read(id)).state === state)
    for (const id of good) await reaches(id, 'shipped')
    for (const id of bad) await reaches(id, 'cancelled')
    await waitFor('one chair to be shipped, the other one sold out', async () => {
      const states = [(await read('chair-1')).state, (await read('chair-2')).state]
      return `${states.sort()}` === 'shipped,sold out'
    })
    // Each step has written once.
    for (const id of ['order-7', ...good, ...bad]) assert.match((await read(id))._rev, /^4-/, id)
    assert.deepEqual([(await read('lamp')).left, (await read('chair')).left], [LAMPS - good.length - 1, 0])
    for (const id of ['order-7', ...good]) assert.equal(payments.get(id).state, 'charged', id)
    for (const id of bad) assert.equal(payments.get(id).state, 'void', id)
    assert.equal(payments.get('good-3').put, 2, 'the charge of the killed worker was repeated')
    assert.ok(payments.get('fault 1').put <= 5)
    for (const type of ['reserve', 'charge', 'ship', 'undo']) {
      const { counts } = await now.client.ok('GET', `/_jobs/${type}`)
      assert.deepEqual([counts.pending, counts.running, counts.failed, counts.cancelled], [0, 0, 0, 0], type)
    }
    assert.equal((await now.client.ok('GET', '/shop/_design/sagas/_trigger/begin')).jobs_added, 1 + good.length + bad.length + 2)
  } finally {
    await second?.end()
  }
})

// A report every night

testRecipe('A report every night', 'it is sent each time, even if the receiver is down or fails', async (server, at) => {
  const chat = await at.listen(() => chat.requests.length === 2 ? 500 : 200, 0)
  await at.start(0).output()
  const docs = [
    { kind: 'order', day: '2025-11-26', total: 30 },
    { kind: 'order', day: '2025-11-27', total: 40 },
    { kind: 'order', day: '2025-11-27', total: 2 },
    { kind: 'item', day: '2025-11-27', total: 1000 }
  ]
  await server.client.ok('POST', '/shop/_bulk_docs', { docs })
  const receiver = at.start(1, { REPORT_TO: chat.url('/send') })
  await listens(at.receiver)
  const periodic = () => job(server, 'report', '_periodic')
  const { scheduled_at: tick } = await periodic()
  const berlin = { timeZone: 'Europe/Berlin', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }
  assert.match(new Date(tick).toLocaleString('en', berlin), /03:00$/)
  const now = () => server.client.ok('POST', '/_jobs/report/_periodic/_resubmit', {})
  const waits = () =>
    waitFor('the next tick', async () => {
      const { state, scheduled_at: at, failures } = await periodic()
      return state === 'pending' && at === tick && failures === 0
    })
  const key = ({ headers }) => headers['idempotency-key']

  assert.equal((await fetch(at.receiver, { method: 'POST', body: '{}' })).status, 400)
  await now()
  await chat.received(1)
  await waits()
  assert.equal(chat.requests[0].body, '2025-11-27: 42\n2025-11-26: 30')

  // The next one has another key, and what was written meanwhile. The chat fails at first.
  await server.client.ok('POST', '/shop', { kind: 'order', day: '2025-11-28', total: 5 })
  await now()
  await chat.received(3)
  await waits()
  assert.equal(chat.requests[2].body, '2025-11-28: 5\n2025-11-27: 42\n2025-11-26: 30')
  assert.equal(key(chat.requests[1]), key(chat.requests[2]))
  assert.notEqual(key(chat.requests[0]), key(chat.requests[1]))

  await receiver.end()
  await now()
  await waitFor('a failed attempt', async () => (await periodic()).failures > 0)
  const again = receiver.again()
  try {
    await chat.received(4)
    await waits()
    assert.equal(chat.requests.length, 4)
  } finally {
    await again.end()
  }
})
