// POST /_jobs/_wait: waiting for several jobs. docs/jobs.md
import assert from 'node:assert/strict'
import { shareServer, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer()
let types = 0

async function typeWith(server, ids) {
  const type = `wait${++types}`
  await server.client.ok('PUT', `/_jobs/${type}`)
  for (const id of ids) await server.client.ok('PUT', `/_jobs/${type}/${id}`, {})
  return type
}

const jobsOf = (type, ids) => ids.map((id) => ({ type, id }))
const states = (answer) => answer.json.jobs.map(({ id, state, reached }) => [id, state, reached])

it('a wait for several jobs ends when enough of them have', async (server) => {
  const { client } = server
  const type = await typeWith(server, ['a', 'b', 'c'])
  const jobs = jobsOf(type, ['c', 'a', 'b'])
  const before = await server.metric('divan_events_subscribers')
  const other = server.as(server.credentials)
  const waiting = other.post('/_jobs/_wait', { jobs, count: 2, timeout: 300_000 })
  await waitFor('the wait to begin', async () => (await server.metric('divan_events_subscribers')) > before)
  await client.ok('POST', `/_jobs/${type}/a/_cancel`, {})
  await client.ok('DELETE', `/_jobs/${type}/b`)
  const answer = await waiting
  assert.equal(answer.json.reached, 2)
  assert.deepEqual(states(answer), [['c', 'pending', false], ['a', 'cancelled', true], ['b', 'not_found', true]])
  other.close()
})

it('a condition that holds already is answered at once, another at its timeout', async (server) => {
  const { client } = server
  const type = await typeWith(server, ['a', 'b'])
  const jobs = jobsOf(type, ['a', 'b'])
  const now = await client.post('/_jobs/_wait', { jobs, states: ['pending'], count: 2, timeout: 300_000 })
  assert.deepEqual(states(now), [['a', 'pending', true], ['b', 'pending', true]])
  assert.deepEqual(states(await client.post('/_jobs/_wait', { jobs })), [['a', 'pending', false], ['b', 'pending', false]])
  assert.equal((await client.post('/_jobs/_wait', { jobs, timeout: 50 })).json.reached, 0)
})

it('a wait whose client is gone ends', async (server) => {
  const type = await typeWith(server, ['a'])
  const subscribers = () => server.metric('divan_events_subscribers')
  const before = await subscribers()
  const other = server.as(server.credentials)
  const waiting = other.post('/_jobs/_wait', { jobs: jobsOf(type, ['a']), timeout: 300_000 }).catch(() => 'gone')
  await waitFor('the wait to begin', async () => (await subscribers()) > before)
  other.close()
  assert.equal(await waiting, 'gone')
  await waitFor('the wait to end', async () => (await subscribers()) <= before)
})

it('invalid waits are refused with an error', async (server) => {
  const { client } = server
  const jobs = [{ type: 't', id: 'a' }]
  const refused = async (body, reason) => {
    const { status, json } = await client.post('/_jobs/_wait', body)
    assert.deepEqual([status, json.error], [400, 'bad_request'])
    assert.match(json.reason, reason)
  }
  await refused({}, /jobs/)
  await refused({ jobs: [] }, /0 jobs; expected 1 to 1000/)
  await refused({ jobs: new Array(1001).fill(jobs[0]) }, /1001 jobs; expected 1 to 1000/)
  await refused({ jobs, states: ['done'] }, /"done"; expected pending/)
  await refused({ jobs, states: 'finished' }, /`states` is "finished"; expected an array of pending/)
  await refused({ jobs, count: 2 }, /`count` is 2; expected 1 to 1/)
  await refused({ jobs, timeout: -1 }, /`timeout` is -1/)
  await refused({ jobs, wait: 1 }, /Unknown member `wait`/)
  assert.equal((await client.get('/_jobs/_wait')).status, 405)
})

testWithServer('waits are answered when the server stops', {}, async (server) => {
  const type = await typeWith(server, ['a'])
  const before = await server.metric('divan_events_subscribers')
  const other = server.as(server.credentials)
  const waiting = other.post('/_jobs/_wait', { jobs: jobsOf(type, ['a']), timeout: 300_000 })
  await waitFor('the wait to begin', async () => (await server.metric('divan_events_subscribers')) > before)
  await server.stop()
  assert.equal((await waiting).json.reached, 0)
  other.close()
})
