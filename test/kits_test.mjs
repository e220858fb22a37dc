// The worker kits of clients/, as processes of their own against the real server: who runs what, and who may still
// speak. Every test runs with each kit.
import assert from 'node:assert/strict'
import path from 'node:path'
import { afterEach } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startProxy } from './support/proxy.mjs'
import { Server, shareServer, testWithServer } from './support/server.mjs'
import { waitFor, within } from './support/wait.mjs'
import { killWorkers, WorkerProcess } from './support/worker_process.mjs'

const here = path.dirname(fileURLToPath(import.meta.url))
const KITS = { js: [process.execPath, 'worker.mjs'], python: ['python3', 'worker.py'] }
const EXAMPLES = { js: 'js/example.mjs', python: 'python/example.py' }
const withCredentials = (url, credentials = 'admin:secret') => url.replace('http://', `http://${credentials}@`)

const it = shareServer()
let types = 0
const proxies = new Set()
const servers = new Set() // that were started again
afterEach(async () => {
  killWorkers()
  for (const proxy of proxies) proxy.close()
  proxies.clear()
  for (const server of servers) await server.kill()
  servers.clear()
})
async function proxyTo(server, options) {
  const proxy = await startProxy(server, options)
  proxies.add(proxy)
  return proxy
}

function startWorker(kit, url, options) {
  const [program, file] = KITS[kit]
  return new WorkerProcess(program, path.join(here, 'kits', file), url, JSON.stringify(options))
}

async function newType(server, kit, settings = {}) {
  const type = `type${++types}`
  const call = (method, rest, body) => server.client.ok(method, `/_jobs/${type}${rest}`, body)
  await call('PUT', '', settings)
  const jobs = {
    type,
    call,
    declare: (changed) => call('PUT', '', changed),
    add: (id, data) => call('PUT', `/${id}`, { data }),
    addMany: (count, data) => call('POST', '/_bulk', { jobs: Array.from({ length: count }, (_, i) => ({ id: `job${i}`, data })) }),
    get: (id) => call('GET', `/${id}`),
    counts: async () => (await call('GET', '')).counts,
    state: async (id) => (await call('GET', `/${id}`)).state,
    is: (id, state) => waitFor(`${id} to be ${state}`, async () => (await jobs.state(id)) === state),
    members: async () => (await server.client.ok('GET', `/_workers/${type}`)).workers,
    start: (options = {}, { url = server.url, credentials } = {}) =>
      startWorker(kit, withCredentials(url, credentials), { type, ...options, worker: { checkInterval: 50, ...options.worker } })
  }
  return jobs
}

