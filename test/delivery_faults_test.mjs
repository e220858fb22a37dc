// Deliveries to receivers that are slow or down, and by servers that are killed. docs/delivery.md
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { Authority, noOpenssl } from './support/certificates.mjs'
import { ALLOWED, newType, withReceiver } from './support/delivery.mjs'
import { closeEarly, drip, halfResponse, hang, late, newGate, Receiver } from './support/receiver.mjs'
import { Server, shareServer, startDivan, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = withReceiver(shareServer({ env: ALLOWED }))
const withSettings = (name, options, body) =>
  withReceiver((title, run) => testWithServer(title, { ...options, env: { ...ALLOWED, ...options.env } }, run))(name, body)

// Waits until a type of its own has delivered jobs, to show that delivery goes on meanwhile.
async function othersAreDelivered(server, count = 20) {
  const receiver = await Receiver.start()
  try {
    const others = await newType(server, receiver.url())
    await others.addMany(count)
    await others.allFinished(count)
  } finally {
    await receiver.stop()
  }
}

// For receivers: keeps requests until the gate is open.
const behind = (gate, answer = 200) => () => gate.passed.then(() => answer)

it('at most `concurrency` requests are sent at a time', async (server, receiver) => {
  const gate = newGate()
  receiver.answer = behind(gate)
  const jobs = await newType(server, receiver.url(), { concurrency: 3 })
  await jobs.addMany(30)
  await receiver.received(3)
  await othersAreDelivered(server)
  assert.equal(receiver.open, 3)
  gate.open()
  await jobs.allFinished(30)
  assert.deepEqual([receiver.mostOpen, receiver.requests.length], [3, 30])
})

it('many requests are sent at a time', async (server, receiver) => {
  const gate = newGate()
  receiver.answer = behind(gate)
  const jobs = await newType(server, receiver.url(), { concurrency: 40 })
  await jobs.addMany(100)
  await receiver.received(40)
  assert.equal(receiver.open, 40)
  gate.open()
  await jobs.allFinished(100)
  assert.ok(receiver.mostOpen <= 40)
})

it('connections are kept for later requests', async (server, receiver) => {
  receiver.answer = () => late(Math.random() * 20)
  const jobs = await newType(server, receiver.url(), { concurrency: 20 })
  await jobs.addMany(1000)
  await jobs.allFinished(1000)
  assert.ok(receiver.connections <= 20, `${receiver.connections} connections`)
})

test('delivery_faults: many requests share a connection of HTTP/2', { skip: noOpenssl }, async () => {
  const authority = new Authority()
  const { certificate, key } = authority.give('localhost')
  const tls = { cert: readFileSync(certificate), key: readFileSync(key) }
  const receiver = await Receiver.start({ tls, speaksHttp2: true, answer: () => late(Math.random() * 20) })
  const server = await Server.start({ env: { DIVAN_DELIVER_ALLOW: 'localhost', DIVAN_DELIVER_SSL_TRUSTED_CERTIFICATES_FILE: authority.file } })
  try {
    const jobs = await newType(server, receiver.url('/', 'localhost'), { concurrency: 150 }, { max_attempts: 1 })
    await jobs.addMany(1000)
    await waitFor('the end of all jobs', async () => {
      const { finished, failed } = await jobs.counts()
      return finished + failed === 1000
    })
    assert.deepEqual([(await jobs.counts()).failed, receiver.requests.length], [0, 1000])
    assert.ok(receiver.connections < 150, `${receiver.connections} connections`)
  } finally {
    await server.stop()
    await receiver.stop()
  }
})

// In a mount namespace, to have a host with these addresses.
const noNamespaces = spawnSync('unshare', ['-rm', 'true']).status === 0 ? false : 'needs namespaces of users and mounts'
test('delivery_faults: the next address of a host is tried at once if one refuses', { skip: noNamespaces }, async () => {
  // The farther an address is from that of the sender, the later it is tried (RFC 6724, rule 9).
  const receiver = await Receiver.start({ address: '127.0.0.64' })
  const hosts = path.join(temporaryDirectory(), 'hosts')
  const addresses = ['127.0.0.2', '127.0.0.4', '127.0.0.8', '127.0.0.64']
  writeFileSync(hosts, addresses.map((address) => `${address} hooks.test\n`).join(''))
  const wrapper = ['unshare', '-rm', 'sh', '-c', `mount --bind ${hosts} /etc/hosts && exec "$@"`, 'sh']
  const server = await Server.start({ env: { DIVAN_DELIVER_ALLOW: '127.0.0.0/8' }, wrapper })
  try {
    // Half of the time would be left for the last address: more than the test waits.
    const jobs = await newType(server, receiver.url('/', 'hooks.test'), { timeout: 300_000 })
    await jobs.add('a')
    assert.equal((await jobs.finished('a')).attempt, 1)
  } finally {
    await server.stop()
    await receiver.stop()
  }
})

it('a change of `concurrency` holds for the next requests', async (server, receiver) => {
  const gate = newGate()
  receiver.answer = behind(gate)
  const jobs = await newType(server, receiver.url(), { concurrency: 1 })
  await jobs.addMany(10)
  await receiver.received(1)
  await jobs.deliver({ concurrency: 5 })
  await receiver.received(5)
  gate.open()
  await jobs.allFinished(10)
  assert.equal(receiver.mostOpen, 5)
})

it('max_running limits requests, and jobs that receivers have accepted', async (server, receiver) => {
  receiver.answer = 202
  const jobs = await newType(server, receiver.url(), {}, { max_running: 2 })
  await jobs.addMany(6)
  await receiver.received(2)
  await othersAreDelivered(server)
  assert.equal(receiver.requests.length, 2)
  for (let n = 0; n < 6; ++n) {
    const { headers } = (await receiver.received(n + 1))[n]
    assert.equal((await jobs.act(headers['divan-id'], 'finish', { lock: headers['divan-lock'] })).status, 200)
  }
  await jobs.allFinished(6)
})

it('`rate` limits the requests of its type only', async (server, receiver) => {
  const jobs = await newType(server, receiver.url(), { rate: { per_second: 0.001 } })
  await jobs.addMany(5)
  await jobs.finished((await receiver.received(1))[0].headers['divan-id'])
  await othersAreDelivered(server, 50)
  assert.equal(receiver.requests.length, 1)
  const { pending, finished } = await jobs.counts()
  assert.deepEqual([pending, finished], [4, 1])
  await jobs.deliver({ rate: null })
  await jobs.allFinished(5)
})

withSettings('a receiver that hangs delays its own jobs only', { env: { DIVAN_DELIVER_MAX_REQUESTS: '10' } }, async (server, receiver) => {
  receiver.answer = hang
  const jobs = await newType(server, receiver.url(), { concurrency: 1000, timeout: 300_000 })
  await jobs.addMany(100)
  await receiver.received(5)
  await othersAreDelivered(server)
  assert.equal(receiver.mostOpen, 5) // a half of the ten
})

const fourPerHost = { env: { DIVAN_DELIVER_MAX_REQUESTS_PER_HOST: '4' } }
withSettings('the requests to one host are limited, and a type that hangs leaves some to others', fourPerHost, async (server, receiver) => {
  receiver.answer = hang
  const jobs = await newType(server, receiver.url(), { concurrency: 1000, timeout: 300_000 })
  await jobs.addMany(20)
  await receiver.received(1)
  await othersAreDelivered(server)
  assert.ok(receiver.mostOpen <= 4, `${receiver.mostOpen}`)
})

withSettings('receivers that hang do not delay one that responds', { env: { DIVAN_DELIVER_MAX_REQUESTS: '40' } }, async (server, receiver) => {
  const good = await newType(server, receiver.url(), {}, { max_attempts: 1 })
  await good.add('first')
  await good.finished('first')
  const hanging = await Receiver.start({ answer: hang })
  try {
    const others = []
    for (let n = 0; n < 30; ++n) others.push(await newType(server, hanging.url(), { timeout: 300_000 }))
    for (const jobs of others) await jobs.addMany(10)
    await hanging.received(30)
    for (let n = 0; n < 20; ++n) {
      await good.add(`next${n}`)
      await good.finished(`next${n}`)
    }
    assert.ok(hanging.open <= 35, `${hanging.open}`)
  } finally {
    await hanging.stop()
  }
})

withSettings('no type is forgotten while there are fewer places than types', { env: { DIVAN_DELIVER_MAX_REQUESTS: '1' } }, async (server, receiver) => {
  const types = []
  for (let n = 0; n < 12; ++n) types.push(await newType(server, receiver.url()))
  for (const round of ['a', 'b', 'c']) {
    await Promise.all(types.map((jobs) => jobs.add(round)))
    for (const jobs of types) await jobs.finished(round)
  }
  assert.deepEqual([receiver.mostOpen, receiver.requests.length], [1, 36])
})

withSettings('a raised limit takes effect while requests hang', { env: { DIVAN_DELIVER_MAX_REQUESTS: '1' } }, async (server, receiver) => {
  receiver.answer = hang
  const types = []
  for (let n = 0; n < 3; ++n) types.push(await newType(server, receiver.url(), { timeout: 300_000 }))
  for (const jobs of types) await jobs.add('a')
  await receiver.received(1)
  await server.client.ok('PUT', '/_node/_local/_config/deliver/max_requests', '"100"')
  await receiver.received(3)
})

it('a lowered `concurrency` holds for a type that waits', async (server, receiver) => {
  const gate = newGate()
  receiver.answer = behind(gate)
  const jobs = await newType(server, receiver.url(), { concurrency: 80 })
  await othersAreDelivered(server)
  await jobs.deliver({ concurrency: 2 })
  await jobs.addMany(30)
  await receiver.received(2)
  await othersAreDelivered(server)
  assert.equal(receiver.open, 2)
  gate.open()
  await jobs.allFinished(30)
})

it('a name that cannot be resolved fails its own jobs only', async (server, receiver) => {
  const unknown = []
  for (let n = 0; n < 5; ++n) unknown.push(await newType(server, `http://host${n}.invalid/`, {}, { max_attempts: 3 }))
  const jobs = await newType(server, receiver.url(), { concurrency: 5 }, { max_attempts: 1 })
  for (let n = 0; n < 10; ++n) {
    await Promise.all([...unknown, jobs].map((each) => each.add(`job${n}`)))
    await jobs.finished(`job${n}`)
  }
})

it('workers may wait for jobs beside delivery while it begins, pauses and ends', async (server, receiver) => {
  receiver.answer = 500
  const jobs = await newType(server, receiver.url(), { concurrency: 1 }, { max_attempts: 1000 })
  const accepted = []
  const accept = async () => accepted.push(...(await server.client.ok('POST', `/_jobs/${jobs.type}/_accept`, { timeout: 60_000 })).jobs)
  const waiting = [accept(), accept(), accept()]
  await jobs.addMany(10)
  await waitFor('the pause', async () => ['open', 'half_open'].includes((await jobs.watched())?.state))
  await jobs.set({ deliver: null })
  await jobs.add('last')
  await Promise.all(waiting)
  assert.equal(accepted.length, 3)
})

it('a request ends when the `max_runtime` of its attempt is over', async (server, receiver) => {
  receiver.answer = hang
  const jobs = await newType(server, receiver.url(), { timeout: 300_000 }, { max_runtime: 300, max_attempts: 3 })
  await jobs.add('a')
  await jobs.failed('a')
  await waitFor('the end of the requests', () => receiver.open === 0)
})

it('after five failures in succession the receiver is paused, until it is repaired', async (server, receiver) => {
  receiver.answer = { status: 500, body: 'Out of order.' }
  const jobs = await newType(server, receiver.url(), { concurrency: 1 }, { max_attempts: 1000 })
  await jobs.addMany(10)
  const open = await waitFor('the pause', async () => {
    const shown = await jobs.watched()
    return shown?.state === 'open' && shown
  })
  assert.ok(open.failures >= 5)
  assert.match(open.last_error, /127\.0\.0\.1.*500/)
  // No request before the end of the pause.
  await othersAreDelivered(server)
  const next = receiver.requests[open.failures]
  if (next) assert.ok(next.at >= open.retry_at - 50, `${next.at - open.retry_at}`)
  // The jobs wait in the queue, and their failures are those of the requests.
  const answered = receiver.requests.length
  const { jobs: all } = await server.client.ok('GET', `/_jobs/${jobs.type}/_list`)
  const failures = all.reduce((sum, job) => sum + job.failures, 0)
  assert.ok(failures >= 5 && Math.abs(failures - answered) <= 2, `${failures} failures, ${answered} requests`)
  receiver.answer = 200
  await jobs.allFinished(10)
  await waitFor('the end of the pause to be shown', async () => !(await jobs.watched()))
})

it('`divan jobs watch` shows why deliveries wait', async (server, receiver) => {
  receiver.answer = 500
  const jobs = await newType(server, receiver.url(), {}, { max_attempts: 1000 })
  await jobs.addMany(10)
  const watch = startDivan(['jobs', 'watch', jobs.type, '--url', server.url, '--user', server.credentials])
  try {
    await waitFor('the reason', () => /; delivery is (open until \S+|half_open): 127\.0\.0\.1 responds with 500/.test(watch.stdout))
  } finally {
    watch.child.kill('SIGINT')
    await watch.exit
  }
})

it('a receiver that is down keeps no other waiting, and gets all jobs when it is back', async (server, receiver) => {
  await receiver.stop()
  const jobs = await newType(server, receiver.url(), {}, { max_attempts: 25 })
  await jobs.addMany(50)
  await waitFor('the pause', async () => (await jobs.watched())?.state === 'open')
  await othersAreDelivered(server)
  const again = await Receiver.start({ port: receiver.port })
  try {
    await jobs.allFinished(50)
    assert.equal((await jobs.counts()).failed, 0)
  } finally {
    await again.stop()
  }
})

it('failures that are not of the receiver do not pause it', async (server, receiver) => {
  receiver.answer = 400
  const jobs = await newType(server, receiver.url(), {}, { max_attempts: 1 })
  await jobs.addMany(30)
  await waitFor('the failures', async () => (await jobs.counts()).failed === 30)
  assert.equal(await jobs.watched(), undefined)
})

it('a failure between successes does not pause the receiver', async (server, receiver) => {
  receiver.answer = () => (receiver.requests.length % 5 === 0 ? 200 : 500)
  const jobs = await newType(server, receiver.url(), { concurrency: 1 }, { max_attempts: 1 })
  await jobs.addMany(50)
  await waitFor('the end of the jobs', async () => (await jobs.counts()).pending + (await jobs.counts()).running === 0)
  const { finished, failed } = await jobs.counts()
  assert.deepEqual([finished, failed, receiver.requests.length], [10, 40, 50])
})

withSettings('a node without the background work `deliver` sends nothing', { args: ['--background=jobs'] }, async (first, receiver) => {
  const jobs = await newType(first, receiver.url())
  await jobs.add('a')
  assert.deepEqual((await first.client.ok('GET', '/_deliver')).nodes, [])
  await first.kill()
  assert.equal(receiver.requests.length, 0)
  const server = await restarted(first)
  try {
    jobs.use(server)
    await jobs.finished('a')
  } finally {
    await server.stop()
  }
})

// Another process of a server that was killed.
const restarted = (server) => Server.start({ dataDir: server.dataDir, port: server.client.port, env: ALLOWED })

withSettings('jobs whose server is killed during their requests are sent again', {}, async (first, receiver) => {
  receiver.answer = hang
  const jobs = await newType(first, receiver.url(), { concurrency: 10, timeout: 300_000 })
  const ids = await jobs.addMany(30)
  await receiver.received(10)
  await first.kill()
  const interrupted = receiver.requests.map(({ headers }) => headers)
  receiver.answer = 200
  const server = await restarted(first)
  try {
    jobs.use(server)
    await jobs.allFinished(30)
    for (const id of ids) assert.ok(receiver.of(jobs.type, id).length >= 1)
    for (const before of interrupted) {
      const again = receiver.of(jobs.type, before['divan-id']).at(-1).headers
      assert.equal(again['webhook-id'], before['webhook-id'])
      assert.ok(Number(again['divan-epoch']) > Number(before['divan-epoch']))
    }
  } finally {
    await server.stop()
  }
})

withSettings('a job that the receiver has accepted survives the server', {}, async (first, receiver) => {
  receiver.answer = 202
  const jobs = await newType(first, receiver.url(), {}, { timeout: 600_000 })
  await jobs.add('a')
  const [{ headers }] = await receiver.received(1)
  await waitFor('the response', async () => (await jobs.get('a')).progress?.status === 202)
  await first.kill()
  const server = await restarted(first)
  try {
    jobs.use(server)
    await othersAreDelivered(server)
    assert.equal((await jobs.act('a', 'finish', { lock: headers['divan-lock'] })).status, 200)
    assert.equal(receiver.requests.length, 1)
  } finally {
    await server.stop()
  }
})

test('delivery_faults: a server stops during a request, and the job is sent again', async () => {
  const receiver = await Receiver.start({ answer: hang })
  const options = { dataDir: temporaryDirectory(), env: ALLOWED }
  let server = await Server.start(options)
  try {
    const jobs = await newType(server, receiver.url(), { timeout: 300_000 })
    await jobs.addMany(5)
    await receiver.received(5)
    await server.stop()
    receiver.answer = 200
    server = await Server.start(options)
    jobs.use(server)
    await jobs.allFinished(5)
    assert.equal(receiver.requests.length, 10)
  } finally {
    await server.stop()
    await receiver.stop()
  }
})

// A sequence of numbers from 0 to 1 that is the same in each run (mulberry32).
function randomNumbers(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

withSettings('a storm: receivers that fail at random, and a server that is killed', {}, async (first, receiver) => {
  const random = randomNumbers(7)
  const faults = [500, 404, 503, closeEarly, halfResponse, hang, drip, { status: 429, headers: { 'Retry-After': '0' } }]
  receiver.answer = () => {
    if (random() < 0.5) return late(20 * random())
    return faults[Math.floor(random() * faults.length)]
  }
  const settings = { timeout: 1000, max_attempts: 10_000, max_lost: null, backoff_min: 10, backoff_max: 100 }
  const types = []
  for (const concurrency of [1, 5, 20]) types.push(await newType(first, receiver.url(), { timeout: 300, concurrency }, settings))
  const ids = await Promise.all(types.map((jobs, n) => jobs.addMany(n === 0 ? 40 : 80)))
  let server = first
  const limit = 300_000
  const finished = async () => {
    const counts = await Promise.all(types.map((jobs) => jobs.counts()))
    return counts.reduce((sum, count) => sum + count.finished, 0)
  }
  try {
    for (const count of [40, 120]) {
      await waitFor(`${count} finished jobs`, async () => (await finished()) >= count, { limit })
      await server.kill()
      server = await restarted(first)
      for (const jobs of types) jobs.use(server)
    }
    for (const [n, jobs] of types.entries()) await jobs.allFinished(ids[n].length, { limit })
  } finally {
    if (server !== first) await server.stop()
  }
  for (const [n, { type }] of types.entries()) {
    for (const id of ids[n]) {
      const requests = receiver.of(type, id).map(({ headers }) => headers)
      assert.ok(requests.length >= 1, `${type} ${id}`)
      assert.equal(new Set(requests.map((headers) => headers['webhook-id'])).size, 1)
      const epochs = requests.map((headers) => Number(headers['divan-epoch']))
      assert.deepEqual(epochs, [...epochs].sort((a, b) => a - b))
    }
  }
})
