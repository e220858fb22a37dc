// The worker kits of clients/: running jobs, reports, and stopping. Every test runs with each kit.
import assert from 'node:assert/strict'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { cleanUp, isFinish, KITS, kits, needs, newType, proxyTo, withCredentials } from './support/kits.mjs'
import { shareServer } from './support/server.mjs'
import { waitFor, within } from './support/wait.mjs'
import { WorkerProcess } from './support/worker_process.mjs'

const clients = path.join(path.dirname(fileURLToPath(import.meta.url)), '../clients')
const EXAMPLES = { js: 'js/example.mjs', python: 'python/example.py' }
const shared = shareServer()
cleanUp()

for (const kit of kits) {
  const it = needs(shared, kit)
  const only = (...features) => needs(shared, kit, ...features)
  it(`${kit}: many workers share many jobs, and each job runs once`, async (server) => {
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

  only('batches')(`${kit}: accepts, finishes and failures are sent in batches`, async (server) => {
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

  if (kit === 'js') {
    // Runs `n` jobs one after the other; resolves to how many finishes were sent alone, and with an accept. `answer`: the response
    // to the latter, instead of the server's.
    const finishesOf = async (server, n, answer) => {
      const jobs = await newType(server, kit)
      const count = { alone: 0, combined: 0 }
      const proxy = await proxyTo(server, {
        onRequest: (text) => {
          if (!isFinish(text)) return undefined
          const combined = !/^POST \S+_finish /.test(text)
          ++count[combined ? 'combined' : 'alone']
          return combined && answer ? { answer } : undefined
        }
      })
      await jobs.addMany(n, { do: 'note' })
      const worker = jobs.start({}, { url: proxy.url })
      await waitFor('all jobs to be finished', async () => (await jobs.counts()).finished === n)
      worker.tell('stop 60000')
      await worker.stopped()
      return count
    }

    it('js: a worker with one job at a time finishes each with the request for the next', async (server) => {
      assert.deepEqual(await finishesOf(server, 20), { alone: 0, combined: 20 })
    })

    it('js: a worker of a server that does not know `finish` in an accept sends it alone', async (server) => {
      const body = '{"error":"bad_request","reason":"Unknown member `finish`."}'
      const answer = `HTTP/1.1 400 Bad Request\r\nContent-Length: ${body.length}\r\n\r\n${body}`
      const count = await finishesOf(server, 5, answer)
      assert.equal(count.combined, 1)
      assert.ok(count.alone >= 1, 'the finishes are sent in bulk') // a request may have two of them
    })
  }

  only('results')(`${kit}: a handler's return value is the job's result, and the job's data does not change`, async (server) => {
    const jobs = await newType(server, kit, { max_attempts: 1 })
    await jobs.add('a', { do: 'note', n: 1 })
    const worker = jobs.start()
    await jobs.is('a', 'finished')
    const { data, result } = await jobs.get('a')
    assert.deepEqual([data, result.by], [{ do: 'note', n: 1 }, (await jobs.members())[0].id])
    // A result and new data: a resubmit runs with the data.
    await jobs.add('b', { do: 'count', n: 1 })
    await jobs.is('b', 'finished')
    assert.deepEqual([(await jobs.get('b')).data, (await jobs.get('b')).result], [{ do: 'count', n: 2 }, { counted: 1 }])
    await jobs.call('POST', '/b/_resubmit')
    await waitFor('b to run again', async () => (await jobs.get('b')).result?.counted === 2)
    assert.deepEqual((await jobs.get('b')).data, { do: 'count', n: 3 })
    await jobs.add('c', { do: 'nothing' })
    await jobs.is('c', 'finished')
    const ended = await jobs.get('c')
    assert.deepEqual([ended.data, 'result' in ended], [{ do: 'nothing' }, false])
    assert.equal(worker.count('fail') + worker.count('halt'), 0)
  })

  only('types')(`${kit}: one handler serves several types, as one queue`, async (server) => {
    const [jobs, others] = [await newType(server, kit, { max_attempts: 1 }), await newType(server, kit, { max_attempts: 1 })]
    await jobs.add('last', { do: 'note' }, { priority: 3 })
    await others.add('first', { do: 'note' }, { priority: 1 })
    await jobs.add('second', { do: 'throw' }, { priority: 2 })
    await others.add('third', { do: 'throw' }, { priority: 2 })
    const accepts = []
    let acceptsOfOneType = 0
    const proxy = await proxyTo(server, {
      // A body may arrive separately from its head.
      onRequest: (text) => {
        if (/^POST \/_jobs\/[^/]+\/_accept /.test(text)) ++acceptsOfOneType
        const given = /"types":\s*(\[[^\]]*\])/.exec(text)
        if (given) accepts.push(JSON.parse(given[1]))
      }
    })
    const types = [jobs.type, others.type]
    const worker = jobs.start({ types }, { url: proxy.url })
    await jobs.is('last', 'finished')
    assert.deepEqual(worker.lines.filter((line) => line.startsWith('ran ')), ['ran first', 'ran second', 'ran third', 'ran last'])
    // Each type's reports are sent separately.
    await others.is('first', 'finished')
    await jobs.is('second', 'failed')
    await others.is('third', 'failed')
    assert.ok(accepts.length > 0 && accepts.every((given) => given.join() === types.join()), JSON.stringify(accepts))
    assert.equal(acceptsOfOneType, 0)
    // The jobs of both types are checked and released.
    await jobs.add('hold', { do: 'hold' })
    await worker.says('ran hold')
    await jobs.call('POST', '/hold/_cancel')
    await worker.says('aborted hold cancel')
    await others.add('other', { do: 'hold' })
    await worker.says('ran other')
    await others.call('POST', '/other/_cancel')
    await worker.says('aborted other cancel')
    await others.add('stubborn', { do: 'stubborn' })
    await worker.says('ran stubborn')
    worker.tell('stop 1')
    await worker.stopped()
    assert.deepEqual((await others.get('stubborn')).history.map(({ outcome }) => outcome), ['released'])
    assert.equal(worker.count('halt'), 0)
    // Jobs that end together are reported by type.
    await others.call('DELETE', '/stubborn')
    for (const each of [jobs, others]) await each.addMany(30, { do: 'note' })
    const busy = jobs.start({ types, concurrency: 20 })
    for (const each of [jobs, others]) {
      await waitFor('all to be finished', async () => {
        assert.deepEqual([busy.count('halt'), busy.count('fail')], [0, 0])
        return (await each.counts()).finished >= 30
      })
    }
  })

  it(`${kit}: an attempt that ends at its max_runtime gets a halt over the held connection`, async (server) => {
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    // No other message would reach it in time.
    const worker = jobs.start({ concurrency: 2, worker: { timeout: 3_000_000, checkInterval: 3_000_000 } })
    await worker.says('online')
    await jobs.add('other', { do: 'stubborn' })
    await worker.says('ran other')
    await jobs.add('a', { do: 'stubborn' }, { max_runtime: 100, max_attempts: 1 })
    await worker.says('aborted a halt')
    await worker.says('halt a')
    await jobs.is('a', 'failed')
    assert.match((await jobs.get('a')).last_error, /max_runtime/)
    worker.tell('go')
    await jobs.is('other', 'finished')
    worker.tell('stop 60000')
    await worker.stopped()
    assert.deepEqual([await jobs.state('a'), worker.count('online'), worker.count('aborted'), worker.count('fail')], ['failed', 1, 1, 0])
  })

  // Halts arrive over the held connection, and in the response to a check.
  for (const [event, what, held] of [['halt', 'stubborn', true], ['halt', 'stubborn'], ['fail', 'throw']]) {
    only('listeners')(`${kit}: an exception in a listener of ${event} ends the worker${held ? ', of one over the connection, too' : ''}`, async (server) => {
      const jobs = await newType(server, kit, { timeout: 3_600_000 })
      const worker = jobs.start({ faulty: event, worker: held ? { timeout: 3_000_000, checkInterval: 3_000_000 } : {} })
      await jobs.add('a', { do: what }, { max_attempts: 1, ...(held && { max_runtime: 100 }) })
      await worker.says('ran a')
      if (event === 'halt' && !held) await jobs.call('DELETE', '/a')
      await worker.says(`${event} a`)
      await worker.says(`error in the listener of ${event}`)
    })
  }

  if (kit === 'python') {
    it('python: a handler that snoozes for what is not a duration has failed', async (server) => {
      const jobs = await newType(server, kit, { max_attempts: 1 })
      const worker = jobs.start()
      await jobs.add('a', { do: 'snooze', delay: 'soon' })
      await jobs.is('a', 'failed')
      worker.tell('stop 60000')
      await worker.stopped()
    })
  }

  it(`${kit}: a job's own limits override its type's`, async (server) => {
    const jobs = await newType(server, kit)
    await jobs.add('a', { do: 'throw' }, { max_attempts: 1 })
    await jobs.add('b', { do: 'throw' }, { max_attempts: 3, backoff_min: 1, backoff_max: 2 })
    await jobs.add('c', { do: 'stubborn' }, { max_lost: 1 })
    const worker = jobs.start({ concurrency: 3 })
    await jobs.is('a', 'failed')
    await jobs.is('b', 'failed')
    assert.deepEqual([(await jobs.get('a')).attempt, (await jobs.get('b')).attempt], [1, 3])
    await worker.says('ran c')
    worker.kill('SIGKILL')
    await jobs.is('c', 'failed')
  })

  it(`${kit}: a cancelled job's handler gets its signal`, async (server) => {
    const jobs = await newType(server, kit)
    await jobs.add('a', { do: 'hold' })
    const worker = jobs.start()
    await worker.says('ran a')
    await jobs.call('POST', '/a/_cancel')
    await worker.says('aborted a cancel')
    await jobs.is('a', 'cancelled')
    assert.equal(worker.count('fail') + worker.count('halt'), 0)
  })

  it(`${kit}: a removed job's handler gets its signal, and its result is ignored`, async (server) => {
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

  it(`${kit}: a worker that stops waits for running jobs, and accepts no more`, async (server) => {
    const jobs = await newType(server, kit)
    await jobs.add('a', { do: 'hold' })
    const worker = jobs.start({ concurrency: 2 })
    await worker.says('ran a')
    worker.tell('stop 3600000')
    await worker.says('stopping')
    // Its last request for jobs may still succeed: it releases them.
    await jobs.add('b', { do: 'hold' })
    await waitFor('b to be released', async () => {
      const { state, history } = await jobs.get('b')
      return state === 'pending' && history.at(-1)?.outcome === 'released'
    })
    assert.equal(await jobs.state('a'), 'running')
    worker.tell('go')
    await worker.stopped()
    assert.equal(await jobs.state('a'), 'finished')
    assert.deepEqual([worker.count('ran b'), worker.count('aborted')], [0, 0])
    assert.deepEqual(await jobs.members(), [])
  })

  it(`${kit}: a worker that stops has reported what its handlers have done`, async (server) => {
    const jobs = await newType(server, kit)
    let proceed
    let reported = false
    const report = new Promise((resolve) => (proceed = resolve))
    const proxy = await proxyTo(server, {
      onRequest: (text) => {
        if (!isFinish(text)) return undefined
        reported = true
        return report
      }
    })
    await jobs.add('a', { do: 'note' })
    const worker = jobs.start({}, { url: proxy.url })
    await waitFor('the report', () => reported)
    worker.tell('stop 0')
    await worker.says('stopping')
    // A worker that did not wait would end its registration meanwhile.
    setTimeout(proceed, 500)
    await worker.stopped()
    assert.deepEqual([await jobs.state('a'), (await jobs.get('a')).attempt, await jobs.members()], ['finished', 1, []])
  })

  it(`${kit}: a worker that stops releases jobs that take too long, in one request`, async (server) => {
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

  only('delays')(`${kit}: a handler decides that its job fails for good, or when it runs again`, async (server) => {
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

  only('hooks')(`${kit}: hooks run around the handlers, with the job's trace`, async (server) => {
    const jobs = await newType(server, kit, { max_attempts: 1 })
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    await jobs.add('a', { do: 'hooked', traceparent })
    const worker = jobs.start()
    await jobs.is('a', 'finished')
    assert.equal((await jobs.get('a')).result.hooked, true)
    const order = ['before a outer ' + traceparent, 'before a inner', 'ran a', 'after a outer']
    assert.deepEqual(worker.lines.filter((line) => / a( |$)/.test(line)), order)
    await jobs.add('b', { do: 'hooked', skip: true, traceparent: 'malformed' })
    await jobs.is('b', 'finished')
    assert.deepEqual([(await jobs.get('b')).result, worker.count('ran b'), worker.count('before b outer none')], [{ skipped: true }, 0, 1])
    await jobs.add('c', { do: 'hooked', fail: true })
    await jobs.is('c', 'failed')
    assert.deepEqual([(await jobs.get('c')).last_error, worker.count('caught c in a hook'), worker.count('fail c')], ['in a hook', 1, 1])
  })

  only('large')(`${kit}: a result that is too large is a failure, and does not affect others`, async (server) => {
    const jobs = await newType(server, kit, { max_attempts: 1 })
    await jobs.addMany(5, { do: 'note' })
    await jobs.add('a', { do: 'big' })
    const worker = jobs.start({ concurrency: 6 })
    await jobs.is('a', 'failed')
    assert.match((await jobs.get('a')).last_error, /too_large/)
    await waitFor('the others to be finished', async () => (await jobs.counts()).finished === 5)
    assert.equal(worker.count('halt'), 0)
  })

  it(`${kit}: a worker waits for a paused type`, async (server) => {
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

  only('transact')(`${kit}: a job that finishes in a transaction has its effect once`, async (server) => {
    const probe = await server.client.post('/_transact', { docs: {} })
    if (probe.status === 404) return
    const jobs = await newType(server, kit)
    const db = await server.newDatabase()
    const worker = jobs.start()
    await jobs.add('a', { do: 'transact', db })
    await jobs.is('a-next', 'finished')
    assert.equal(await jobs.state('a'), 'finished')
    assert.deepEqual((await jobs.get('a')).result, { did: true })
    assert.equal((await server.client.get(`/${db}/a`)).status, 200)
    assert.equal(worker.count('fail') + worker.count('halt'), 0)
    // Jobs that it adds may have all options.
    assert.equal((await jobs.get('a-later')).scheduled_at, Date.UTC(2099, 0, 31, 8))
    assert.deepEqual((await jobs.get('a-yearly')).schedule, { cron: '@yearly', time_zone: 'Europe/Berlin', missed: 'skip' })
  })

  only('schedules')(`${kit}: a periodic job is added with its schedule, runs, and waits for its next time`, async (server) => {
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
    assert.deepEqual([after.state, after.due_at, after.result.by], ['pending', due_at, (await jobs.members())[0].id])
    worker.tell('enqueue a 0 0 1 jan *')
    await worker.says('enqueued a false')
    assert.deepEqual(await jobs.counts(), { pending: 1, running: 0, finished: 0, failed: 0, cancelled: 0 })
  })

  if (EXAMPLES[kit]) it(`${kit}: the example works, and stops on a signal`, async (server) => {
    const example = new WorkerProcess(KITS[kit][0], path.join(clients, EXAMPLES[kit]), withCredentials(server.url))
    await example.says('online')
    await example.says('to Ann: Welcome!')
    const finished = async () => (await server.client.ok('GET', '/_jobs/letter/welcome-ann')).result !== undefined
    await waitFor('the letter to be sent', finished)
    example.kill('SIGTERM')
    await within('its end', example.exit)
    assert.deepEqual([example.child.exitCode, example.stderr], [0, ''])
    await server.client.ok('DELETE', '/_jobs/letter?force=true')
  })
}
