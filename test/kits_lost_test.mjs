// The worker kits of clients/ when workers, servers, connections and responses are lost. Every test runs with
// each kit.
import assert from 'node:assert/strict'
import { cleanUp, has, isFinish, kits, needs, newType, proxyTo, startAgain } from './support/kits.mjs'
import { shareServer, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const shared = shareServer()
cleanUp()

// For onRequest of a proxy: accepts a job for the worker, in place of its own request.
async function acceptFor(jobs) {
  const [{ id, incarnation }] = await jobs.members()
  const { jobs: accepted } = await jobs.call('POST', '/_accept', { timeout: 60_000, worker: { role: jobs.type, id, incarnation } })
  assert.equal(accepted.length, 1)
  return 'cut'
}

for (const kit of kits) {
  const it = needs(shared, kit)
  it(`${kit}: the jobs of a worker that is killed run elsewhere`, async (server) => {
    // Only the end of the connection can free them in time.
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

  it(`${kit}: a worker that was frozen loses its job, and its result is ignored`, async (server) => {
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    await jobs.add('a', { do: 'stubborn' })
    // Its connection stays open, but its heartbeats are missing.
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
    assert.equal((await jobs.get('a')).result.by, 'second')
    assert.equal(first.count('halt'), 1)
    // The worker is not affected.
    second.tell('stop 60000')
    await second.stopped()
    await jobs.add('b', { do: 'note' })
    await jobs.is('b', 'finished')
    assert.equal((await jobs.get('b')).result.by, 'first')
  })

  needs(shared, kit, 'late')(`${kit}: late writes of a worker that was frozen have no effect`, async (server) => {
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    const db = await server.newDatabase()
    await jobs.add('a', { do: 'late', db })
    const first = jobs.start({ worker: { id: 'first', timeout: 1_000 } })
    await first.says('ran a')
    first.kill('SIGSTOP')
    const second = jobs.start({ worker: { id: 'second', timeout: 300_000 } })
    await second.says('ran a')
    // Its handler continues as soon as it can, whether or not it has received the halt by then.
    first.tell('go')
    first.kill('SIGCONT')
    await first.says('refused a update halt')
    await first.says('refused a transact halt')
    assert.deepEqual([await jobs.state('a'), (await jobs.get('a')).worker.id], ['running', 'second'])
    assert.equal((await server.client.get(`/${db}/a`)).status, 404)
    second.tell('go')
    await jobs.is('a', 'finished')
    assert.deepEqual([(await jobs.get('a')).result, second.count('refused')], [{ by: 'second' }, 0])
    assert.equal((await server.client.ok('GET', `/${db}/a`)).by, 'second')
  })

  it(`${kit}: a worker whose registration ends gets a halt over its connection`, async (server) => {
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    await jobs.add('a', { do: 'stubborn' })
    // No other message would reach it in time.
    const worker = jobs.start({ worker: { timeout: 3_000_000, checkInterval: 3_000_000 } })
    await worker.says('ran a')
    const [{ id }] = await jobs.members()
    await server.client.ok('DELETE', `/_workers/${jobs.type}/${id}`)
    await worker.says('aborted a halt')
    await worker.says('online', 2)
  })

  it(`${kit}: a worker whose connection breaks reconnects, and its jobs continue if the server has not noticed`, async (server) => {
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
    // It has processed the old connections' ends before this.
    for (let i = 0; i < 20; ++i) assert.deepEqual((await jobs.members()).map((worker) => worker.incarnation), [incarnation])
    worker.tell('go')
    await jobs.is('a', 'finished')
    assert.deepEqual([worker.count('halt'), worker.count('ran a')], [0, 1])
  })

  it(`${kit}: jobs run even if the response to their accept is lost`, async (server) => {
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    // The first response is lost, while the worker's other connections stay open: for the server, the worker
    // has the job.
    let lost = 0
    let listed = 0
    let scans = 0
    const proxy = await proxyTo(server, {
      onRequest: (text) => {
        if (/^GET \/_workers\/\S+\/_jobs\?/.test(text)) ++listed
        if (/^GET \S+\/_list\?/.test(text)) ++scans
        if (lost > 0 || !/^POST \S+_accept /.test(text)) return undefined
        ++lost
        return acceptFor(jobs)
      }
    })
    await jobs.add('a', { do: 'note' })
    const types = [...(has(kit, 'types') ? [(await newType(server, kit)).type] : []), jobs.type]
    const worker = jobs.start({ types, worker: { timeout: 300_000 } }, { url: proxy.url })
    await jobs.is('a', 'finished')
    assert.deepEqual([lost, worker.count('online'), (await jobs.get('a')).attempt], [1, 2, 2])
    // It reads its own jobs of each type, however many others run.
    assert.deepEqual([listed, scans], [types.length, 0])
  })

  it(`${kit}: a job whose accept was lost is found beside others that one transaction has accepted`, async (server) => {
    const jobs = await newType(server, kit, { timeout: 3_600_000 })
    // The jobs have one epoch, since all requests wait for them.
    let accepts = 0
    const proxy = await proxyTo(server, {
      onRequest: (text) => (/^POST \S+_accept /.test(text) && ++accepts === 1 ? acceptFor(jobs) : undefined)
    })
    const worker = jobs.start({ concurrency: 4, worker: { timeout: 300_000 } }, { url: proxy.url })
    await waitFor('all slots to wait', () => accepts >= (has(kit, 'batches') ? 1 : 4))
    await jobs.addMany(4, { do: 'hold' })
    await waitFor('each job to have run', () => [0, 1, 2, 3].every((i) => worker.count(`ran job${i}`) > 0))
    await waitFor('all to be finished', async () => {
      worker.tell('go')
      return (await jobs.counts()).finished === 4
    })
  })

  it(`${kit}: jobs run even if a gateway answers their accept with an error`, async (server) => {
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
          if (isFinish(text)) ++finishes
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

  if (kit === 'js') {
    it('js: a busy worker reports with two requests at a time, and one of them may be lost', async (server) => {
      const jobs = await newType(server, kit)
      await jobs.addMany(1_200, { do: 'stubborn' })
      let begun = 0
      let reported
      const both = new Promise((resolve) => (reported = resolve))
      const firsts = [] // the first jobs of the requests
      const proxy = await proxyTo(server, {
        // Both wait until the other one has been sent.
        onRequest: (text) => {
          const [, id] = /\{"jobs":\[\{"id":"(.*?)"/.exec(text) ?? []
          if (id) firsts.push(id)
          if (!/^POST \S*\/_finish /.test(text) || ++begun > 2) return undefined
          if (begun === 1) return both.then(() => 'cut')
          reported()
          return both
        }
      })
      const worker = jobs.start({ worker: { timeout: 300_000, checkInterval: 60_000 }, concurrency: 1_200 }, { url: proxy.url })
      await worker.says('ran', 1_200)
      worker.tell('go')
      await waitFor('all to be finished', async () => (await jobs.counts()).finished === 1_200)
      assert.notEqual(firsts[0], firsts[1])
      worker.tell('stop 60000')
      await worker.stopped()
      assert.deepEqual([worker.count('ran'), worker.count('halt'), worker.count('fail')], [1_200, 0, 0])
    })
  }

  const undone = '[{"id":"a","error":"transaction_timed_out","reason":"","status":503}]'
  const notKnown = kit === 'js' ? `{"jobs":[],"finished":${undone}}` : undone // with an accept, or alone
  const answers = {
    'is a gateway\'s error': 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\nsad\n',
    'says that it is not known': `HTTP/1.1 200 OK\r\nContent-Length: ${notKnown.length}\r\n\r\n${notKnown}`
  }
  for (const [what, answer] of Object.entries(answers)) {
    it(`${kit}: a finish whose answer ${what} is sent again, and is no loss`, async (server) => {
      const jobs = await newType(server, kit)
      let finishes = 0
      let changed = false
      const proxy = await proxyTo(server, {
        onRequest: (text) => {
          if (isFinish(text)) ++finishes
        },
        onAnswer: () => {
          if (changed || finishes === 0) return undefined
          changed = true
          return answer
        }
      })
      await jobs.add('a', { do: 'note' })
      // Only its heartbeats are served meanwhile.
      const worker = jobs.start({ worker: { timeout: 300_000, checkInterval: 60_000 } }, { url: proxy.url })
      await jobs.is('a', 'finished')
      await waitFor('the second finish', () => finishes === 2)
      worker.tell('stop 60000')
      await worker.stopped()
      assert.deepEqual([finishes, worker.count('ran a'), worker.count('halt'), worker.count('fail')], [2, 1, 0, 0])
    })
  }

  for (const how of ['stop', 'kill']) {
    needs(testWithServer, kit)(`${kit}: workers continue when the server is back (${how})`, {}, async (server) => {
      const jobs = await newType(server, kit)
      await jobs.addMany(200, { do: 'note' })
      await jobs.add('held', { do: 'stubborn' })
      const worker = jobs.start({ concurrency: 4, worker: { timeout: 300_000 } })
      await waitFor('some to be finished', async () => (await jobs.counts()).finished > 10)
      await worker.says('ran held')
      if (how === 'stop') {
        server.ownsDirectory = false // keep its data
        await server.stop()
      } else {
        await server.kill()
      }
      await worker.says('offline')
      const back = await startAgain(server)
      await worker.says('online', 2)
      worker.tell('go')
      const counts = async () => (await back.client.ok('GET', `/_jobs/${jobs.type}`)).counts
      await waitFor('all to be finished', async () => (await counts()).finished === 201)
      // A worker that did not get a halt keeps its jobs.
      assert.deepEqual([worker.count('halt'), worker.count('ran held')], [0, 1])
      worker.tell('stop 60000')
      await worker.stopped()
      await back.stop()
    })
  }
}
