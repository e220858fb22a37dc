// Users who are no administrators: their documents, what they may do, and that changes count at once.
import assert from 'node:assert/strict'
import { testWithServer } from './support/server.mjs'

const path = (name) => `/_users/org.couchdb.user:${name}`
const user = (name, more) => ({ name, type: 'user', roles: [], ...more })

/** Whether these credentials are taken: the session that they give. */
async function session(server, credentials) {
  const { status, json } = await server.as(credentials).get('/_session')
  return status === 200 ? json.userCtx : `${status} ${json.reason}`
}
const WRONG = '401 Name or password is incorrect.'

async function prepare(server) {
  await server.client.ok('PUT', '/_node/_local/_config/chttpd_auth/iterations', '"10"')
  await server.client.ok('PUT', '/_users')
}

testWithServer('a user logs in, and every change counts at once', {}, async (server) => {
  await prepare(server)
  assert.equal(await session(server, 'ann:one'), WRONG)
  let { rev } = await server.client.ok('PUT', path('ann'), user('ann', { roles: ['events', 'ä"'], password: 'one' }))
  assert.deepEqual(await session(server, 'ann:one'), { name: 'ann', roles: ['events', 'ä"'] })
  assert.equal(await session(server, 'ann:two'), WRONG)
  const stored = await server.client.ok('GET', path('ann'))
  assert.deepEqual(Object.keys(stored).sort(), [
    ...['_id', '_rev', 'derived_key', 'iterations', 'name', 'password_scheme', 'pbkdf2_prf', 'roles', 'salt', 'type']
  ])
  assert.deepEqual([stored.password_scheme, stored.pbkdf2_prf, stored.iterations], ['pbkdf2', 'sha256', 10])

  ;({ rev } = await server.client.ok('PUT', path('ann'), { ...stored, roles: ['other'] }))
  assert.deepEqual(await session(server, 'ann:one'), { name: 'ann', roles: ['other'] })
  ;({ rev } = await server.client.ok('PUT', path('ann'), user('ann', { _rev: rev, password: 'two' })))
  assert.equal(await session(server, 'ann:one'), WRONG)
  assert.deepEqual(await session(server, 'ann:two'), { name: 'ann', roles: [] })
  await server.client.ok('DELETE', `${path('ann')}?rev=${rev}`)
  assert.equal(await session(server, 'ann:two'), WRONG)
})

testWithServer('every way to write a user hashes the password', {}, async (server) => {
  await prepare(server)
  const id = (name) => `org.couchdb.user:${name}`
  await server.client.ok('POST', '/_users', { _id: id('a'), ...user('a', { password: 'secret-a' }) })
  const docs = ['b', 'c', 'x'].map((name) => ({ _id: id(name), ...user(name, { password: `secret-${name}` }) }))
  docs[2].roles = ['_admin']
  const results = await server.client.ok('POST', '/_users/_bulk_docs', { docs })
  assert.deepEqual(results.map(({ ok }) => ok), [true, true, undefined])
  assert.deepEqual(results[2], {
    id: id('x'), error: 'forbidden', reason: 'No system roles (starting with underscore) in users db.'
  })
  const replicated = ['d', 'x'].map((name) => ({ ...docs[2], _id: id(name), name, _rev: '1-abc', password: 'secret-d' }))
  replicated[0].roles = []
  const refused = await server.client.ok('POST', '/_users/_bulk_docs', { docs: replicated, new_edits: false })
  assert.deepEqual(refused.map(({ id }) => id), [id('x')])
  await server.client.ok('PUT', `${path('e')}?new_edits=false`, { ...user('e', { password: 'secret-e' }), _rev: '1-abc' })
  const all = await server.client.get('/_users/_all_docs?include_docs=true')
  assert.equal(all.json.rows.length, 5)
  assert.ok(!all.text.includes('secret-'), all.text)
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    assert.deepEqual(await session(server, `${name}:secret-${name}`), { name, roles: [] })
  }
  const bad = await server.client.put(path('f'), user('f', { roles: 'events' }))
  assert.deepEqual([bad.status, bad.json], [403, { error: 'forbidden', reason: 'doc.roles must be an array' }])
})

// It would be found at the next user that is written, who could do nothing about it.
testWithServer('a bad number of iterations is refused where it is set', {}, async (server) => {
  await prepare(server)
  const setting = '/_node/_local/_config/chttpd_auth/iterations'
  for (const bad of ['many', '0', '-1', '10000001']) {
    assert.equal((await server.client.put(setting, JSON.stringify(bad))).status, 400, bad)
  }
  assert.equal(await server.client.ok('GET', setting), '10')
  await server.client.ok('PUT', path('ann'), user('ann', { password: 'pw' }))
})

testWithServer('what a user may do, who is no administrator', {}, async (server) => {
  await prepare(server)
  await server.client.ok('PUT', '/db')
  await server.client.ok('PUT', '/db/a', {})
  for (const name of ['ann', 'bob']) await server.client.ok('PUT', path(name), user(name, { password: 'pw' }))
  const ann = server.as('ann:pw')
  const answer = async (method, target, body) => {
    const { status, json } = await ann.request(method, target, { body })
    return `${status} ${json.reason ?? 'ok'}`
  }
  const server_admins = '401 You are not a server admin.'
  for (const target of ['/_all_dbs', '/_active_tasks', '/_ken', '/_node/_local/_config', '/_backup']) {
    assert.equal(await answer('GET', target), server_admins, target)
  }
  const database = '403 You are not allowed to access this db.'
  for (const target of ['/db', '/db/a', '/db/_all_docs', '/db/_changes', '/_users', path('ann'), path('bob')]) {
    assert.equal(await answer('GET', target), database, target)
  }
  for (const [method, target] of [['POST', '/db'], ['PUT', '/db/b'], ['DELETE', '/db/a'], ['POST', '/db/_bulk_docs']]) {
    assert.equal(await answer(method, target, {}), database, target)
  }
  for (const method of ['PUT', 'DELETE']) {
    for (const target of ['/new', '/db', '/_users']) assert.equal(await answer(method, target), server_admins, target)
  }
  assert.equal(await answer('GET', '/'), '200 ok')
  assert.equal(await answer('GET', '/_up'), '200 ok')
  assert.deepEqual(await server.client.ok('GET', '/_all_dbs'), ['_users', 'db'])
})

testWithServer('a user\'s document of any kind leaves the administrators alone', {}, async (server) => {
  await prepare(server)
  await server.client.ok('PUT', path('admin'), user('admin', { password: 'mine' }))
  assert.equal(await session(server, 'admin:mine'), WRONG)
  assert.deepEqual(await session(server, server.credentials), { name: 'admin', roles: ['_admin'] })
})