for (const kit of (process.env.DIVAN_KITS ?? Object.keys(KITS).join()).split(',')) {
  it(`${kit}: many workers share many jobs, and each is done once`, async (server) => {
    const jobs = await newType(server, kit)
    const crew = Array.from({ length: 3 }, () => jobs.start({ concurrency: 8 }))
    await Promise.all(crew.map((worker) => worker.says('online')))
    await jobs.addMany(300, { do: 'note' })
    await waitFor('all jobs to be finished', async () => (await jobs.counts()).finished === 300)
    const ran = crew.flatMap(({ lines }) => lines.filter((line) => line.startsWith('ran ')))
    assert.equal(ran.length, 300)
    assert.equal(new Set(ran).size, 300)
    for (const worker of crew) worker.tell('stop 60000')
    for (const worker of crew) await worker.stopped()
    assert.deepEqual(await jobs.members(), [])
  })

  it(`${kit}: accepts, finishes and failures go in batches`, async (server) => {
    const jobs = await newType(server, kit, { max_attempts: 1 })
    const count = { accept: 0, finish: 0, fail: 0 }
    const proxy = await proxyTo(server, {
      onRequest: (text) => {
        const [, action] = /^POST \S+\/_(accept|finish|fail) /.exec(text) ?? []
        if (action) ++count[action]
      }
    })
    await jobs.addMany(400, { do: 'note' })
    const worker = jobs.start({ concurrency: 50 }, { url: proxy.url })
    await waitFor('all jobs to be finished', async () => (await jobs.counts()).finished === 400)
    await jobs.addMany(400, { do: 'throw' })
    await waitFor('all jobs to be failed', async () => (await jobs.counts()).failed === 400)
    assert.ok(count.accept > 0 && count.accept < 400, `${count.accept} accepts`)
    assert.ok(count.finish > 0 && count.finish < 200, `${count.finish} finishes`)
    assert.ok(count.fail > 0 && count.fail < 200, `${count.fail} failures`)
    assert.equal((await jobs.get('job399')).last_error, 'no luck')
    worker.tell('stop 60000')
    await worker.stopped()
  })

  it(`${kit}: the jobs of a worker that is killed run elsewhere`, async (server) => {
    // Nothing but the connection's end can free them in time.
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    const settings = { worker: { timeout: 300_000 }, concurrency: 3 }
    await jobs.addMany(3, { do: 'hold' })
    const first = jobs.start(settings)
    await first.says('ran', 3)
    const second = jobs.start(settings)
    await second.says('online')
    first.kill('SIGKILL')
    await second.says('ran', 3)
    await waitFor('the first to be gone', async () => (await jobs.members()).length === 1)
    second.tell('go')
    await waitFor('all to be finished', async () => (await jobs.counts()).finished === 3)
    assert.equal(second.count('halt'), 0)
  })

  it(`${kit}: a worker that was frozen loses its job, and its result is dropped`, async (server) => {
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    await jobs.add('a', { do: 'stubborn' })
    // Its connection stays open: it is its heartbeats that are missed.
    const first = jobs.start({ worker: { id: 'first', timeout: 1_000 } })
    await first.says('ran a')
    first.kill('SIGSTOP')
    const second = jobs.start({ worker: { id: 'second', timeout: 300_000 } })
    await second.says('ran a')
    first.kill('SIGCONT')
    await first.says('aborted a halt')
    await first.says('halt a')
    await first.says('online', 2)
    first.tell('go')
    second.tell('go')
    await jobs.is('a', 'finished')
    assert.equal((await jobs.get('a')).data.by, 'second')
    assert.equal(first.count('halt'), 1)
    // It is none the worse for it.
    second.tell('stop 60000')
    await second.stopped()
    await jobs.add('b', { do: 'note' })
    await jobs.is('b', 'finished')
    assert.equal((await jobs.get('b')).data.by, 'first')
  })

  it(`${kit}: of what a worker writes that was frozen, nothing lands`, async (server) => {
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    const db = await server.newDatabase()
    await jobs.add('a', { do: 'late', db })
    const first = jobs.start({ worker: { id: 'first', timeout: 1_000 } })
    await first.says('ran a')
    first.kill('SIGSTOP')
    const second = jobs.start({ worker: { id: 'second', timeout: 300_000 } })
    await second.says('ran a')
    // Its handler goes on as soon as it can, whether it has been told by then or not.
    first.tell('go')
    first.kill('SIGCONT')
    await first.says('refused a update halt')
    await first.says('refused a transact halt')
    assert.deepEqual([await jobs.state('a'), (await jobs.get('a')).worker.id], ['running', 'second'])
    assert.equal((await server.client.get(`/${db}/a`)).status, 404)
    second.tell('go')
    await jobs.is('a', 'finished')
    assert.deepEqual([(await jobs.get('a')).data, second.count('refused')], [{ by: 'second' }, 0])
    assert.equal((await server.client.ok('GET', `/${db}/a`)).by, 'second')
  })

  it(`${kit}: a worker whose registration ends while it works is told over its connection`, async (server) => {
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    await jobs.add('a', { do: 'stubborn' })
    // Nothing else would tell it in time.
    const worker = jobs.start({ worker: { timeout: 3_000_000, checkInterval: 3_000_000 } })
    await worker.says('ran a')
    const [{ id }] = await jobs.members()
    await server.client.ok('DELETE', `/_workers/${jobs.type}/${id}`)
    await worker.says('aborted a halt')
    await worker.says('online', 2)
  })

  it(`${kit}: a worker whose connection breaks is back, and its jobs run on if the server has not noticed`, async (server) => {
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    // The server keeps its side open; its end, which comes later, is that of an older connection.
    const proxy = await proxyTo(server, {})
    await jobs.add('a', { do: 'stubborn' })
    const worker = jobs.start({ worker: { timeout: 300_000 } }, { url: proxy.url })
    await worker.says('ran a')
    const [{ incarnation }] = await jobs.members()
    proxy.cutClients()
    await worker.says('online', 2)
    proxy.endUpstream()
    // It has heard the old connections' ends before this.
    for (let i = 0; i < 20; ++i) assert.deepEqual((await jobs.members()).map((worker) => worker.incarnation), [incarnation])
    worker.tell('go')
    await jobs.is('a', 'finished')
    assert.deepEqual([worker.count('halt'), worker.count('ran a')], [0, 1])
  })

  it(`${kit}: a cancelled job's handler is told`, async (server) => {
    const jobs = await newType(server, kit)
    await jobs.add('a', { do: 'hold' })
    const worker = jobs.start()
    await worker.says('ran a')
    await jobs.call('POST', '/a/_cancel')
    await worker.says('aborted a cancel')
    await jobs.is('a', 'cancelled')
    assert.equal(worker.count('fail') + worker.count('halt'), 0)
  })

  it(`${kit}: a removed job's handler is told, and what it answers is dropped`, async (server) => {
    const jobs = await newType(server, kit)
    await jobs.add('a', { do: 'stubborn' })
    const worker = jobs.start()
    await worker.says('ran a')
    await jobs.call('DELETE', '/a')
    await worker.says('aborted a halt')
    worker.tell('go')
    await jobs.add('b', { do: 'note' })
    await jobs.is('b', 'finished')
    assert.equal(worker.count('halt a'), 1)
    assert.deepEqual(await jobs.counts(), { pending: 0, running: 0, finished: 1, failed: 0, cancelled: 0 })
  })

  it(`${kit}: who stops waits for what runs, and takes nothing more`, async (server) => {
    const jobs = await newType(server, kit)
    await jobs.add('a', { do: 'hold' })
    const worker = jobs.start({ concurrency: 2 })
    await worker.says('ran a')
    worker.tell('stop 3600000')
    await worker.says('stopping')
    // Its last request for jobs may still be answered: it gives them back.
    await jobs.add('b', { do: 'hold' })
    await waitFor('b to be given back', async () => (await jobs.get('b')).attempt === 1 && (await jobs.state('b')) === 'pending')
    assert.equal(await jobs.state('a'), 'running')
    worker.tell('go')
    await worker.stopped()
    assert.equal(await jobs.state('a'), 'finished')
    assert.deepEqual([worker.count('ran b'), worker.count('aborted')], [0, 0])
    assert.deepEqual(await jobs.members(), [])
  })

  it(`${kit}: who stops gives back what takes too long, all at once`, async (server) => {
    const jobs = await newType(server, kit)
    let releases = 0
    const proxy = await proxyTo(server, {
      onRequest: (text) => {
        if (/^POST \S+_release /.test(text)) ++releases
      }
    })
    await jobs.addMany(20, { do: 'stubborn' })
    const worker = jobs.start({ concurrency: 20 }, { url: proxy.url })
    await worker.says('ran', 20)
    worker.tell('stop 1')
    await worker.stopped()
    assert.deepEqual([worker.count('aborted'), releases], [20, 1])
    for (let i = 0; i < 20; ++i) {
      const { state, failures, history } = await jobs.get(`job${i}`)
      // Not by the registration's end, which would say `lost`.
      assert.deepEqual([worker.count(`aborted job${i} stop`), state, failures], [1, 'pending', 0])
      assert.deepEqual(history.map(({ outcome }) => outcome), ['released'])
    }
    assert.deepEqual(await jobs.members(), [])
  })

  it(`${kit}: a job that fails runs again, until it is failed`, async (server) => {
    const jobs = await newType(server, kit, { max_attempts: 3, backoff_min: 1, backoff_max: 10 })
    await jobs.add('a', { do: 'throw' })
    const worker = jobs.start()
    await jobs.is('a', 'failed')
    const { failures, last_error } = await jobs.get('a')
    assert.deepEqual([failures, last_error], [3, 'no luck'])
    assert.deepEqual([worker.count('ran a'), worker.count('fail a no luck')], [3, 3])
  })

  it(`${kit}: a handler says that its job fails for good, or when it runs again`, async (server) => {
    const jobs = await newType(server, kit)
    const reports = []
    const proxy = await proxyTo(server, {
      onRequest: (text) => {
        const [body] = /\{"jobs":.*$/.exec(text) ?? []
        if (body) for (const { id, retry, delay } of JSON.parse(body).jobs) reports.push([id, retry, delay])
      }
    })
    const worker = jobs.start({ concurrency: 3 }, { url: proxy.url })
    await worker.says('online')
    for (const what of ['give up', 'pause', 'snooze']) await jobs.add(what.replace(' ', '-'), { do: what })
    const sent = [['give-up', false, undefined], ['pause', undefined, 3_600_000], ['snooze', undefined, 7_200_000]]
    const has = (report) => reports.some((other) => JSON.stringify(other) === JSON.stringify(report))
    await waitFor('all to be reported', () => sent.every(has))
    await jobs.is('give-up', 'failed')
    await jobs.is('pause', 'pending')
    await jobs.is('snooze', 'pending')
    const [pause, snooze] = [await jobs.get('pause'), await jobs.get('snooze')]
    assert.deepEqual([pause.failures, snooze.failures], [1, 0])
    // The backoff is a second at first; both wait for an hour at least, by the server's clock.
    for (const { due_at, history } of [pause, snooze]) assert.ok(due_at - history[0].ended_at >= 3_600_000)
  })

  it(`${kit}: hooks run around the handlers, with the job's trace`, async (server) => {
    const jobs = await newType(server, kit, { max_attempts: 1 })
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    await jobs.add('a', { do: 'hooked', traceparent })
    const worker = jobs.start()
    await jobs.is('a', 'finished')
    assert.equal((await jobs.get('a')).data.hooked, true)
    const order = ['before a outer ' + traceparent, 'before a inner', 'ran a', 'after a outer']
    assert.deepEqual(worker.lines.filter((line) => / a( |$)/.test(line)), order)
    await jobs.add('b', { do: 'hooked', skip: true, traceparent: 'malformed' })
    await jobs.is('b', 'finished')
    assert.deepEqual([(await jobs.get('b')).data, worker.count('ran b'), worker.count('before b outer none')], [{ skipped: true }, 0, 1])
    await jobs.add('c', { do: 'hooked', fail: true })
    await jobs.is('c', 'failed')
    assert.deepEqual([(await jobs.get('c')).last_error, worker.count('caught c in a hook'), worker.count('fail c')], ['in a hook', 1, 1])
  })

  it(`${kit}: a result that is too large is a failure, and spoils no other`, async (server) => {
    const jobs = await newType(server, kit, { max_attempts: 1 })
    await jobs.addMany(5, { do: 'note' })
    await jobs.add('a', { do: 'big' })
    const worker = jobs.start({ concurrency: 6 })
    await jobs.is('a', 'failed')
    assert.match((await jobs.get('a')).last_error, /too_large/)
    await waitFor('the others to be finished', async () => (await jobs.counts()).finished === 5)
    assert.equal(worker.count('halt'), 0)
  })

  it(`${kit}: a paused type is waited for`, async (server) => {
    const jobs = await newType(server, kit, { paused: true })
    await jobs.add('a', { do: 'note' })
    const worker = jobs.start({ worker: { pollTimeout: 100 } })
    await worker.says('online')
    await jobs.declare({ paused: false })
    await jobs.is('a', 'finished')
  })

  it(`${kit}: an unknown type is an error at once`, async (server) => {
    const jobs = await newType(server, kit)
    const worker = jobs.start({ type: 'nobody-declared-it' })
    await worker.says('error DivanError 404 no_such_job_type')
    await within('its end', worker.exit)
  })

  it(`${kit}: a wrong password is an error at once`, async (server) => {
    const jobs = await newType(server, kit)
    const worker = jobs.start({}, { credentials: 'admin:wrong' })
    await worker.says('error DivanError 401 unauthorized')
    await within('its end', worker.exit)
  })

  it(`${kit}: a job that finishes in a transaction does what it does once`, async (server) => {
    const probe = await server.client.post('/_transact', { docs: {} })
    if (probe.status === 404) return
    const jobs = await newType(server, kit)
    const db = await server.newDatabase()
    const worker = jobs.start()
    await jobs.add('a', { do: 'transact', db })
    await jobs.is('a-next', 'finished')
    assert.equal(await jobs.state('a'), 'finished')
    assert.deepEqual((await jobs.get('a')).data, { did: true })
    assert.equal((await server.client.get(`/${db}/a`)).status, 200)
    assert.equal(worker.count('fail') + worker.count('halt'), 0)
    // What it adds may have all that any job has that is added.
    assert.equal((await jobs.get('a-later')).scheduled_at, Date.UTC(2099, 0, 31, 8))
    assert.deepEqual((await jobs.get('a-yearly')).schedule, { cron: '@yearly', time_zone: 'Europe/Berlin', missed: 'skip' })
  })

  it(`${kit}: a periodic job is added with its schedule, runs, and waits for its next time`, async (server) => {
    const jobs = await newType(server, kit)
    const worker = jobs.start()
    worker.tell('enqueue bad 61 * * * *')
    await worker.says('error 400 The minute of a cron expression,')
    worker.tell('enqueue a 0 0 1 jan *')
    await worker.says('enqueued a true')
    const { state, schedule, due_at } = await jobs.get('a')
    assert.deepEqual([state, schedule], ['pending', { cron: '0 0 1 jan *', time_zone: 'Europe/Berlin', missed: 'skip' }])
    await jobs.call('POST', '/a/_resubmit')
    await waitFor('a to have run', async () => (await jobs.get('a')).history.at(-1)?.outcome === 'finished')
    const after = await jobs.get('a')
    assert.deepEqual([after.state, after.due_at, after.data.by], ['pending', due_at, (await jobs.members())[0].id])
    worker.tell('enqueue a 0 0 1 jan *')
    await worker.says('enqueued a false')
    assert.deepEqual(await jobs.counts(), { pending: 1, running: 0, finished: 0, failed: 0, cancelled: 0 })
  })

  it(`${kit}: jobs whose acceptance is not heard of run all the same`, async (server) => {
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    // The first answer is lost on its way, while the worker's other connections hold: the server believes that it
    // has the job.
    let lost = 0
    const acceptInItsPlace = async () => {
      const [{ id, incarnation }] = await jobs.members()
      const body = { timeout: 60_000, worker: { role: jobs.type, id, incarnation } }
      assert.equal((await jobs.call('POST', '/_accept', body)).jobs.length, 1)
      return 'cut'
    }
    let listed = 0
    let scans = 0
    const proxy = await proxyTo(server, {
      onRequest: (text) => {
        if (/^GET \/_workers\/\S+\/_jobs\?/.test(text)) ++listed
        if (/^GET \S+\/_list\?/.test(text)) ++scans
        if (lost > 0 || !/^POST \S+_accept /.test(text)) return undefined
        ++lost
        return acceptInItsPlace()
      }
    })
    await jobs.add('a', { do: 'note' })
    const worker = jobs.start({ worker: { timeout: 300_000 } }, { url: proxy.url })
    await jobs.is('a', 'finished')
    assert.deepEqual([lost, worker.count('online'), (await jobs.get('a')).attempt], [1, 2, 2])
    // It looked at its own jobs, however many others run.
    assert.deepEqual([listed, scans], [1, 0])
  })

  it(`${kit}: jobs whose acceptance a gateway answers for with an error run all the same`, async (server) => {
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    let asked = false
    let changed = false
    const proxy = await proxyTo(server, {
      onRequest: (text) => {
        if (/^POST \S+_accept /.test(text)) asked = true
      },
      onAnswer: () => {
        if (changed || !asked) return undefined
        changed = true
        return 'HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 5\r\n\r\nlate\n'
      }
    })
    await jobs.add('a', { do: 'note' })
    const worker = jobs.start({ worker: { timeout: 300_000 } }, { url: proxy.url })
    await jobs.is('a', 'finished')
    assert.deepEqual([changed, worker.count('online'), (await jobs.get('a')).attempt], [true, 2, 2])
  })

  for (const [what, body] of Object.entries({ job: {}, 'periodic job': { schedule: { cron: '@yearly' } } })) {
    it(`${kit}: a finish of a ${what} whose answer is lost is no loss`, async (server) => {
      const jobs = await newType(server, kit)
      let finishes = 0
      let lost = false
      const proxy = await proxyTo(server, {
        onRequest: (text) => {
          if (/^POST \S+_finish /.test(text)) ++finishes
        },
        onAnswer: () => {
          if (lost || finishes === 0) return undefined
          lost = true
          return 'cut'
        }
      })
      await jobs.call('PUT', '/a', { data: { do: 'note' }, ...body })
      await jobs.call('POST', '/a/_resubmit')
      const worker = jobs.start({ worker: { timeout: 300_000, checkInterval: 60_000 } }, { url: proxy.url })
      await waitFor('a to have run', async () => (await jobs.get('a')).history.at(-1)?.outcome === 'finished')
      worker.tell('stop 60000')
      await worker.stopped()
      assert.deepEqual([finishes, worker.count('ran a'), worker.count('halt')], [2, 1, 0])
    })
  }

  const undone = '[{"id":"a","error":"transaction_timed_out","reason":"","status":503}]'
  const answers = {
    'is a gateway\'s error': 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\nsad\n',
    'says that it is not known': `HTTP/1.1 200 OK\r\nContent-Length: ${undone.length}\r\n\r\n${undone}`
  }
  for (const [what, answer] of Object.entries(answers)) {
    it(`${kit}: a finish whose answer ${what} is sent again, and is no loss`, async (server) => {
      const jobs = await newType(server, kit)
      let finishes = 0
      let changed = false
      const proxy = await proxyTo(server, {
        onRequest: (text) => {
          if (/^POST \S+_finish /.test(text)) ++finishes
        },
        onAnswer: () => {
          if (changed || finishes === 0) return undefined
          changed = true
          return answer
        }
      })
      await jobs.add('a', { do: 'note' })
      // Nothing else is answered meanwhile, but its heartbeats.
      const worker = jobs.start({ worker: { timeout: 300_000, checkInterval: 60_000 } }, { url: proxy.url })
      await jobs.is('a', 'finished')
      await waitFor('the second finish', () => finishes === 2)
      worker.tell('stop 60000')
      await worker.stopped()
      assert.deepEqual([finishes, worker.count('ran a'), worker.count('halt'), worker.count('fail')], [2, 1, 0, 0])
    })
  }

  it(`${kit}: the example does what it says, and stops when it is asked to`, async (server) => {
    const example = new WorkerProcess(KITS[kit][0], path.join(here, '../clients', EXAMPLES[kit]), withCredentials(server.url))
    await example.says('at work')
    await example.says('to Ann: Welcome!')
    const finished = async () => (await server.client.ok('GET', '/_jobs/letter/welcome-ann')).data.sent
    await waitFor('the letter to be sent', finished)
    example.kill('SIGTERM')
    await within('its end', example.exit)
    assert.deepEqual([example.child.exitCode, example.stderr], [0, ''])
    await server.client.ok('DELETE', '/_jobs/letter?force=true')
  })

  for (const how of ['stop', 'kill']) {
    testWithServer(`${kit}: workers go on when the server is back (${how})`, {}, async (server) => {
      const jobs = await newType(server, kit)
      await jobs.addMany(200, { do: 'note' })
      await jobs.add('held', { do: 'stubborn' })
      const worker = jobs.start({ concurrency: 4, worker: { timeout: 300_000 } })
      await waitFor('some to be finished', async () => (await jobs.counts()).finished > 10)
      await worker.says('ran held')
      const { port } = server.client
      if (how === 'stop') {
        server.ownsDirectory = false // its data stay
        await server.stop()
      } else {
        await server.kill()
      }
      await worker.says('offline')
      const back = await Server.start({ dataDir: server.dataDir, port })
      servers.add(back)
      await worker.says('online', 2)
      worker.tell('go')
      const counts = async () => (await back.client.ok('GET', `/_jobs/${jobs.type}`)).counts
      await waitFor('all to be finished', async () => (await counts()).finished === 201)
      // Who was not told to go keeps what it has.
      assert.deepEqual([worker.count('halt'), worker.count('ran held')], [0, 1])
      worker.tell('stop 60000')
      await worker.stopped()
      await back.stop()
      servers.delete(back)
    })
  }
}
