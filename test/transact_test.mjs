// Transactions over documents and jobs: permissions, size limits, and that a worker that has lost its job
// writes nothing. docs/jobs.md
import assert from 'node:assert/strict'
import { shareServer, testWithServer } from './support/server.mjs'

const it = shareServer()
let types = 0

async function newType(server, settings = {}) {
  const type = `transact${++types}`
  await server.client.ok('PUT', `/_jobs/${type}`, settings)
  return type
}

const answer = async (promise) => {
  const { status, json } = await promise
  return `${status} ${json.error ?? 'ok'}`
}

it('writes of a worker that has lost its job have no effect', async (server) => {
  const { client } = server
  const db = await server.newDatabase()
  const type = await newType(server, { timeout: 600_000 })
  await client.ok('PUT', `/_jobs/${type}/a`, {})
  const role = `of-${type}`
  await client.ok('PUT', `/_workers/${role}/w`, { timeout: 600_000 })
  const accept = async (more) => (await client.ok('POST', `/_jobs/${type}/_accept`, { timeout: 60_000, ...more })).jobs[0]
  const stale = await accept({ worker: { role, id: 'w' } })
  await client.ok('DELETE', `/_workers/${role}/w`)
  const fresh = await accept()
  const end = ({ lock }, by) =>
    client.post('/_transact', {
      docs: { [db]: [{ _id: `effect-of-${by}` }] },
      jobs: { finish: [{ type, id: 'a', lock }], add: [{ type, id: `after-${by}` }] }
    })
  assert.equal(await answer(end(stale, 'stale')), '409 halt')
  assert.equal(await answer(client.get(`/${db}/effect-of-stale`)), '404 not_found')
  assert.equal(await answer(client.get(`/_jobs/${type}/after-stale`)), '404 not_found')
  assert.equal(await answer(end(fresh, 'fresh')), '200 ok')
  assert.equal((await client.get(`/${db}/effect-of-fresh`)).status, 200)
  // Repeated, as after a lost response: it takes effect once.
  assert.equal(await answer(end(fresh, 'fresh')), '409 halt')
  assert.equal((await client.ok('GET', `/${db}`)).doc_count, 1)
})

it('concurrent increments by workers count once each', async (server) => {
  const { client } = server
  const dbs = [await server.newDatabase(), await server.newDatabase()]
  const type = await newType(server)
  for (const db of dbs) await client.ok('PUT', `/${db}/sum`, { n: 0 })
  const ids = Array.from({ length: 30 }, (_, i) => ({ id: `j${i}` }))
  await client.ok('POST', `/_jobs/${type}/_bulk`, { jobs: ids })
  let conflicts = 0
  const worker = async () => {
    for (;;) {
      const { jobs } = await client.ok('POST', `/_jobs/${type}/_accept`, {})
      if (jobs.length === 0) return
      for (;;) {
        const docs = {}
        for (const db of dbs) {
          const sum = await client.ok('GET', `/${db}/sum`)
          docs[db] = [{ ...sum, n: sum.n + 1 }]
        }
        const { status, json } = await client.post('/_transact', {
          docs, jobs: { finish: [{ type, id: jobs[0].id, lock: jobs[0].lock }] }
        })
        if (status === 200) break
        assert.deepEqual([status, json.error], [409, 'conflict'])
        ++conflicts
      }
    }
  }
  await Promise.all(Array.from({ length: 4 }, worker))
  for (const db of dbs) assert.equal((await client.ok('GET', `/${db}/sum`)).n, ids.length)
  assert.equal((await client.ok('GET', `/_jobs/${type}`)).counts.finished, ids.length)
  assert.ok(conflicts > 0, 'there were no conflicts')
})

