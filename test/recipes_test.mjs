// The programs of docs/job-recipes.md, run unchanged, and killed and frozen where the text says that they
// tolerate it.
import assert from 'node:assert/strict'
import { programs, run } from './support/program.mjs'
import { Server, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const FILE = 'docs/job-recipes.md'
const program = (heading) => programs(FILE, heading)[0]

/** A test with the first program under the heading: `start()` runs it. What still runs at the end is killed. */
function testRecipe(heading, name, body) {
  testWithServer(`"${heading}": ${name}`, {}, async (server) => {
    const started = []
    const start = (...args) => {
      started.push(run(program(heading), server, ...args))
      return started.at(-1)
    }
    try {
      await body(server, start)
    } finally {
      for (const running of started) await running.end()
    }
  })
}

const job = (server, type, id) => server.client.ok('GET', `/_jobs/${type}/${id}`)
const counts = async (server, type) => (await server.client.ok('GET', `/_jobs/${type}`)).counts
const finished = (server, type, n = 1) =>
  waitFor(`${n} jobs of ${type} to be finished`, async () => (await counts(server, type)).finished === n)

for (const heading of ['The protocol, step by step', 'The same work once']) {
  testRecipe(heading, 'it prints what it is said to print', async (server, start) => {
    assert.equal(await start().output(), programs(FILE, heading)[1].source)
  })
}

testRecipe('A worker in the shell', 'it runs job after job, and tolerates a restart of the server', async (server, start) => {
  await server.client.ok('PUT', '/_jobs/letter')
  await server.client.ok('PUT', '/_jobs/letter/a%20b', { data: { to: 'Ann' } })
  const worker = start()
  await worker.says('to Ann')
  await finished(server, 'letter', 1)
  await server.kill()
  const again = await Server.start({ dataDir: server.dataDir, port: server.client.port })
  try {
    await again.client.ok('PUT', '/_jobs/letter/b', { data: { to: 'Bob' } })
    await worker.says('to Bob')
    await finished(again, 'letter', 2)
  } finally {
    await worker.end()
    await again.stop()
  }
})

testRecipe('A document and its job, together', 'the second order neither writes nor sends', async (server, start) => {
  await server.client.ok('PUT', '/shop')
  const first = start()
  await first.says('to Ann: order-7 is 30')
  await finished(server, 'mail')
  await first.end()
  const second = first.again()
  try {
    await second.says('was ordered before')
    assert.deepEqual(await counts(server, 'mail'), { pending: 0, running: 0, finished: 1, failed: 0, cancelled: 0 })
    assert.equal((await job(server, 'mail', 'order-7')).attempt, 1)
    assert.match((await server.client.ok('GET', '/shop/order-7'))._rev, /^1-/)
  } finally {
    await second.end()
  }
})

testRecipe('Exactly once into documents', 'each transfer counts once, even if worker and server are killed', async (server, start) => {
  const N = 60
  await server.client.ok('PUT', '/bank')
  await server.client.ok('POST', '/bank/_bulk_docs', { docs: [{ _id: 'ann', balance: 1000 }, { _id: 'bob', balance: 0 }] })
  await server.client.ok('PUT', '/_jobs/transfer', { backoff_min: 0, backoff_max: 10, max_attempts: 1000 })
  const data = { from: 'ann', to: 'bob', amount: 1 }
  const all = Array.from({ length: N }, (_, n) => ({ id: `t${n}`, data }))
  await server.client.ok('POST', '/_jobs/transfer/_bulk', { jobs: all })

  const first = start()
  await first.says('done', 5)
  await first.end()
  const second = first.again()
  await second.says('done', 5)
  await server.kill()
  const again = await Server.start({ dataDir: server.dataDir, port: server.client.port })
  try {
    await finished(again, 'transfer', N)
    const balance = async (id) => (await again.client.ok('GET', `/bank/${id}`)).balance
    assert.deepEqual([await balance('ann'), await balance('bob')], [1000 - N, N])
    // Two concurrent ones must have conflicted, or the loop is untested.
    assert.match((await again.client.ok('GET', '/bank/bob'))._rev, new RegExp(`^${N + 1}-`))
  } finally {
    await second.end()
    await again.stop()
  }
})

testRecipe('Many jobs, then one', 'the last part adds the report once, even if a worker is killed', async (server, start) => {
  await server.client.ok('PUT', '/batches')
  const added = await server.client.open('/_jobs/_events?heartbeat=60000')
  const first = start()
  await first.says('counted')
  await first.end()
  const second = first.again()
  try {
    await second.says('batch-1 has 15 words')
    await finished(server, 'report')
    const { remaining, words } = await server.client.ok('GET', '/batches/batch-1')
    assert.deepEqual([remaining, words], [0, 15])
    assert.equal((await counts(server, 'part')).finished, 5)
    // It was added when no part was left, and only once.
    const open = new Set()
    let reports = 0
    for (;;) {
      const { type, id, state, attempt } = await added.row()
      if (type === 'part') state === 'finished' ? open.delete(id) : open.add(id)
      if (type === 'report' && attempt === 0) assert.deepEqual([++reports, open.size], [1, 0])
      if (type === 'report' && state === 'finished') break
    }
    assert.equal(reports, 1)
  } finally {
    await second.end()
  }
})

testRecipe('Effects outside: the epoch', 'the outside system refuses a worker that was frozen', async (server, start) => {
  await server.client.ok('PUT', '/_jobs/invoice')
  await server.client.ok('PUT', '/_jobs/invoice/7', { data: { seconds: 3 } })
  const first = start('first')
  await first.says('first begins 7')
  first.signal('SIGSTOP')
  const second = first.again('second')
  try {
    await second.says('second wrote 7')
    first.signal('SIGCONT')
    await first.says('first is too late for 7')
    await finished(server, 'invoice')
    const { attempt, history } = await job(server, 'invoice', '7')
    assert.equal(attempt, 2)
    assert.deepEqual(history.map(({ outcome }) => outcome), ['lost', 'finished'])
    assert.ok(history[1].epoch > history[0].epoch)
  } finally {
    await second.end()
  }
})

testRecipe('Waiting for a result', 'the result is returned, at once if it exists, and so is the failure', async (server, start) => {
  assert.equal(await start().output(), '{ sum: 42 }\n{ sum: 42 }\nnonsense is failed: what numbers?\n')
})

testRecipe('A limit on concurrent jobs', 'two processes together run two calls at once', async (server, start) => {
  const first = start()
  const second = start()
  await waitFor('the type', async () => (await server.client.get('/_jobs/call')).status === 200)
  const ids = ['a', 'b', 'c', 'd', 'e', 'f']
  await server.client.ok('POST', '/_jobs/call/_bulk', { jobs: ids.map((id) => ({ id })) })
  await finished(server, 'call', ids.length)
  const runs = []
  for (const id of ids) runs.push((await job(server, 'call', id)).history[0])
  const atOnce = runs.map(({ started_at: at }) => runs.filter((run) => run.started_at <= at && at < run.ended_at).length)
  assert.equal(Math.max(...atOnce), 2)
  assert.equal(first.count('calls') + second.count('calls'), ids.length)
})

testRecipe('Every morning', 'it runs on request, and waits for the next weekday at half past seven', async (server, start) => {
  const worker = start()
  const periodic = () => job(server, 'report', '_periodic')
  const waiting = await waitFor('the periodic job', periodic)
  const berlin = { timeZone: 'Europe/Berlin', weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }
  assert.match(new Date(waiting.scheduled_at).toLocaleString('en', berlin), /^(Mon|Tue|Wed|Thu|Fri).* 07:30$/)
  for (const number of [1, 2]) {
    await server.client.ok('POST', '/_jobs/report/_periodic/_resubmit', {})
    await worker.says(`report ${number} is of`)
    await waitFor('the next tick', async () => {
      const { state, scheduled_at, data } = await periodic()
      return state === 'pending' && scheduled_at === waiting.scheduled_at && data.number === number + 1
    })
  }
})