it('requests that are too large for one transaction', async (server) => {
  const { client } = server
  const db = await server.newDatabase()
  const type = await newType(server)
  const refuse = async (body, error, reason) => {
    const { status, json } = await client.post('/_transact', body)
    assert.deepEqual([status, json.error], [413, error])
    assert.match(json.reason, reason)
  }
  const text = 'x'.repeat(4_000_000)
  const three = ['a', 'b', 'c'].map((_id) => ({ _id, text }))
  await refuse({ docs: { [db]: three } }, 'transaction_too_large', /^The transaction exceeds 10,000,000 bytes\.$/)
  const jobs = { add: ['a', 'b'].map((id) => ({ type, id, data: text })) }
  await refuse({ docs: { [db]: three.slice(1) }, jobs }, 'transaction_too_large', /10,000,000 bytes/)
  await refuse({ docs: { [db]: [{ _id: 'a', text: text + text + text.slice(0, 10) }] } }, 'document_too_large', /`a`/)
  await refuse({ jobs: { add: [{ type, id: 'a', data: text + text + 'xx' }] } }, 'too_large', /^Job `a`/)
  const many = Array.from({ length: 10_001 }, (_, i) => ({ _id: `${i}` }))
  const limit = /^The transaction has 10001 documents and jobs; at most 10000 are allowed\.$/
  await refuse({ docs: { [db]: many } }, 'transaction_too_large', limit)
  await refuse({ docs: { [db]: many.slice(2) }, jobs: { add: [{ type }, { type }] } }, 'transaction_too_large', limit)
  assert.equal((await client.ok('GET', `/${db}`)).doc_count, 0)
  assert.equal((await client.ok('GET', `/_jobs/${type}`)).counts.pending, 0)
  // The maximum size is accepted.
  await client.ok('POST', '/_transact', { docs: { [db]: many.slice(1) } })
  assert.equal((await client.ok('GET', `/${db}`)).doc_count, 10_000)
  await client.ok('POST', '/_transact', { docs: { [await server.newDatabase()]: three.slice(1) } })
})

it('feeds of all its databases show a transaction', async (server) => {
  const dbs = [await server.newDatabase(), await server.newDatabase()]
  const feeds = await Promise.all(
    dbs.map((db) => server.client.open(`/${db}/_changes?feed=continuous&heartbeat=60000`))
  )
  const docs = Object.fromEntries(dbs.map((db) => [db, [{ _id: `of-${db}` }]]))
  await server.client.ok('POST', '/_transact', { docs })
  for (const [i, feed] of feeds.entries()) {
    assert.equal((await feed.row()).id, `of-${dbs[i]}`)
    feed.close()
  }
})

testWithServer('the role `jobs`: jobs and workers, and no databases', {}, async (server) => {
  const { client } = server
  await client.ok('PUT', '/_node/_local/_config/chttpd_auth/iterations', '"10"')
  await client.ok('PUT', '/db')
  const users = { jim: ['jobs'], eve: ['events', 'job', 'Jobs'], ann: [] }
  for (const [name, roles] of Object.entries(users)) {
    await client.ok('PUT', `/_users/org.couchdb.user:${name}`, { name, type: 'user', roles, password: 'pw' })
  }
  const jim = server.as('jim:pw')
  // Ken adds a job of the server's own type; the next event for Jim is of his job.
  const [hisEvents, allEvents] = await Promise.all([jim, client].map((who) => who.open('/_jobs/_events?heartbeat=60000')))
  await client.ok('PUT', '/db/_design/d', { views: { v: { map: 'function (doc) {}' } } })
  assert.equal((await allEvents.row()).type, 'views')
  await jim.ok('PUT', '/_jobs/mail')
  await jim.ok('PUT', '/_jobs/mail/a', {})
  assert.equal((await hisEvents.row()).type, 'mail')
  for (const feed of [hisEvents, allEvents]) feed.close()
  await jim.ok('PUT', '/_workers/role/w', {})
  assert.ok((await jim.ok('GET', '/_workers')).roles.some(({ role }) => role === 'role'))
  const { jobs } = await jim.ok('POST', '/_jobs/mail/_accept', { worker: { role: 'role', id: 'w' } })
  const finish = [{ type: 'mail', id: 'a', lock: jobs[0].lock }]
  const denied = await jim.post('/_transact', { docs: { db: [{ _id: 'x' }] }, jobs: { finish } })
  assert.deepEqual([denied.status, denied.json.error], [403, 'forbidden'])
  assert.equal(await answer(jim.post('/_transact', { docs: { db: [] } })), '403 forbidden')
  assert.equal(await answer(jim.post('/_transact', { docs: { nothing: [] } })), '404 not_found')
  assert.equal((await jim.ok('GET', '/_jobs/mail/a')).state, 'running')
  await jim.ok('POST', '/_transact', { docs: {}, jobs: { finish, add: [{ type: 'mail', id: 'b' }] } })
  assert.equal((await jim.ok('GET', '/_jobs/mail/a')).state, 'finished')
  await jim.ok('POST', '/_transact', { jobs: { remove: [{ type: 'mail', id: 'b' }] } })
  await jim.ok('DELETE', '/_jobs/mail?force=true')
  // They may not access any other job.
  const own = { type: 'views', id: 'mine' }
  const attempts = [
    ['PUT', '/_jobs/views', { paused: true }], ['GET', '/_jobs/views'], ['POST', '/_jobs/views/_accept', {}],
    ['PUT', '/_jobs/views/mine', {}], ['DELETE', '/_jobs/views?force=true'], ['GET', '/_jobs/views/_list'],
    ['POST', '/_transact', { jobs: { add: [own] } }], ['POST', '/_transact', { jobs: { remove: [own] } }],
    ['POST', '/_transact', { jobs: { finish: [{ ...own, lock: 'x' }] } }],
    ['POST', '/_jobs/mail/_accept', { worker: { role: '_background', id: 'any' } }],
    ['DELETE', '/_workers/_background/any'], ['PUT', '/_workers/_background/any', {}],
    ['POST', '/_workers/_background/any/_heartbeat', {}], ['POST', '/_workers/_background/any/_hold', {}]
  ]
  for (const [method, target, body] of attempts) {
    assert.equal(await answer(jim.request(method, target, { body })), '403 forbidden', `${method} ${target}`)
  }
  assert.ok((await server.client.ok('GET', '/_jobs')).types.some(({ type }) => type === 'views'))
  assert.ok(!(await jim.ok('GET', '/_jobs')).types.some(({ type }) => type === 'views'))
  for (const target of ['/_all_dbs', '/_active_tasks', '/_node/_local/_config', '/_db_updates', '/_events', '/_backup']) {
    assert.equal(await answer(jim.get(target)), '401 unauthorized', target)
  }
  assert.equal(await answer(jim.get('/db/_all_docs')), '403 forbidden')

  const reasons = {
    '/_jobs': 'Jobs are for server admins and users with the role `jobs`.',
    '/_workers': 'Workers are for server admins and users with the role `jobs`.',
    '/_transact': 'Transactions are for server admins and users with the role `jobs`.'
  }
  for (const name of ['eve', 'ann']) {
    for (const [target, reason] of Object.entries(reasons)) {
      const { status, json } = await server.as(`${name}:pw`).post(target, {})
      assert.deepEqual([status, json], [401, { error: 'unauthorized', reason }])
    }
    for (const target of ['/_jobs/mail', '/_jobs/mail/a', '/_workers/role', '/_workers/role/w']) {
      assert.equal(await answer(server.as(`${name}:pw`).get(target)), '401 unauthorized', target)
    }
  }
})

testWithServer('documents of users are prepared as in other requests', {}, async (server) => {
  const { client } = server
  await client.ok('PUT', '/_node/_local/_config/chttpd_auth/iterations', '"10"')
  await client.ok('PUT', '/db')
  const ann = { _id: 'org.couchdb.user:ann', name: 'ann', type: 'user', roles: [], password: 'secret' }
  const bad = await client.post('/_transact', { docs: { db: [{ _id: 'x' }], _users: [{ ...ann, roles: ['_admin'] }] } })
  assert.deepEqual([bad.status, bad.json], [
    403,
    {
      error: 'forbidden',
      reason:
        'Document `org.couchdb.user:ann` of database `_users`: No system roles (starting with underscore) in users db.'
    }
  ])
  assert.equal(await answer(client.get('/db/x')), '404 not_found')
  await client.ok('POST', '/_transact', { docs: { db: [{ _id: 'x' }], _users: [ann] } })
  const stored = await client.get(`/_users/${ann._id}`)
  assert.ok(!stored.text.includes('secret') && stored.json.derived_key, stored.text)
  assert.equal((await server.as('ann:secret').get('/_session')).json.userCtx.name, 'ann')
})
