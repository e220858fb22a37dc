// Users that are not administrators: their documents, their permissions, and that changes apply at once.
import assert from 'node:assert/strict'
import { createHash, pbkdf2Sync } from 'node:crypto'
import http from 'node:http'
import net from 'node:net'
import { test } from 'node:test'
import { Server, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

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
}

testWithServer('a user logs in, and every change takes effect at once', {}, async (server) => {
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

// Otherwise it would fail at the next write of a user.
testWithServer('an invalid number of iterations is refused when it is set', {}, async (server) => {
  await prepare(server)
  const setting = '/_node/_local/_config/chttpd_auth/iterations'
  for (const bad of ['many', '0', '-1', '10000001']) {
    assert.equal((await server.client.put(setting, JSON.stringify(bad))).status, 400, bad)
  }
  assert.equal(await server.client.ok('GET', setting), '10')
  await server.client.ok('PUT', path('ann'), user('ann', { password: 'pw' }))
})

testWithServer('the permissions of a user who is no administrator', {}, async (server) => {
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

testWithServer('documents of users do not affect administrators', {}, async (server) => {
  await prepare(server)
  await server.client.ok('PUT', path('admin'), user('admin', { password: 'mine' }))
  assert.equal(await session(server, 'admin:mine'), WRONG)
  assert.deepEqual(await session(server, server.credentials), { name: 'admin', roles: ['_admin'] })
})

const SLOW = '20000' // iterations: a comparison takes some 10 ms

/** The status of a request with these credentials, on a connection of its own, from an address of 127.0.0.0/8. */
function status(server, credentials, from = '127.0.0.1', fields = {}) {
  const { hostname, port } = new URL(server.url)
  const headers = { Authorization: 'Basic ' + Buffer.from(credentials).toString('base64'), ...fields }
  return new Promise((resolve, reject) => {
    const request = http.get({ hostname, port, path: '/_session', headers, localAddress: from, agent: false }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode))
    })
    request.on('error', reject)
  })
}
const all = (count, make) => Promise.all(Array.from({ length: count }, (_, i) => make(i)))
const names = (count) => Array.from({ length: count }, (_, i) => `user${i}`)

async function prepareSlow(server, users) {
  await server.client.ok('PUT', '/_node/_local/_config/chttpd_auth/iterations', `"${SLOW}"`)
  const docs = users.map((name) => ({ _id: `org.couchdb.user:${name}`, ...user(name, { password: `pw-${name}` }) }))
  await server.client.ok('POST', '/_users/_bulk_docs', { docs })
}

testWithServer('many concurrent logins succeed', {}, async (server) => {
  await prepareSlow(server, names(100))
  assert.deepEqual(new Set(await all(300, () => status(server, 'user0:pw-user0'))), new Set([200]))
  assert.deepEqual(new Set(await all(100, (i) => status(server, `user${i}:pw-user${i}`))), new Set([200]))
  assert.ok((await server.metric('divan_password_checks_total')) <= 102) // one for each name, and the administrator's
})

testWithServer('known and new users log in while clients guess passwords', {}, async (server) => {
  await prepareSlow(server, names(30))
  let guesses = 0
  let over = false
  // Forty clients of one address try one name, forty try it from an address each, and forty try unknown names.
  const guesser = async (name, from) => {
    const seen = new Set()
    while (!over) seen.add(await status(server, `${name()}:guess${++guesses}`, from))
    return seen
  }
  const guessers = [
    ...Array.from({ length: 40 }, () => guesser(() => 'user0', '127.0.0.66')),
    ...Array.from({ length: 40 }, (_, i) => guesser(() => 'user0', `127.0.1.${i}`)),
    ...Array.from({ length: 40 }, () => guesser(() => `nobody${guesses}`, '127.0.0.67'))
  ]
  await waitFor('guesses', async () => (await server.metric('divan_password_failures_total')) >= 130)
  // The attacked name and others, from addresses of their own and from one with attackers.
  const users = [...names(20).map((name, i) => [name, `127.0.2.${i}`]), ...names(30).slice(20).map((name) => [name, '127.0.0.66'])]
  const first = await Promise.all(users.map(([name, from]) => status(server, `${name}:pw-${name}`, from)))
  assert.deepEqual(first, users.map(() => 200))
  assert.equal(await status(server, 'user0:pw-user0', '127.0.0.66'), 200)
  over = true
  const seen = new Set((await Promise.all(guessers)).flatMap((statuses) => [...statuses]))
  seen.delete(429)
  assert.deepEqual(seen, new Set([401]))
})

testWithServer('a name is locked for an address if the settings enforce it', {}, async (server) => {
  await prepare(server)
  for (const name of ['ann', 'bob']) await server.client.ok('PUT', path(name), user(name, { password: 'pw' }))
  const setting = (key) => `/_node/_local/_config/chttpd_auth_lockout/${key}`
  assert.equal((await server.client.put(setting('mode'), '"maybe"')).status, 400)
  await server.client.ok('PUT', setting('mode'), '"enforce"')
  for (let i = 0; i < 5; ++i) assert.equal(await status(server, `ann:wrong${i}`, '127.0.0.66'), 401)
  const { status: code, json } = await server.as('ann:wrong').get('/_session')
  assert.deepEqual([code, json.error], [401, 'unauthorized'], 'of another address')
  assert.equal(await status(server, 'ann:wrong', '127.0.0.66'), 401, 'known to be wrong')
  assert.equal(await status(server, 'ann:pw', '127.0.0.66'), 403)
  assert.equal(await status(server, 'bob:pw', '127.0.0.66'), 200)
  assert.equal(await status(server, 'ann:pw'), 200)
  assert.equal(await status(server, 'ann:pw', '127.0.0.66'), 200, 'known to be right')
  await server.client.ok('PUT', setting('mode'), '"warn"')
  assert.equal(await status(server, 'ann:other', '127.0.0.66'), 401)
})

test('users: passwords of clients that have disconnected, or that wait when the server stops, are not compared', async () => {
  const server = await Server.start()
  const { hostname, port } = new URL(server.url)
  const waiting = () => server.metric('divan_password_checks_waiting')
  // Comparing a password takes 0.3 s of a processor, and one at a time is compared per address that guesses.
  const guess = (i) => {
    const socket = net.connect(port, hostname).on('error', () => {})
    const credentials = Buffer.from(`nobody${i}:guess`).toString('base64')
    socket.write(`GET /_session HTTP/1.1\r\nHost: h\r\nAuthorization: Basic ${credentials}\r\nConnection: close\r\n\r\n`)
    return socket
  }
  const gone = Array.from({ length: 100 }, (_, i) => guess(i))
  await waitFor('guesses that wait', async () => (await waiting()) >= 80)
  for (const socket of gone) socket.resetAndDestroy()
  await waitFor('them to be dropped', async () => (await waiting()) === 0)
  assert.ok((await server.metric('divan_password_failures_total')) < 50)

  const left = Array.from({ length: 100 }, (_, i) => guess(100 + i))
  const answers = left.map(async (socket) => {
    let text = ''
    for await (const piece of socket) text += piece
    return text.split(' ')[1]
  })
  await waitFor('guesses that wait', async () => (await waiting()) >= 80)
  await server.stop()
  const statuses = await Promise.all(answers)
  assert.ok(statuses.every((status) => status === '401' || status === '503'), statuses.join())
  assert.ok(statuses.filter((status) => status === '503').length >= 50)
})

testWithServer('behind a trusted proxy, clients have addresses of their own', { env: { DIVAN_CHTTPD_TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8' } }, async (server) => {
  await prepare(server)
  await server.client.ok('PUT', path('ann'), user('ann', { password: 'pw' }))
  await server.client.ok('PUT', '/_node/_local/_config/chttpd_auth_lockout/mode', '"enforce"')
  const from = async (credentials, forwarded) => {
    const headers = { 'X-Forwarded-For': forwarded }
    return (await server.as(credentials).get('/_session', { headers })).status
  }
  // The client's own entry comes first and is ignored.
  for (let i = 0; i < 5; ++i) assert.equal(await from(`ann:wrong${i}`, `192.0.2.${i}, 198.51.100.66, 10.1.1.1`), 401)
  assert.equal(await from('ann:pw', '198.51.100.66'), 403)
  assert.equal(await from('ann:pw', '192.0.2.1, 198.51.100.66'), 403)
  assert.equal(await from('ann:pw', '198.51.100.67'), 200)
  // The field is ignored from other addresses.
  await server.client.ok('PUT', path('bob'), user('bob', { password: 'pw' }))
  for (let i = 0; i < 5; ++i) assert.equal(await status(server, `bob:wrong${i}`, '127.0.0.66', { 'X-Forwarded-For': `192.0.2.${i}` }), 401)
  assert.equal(await status(server, 'bob:pw', '127.0.0.66', { 'X-Forwarded-For': '192.0.2.9' }), 403)
  assert.equal(await from('bob:pw', '192.0.2.1'), 200)
})

test('users: a server creates the database, and creates it again at a start if it is missing', async () => {
  const dataDir = temporaryDirectory()
  const server = await Server.start({ dataDir })
  assert.deepEqual(await server.client.ok('GET', '/_all_dbs'), ['_users'])
  const { results } = await server.client.ok('GET', '/_db_updates')
  assert.deepEqual(new Set(results.map(({ db_name }) => db_name)), new Set(['_users']))
  await server.client.ok('PUT', '/_node/_local/_config/chttpd_auth/iterations', '"10"')
  await server.client.ok('PUT', path('ann'), user('ann', { password: 'secret' }))
  const { doc_count, instance_start_time } = await server.client.ok('GET', '/_users')
  assert.equal(doc_count, 1)
  await server.stop()

  // An existing one is not changed.
  const again = await Server.start({ dataDir })
  assert.equal((await again.client.ok('GET', '/_users')).instance_start_time, instance_start_time)
  assert.equal((await session(again, 'ann:secret')).name, 'ann')
  await again.client.ok('DELETE', '/_users')
  assert.deepEqual(await again.client.ok('GET', '/_all_dbs'), [])
  await again.stop()

  const third = await Server.start({ dataDir })
  assert.deepEqual(await third.client.ok('GET', '/_all_dbs'), ['_users'])
  assert.equal((await third.client.ok('GET', '/_users')).doc_count, 0)
  await third.stop()
})

// Hashes as CouchDB 1.0, 1.2, 1.3, 3.3 and a migration with 3.5 wrote them, all of the password "secret".
const SIMPLE = createHash('sha1').update('secretabc').digest('hex')
const OLD_HASHES = {
  unnamed: { password_sha: SIMPLE, salt: 'abc' },
  migrated: {
    derived_key: pbkdf2Sync(SIMPLE, 'abc', 30, 32, 'sha256').toString('hex'),
    password_scheme: 'simple+pbkdf2', pbkdf2_prf: 'sha256', iterations: 30, salt: 'abc'
  },
  simple: { password_sha: SIMPLE, password_scheme: 'simple', salt: 'abc' },
  sha1: {
    derived_key: pbkdf2Sync('secret', 'def', 10, 20, 'sha1').toString('hex'),
    password_scheme: 'pbkdf2', iterations: 10, salt: 'def'
  },
  few: {
    derived_key: pbkdf2Sync('secret', 'ghi', 10, 32, 'sha256').toString('hex'),
    password_scheme: 'pbkdf2', pbkdf2_prf: 'sha256', iterations: 10, salt: 'ghi'
  }
}

testWithServer('weak hashes are replaced at a login', {}, async (server) => {
  const { client } = server
  await client.ok('PUT', '/_node/_local/_config/chttpd_auth/iterations', '"20"')
  // A validation that refuses such a write does not prevent it.
  await client.ok('PUT', '/_users/_design/strict', { validate_doc_update: `function (doc) { if (doc.iterations === 20) throw {forbidden: 'no'}; }` })
  for (const [name, hash] of Object.entries(OLD_HASHES)) {
    const data = Buffer.from('a picture').toString('base64')
    await client.ok('PUT', path(name), user(name, { ...hash, color: 'red', _attachments: { picture: { data } } }))
    assert.equal(await session(server, `${name}:wrong`), WRONG)
    await client.ok('PUT', '/_node/_local/_config/chttpd_auth/upgrade_hash_on_auth', '"false"')
    const login = () => server.as().post('/_session', { name, password: 'secret' })
    const cookie = (await login()).headers['set-cookie'][0].split(';')[0]
    assert.match((await client.ok('GET', path(name)))._rev, /^1-/)
    await client.ok('PUT', '/_node/_local/_config/chttpd_auth/upgrade_hash_on_auth', '"true"')
    // With the form, or with Basic authentication.
    if (name === 'few') await login()
    else assert.deepEqual(await session(server, `${name}:secret`), { name, roles: [] })
    const doc = await client.ok('GET', path(name))
    assert.match(doc._rev, /^2-/)
    assert.deepEqual([doc.password_scheme, doc.pbkdf2_prf, doc.iterations, doc.salt, doc.color, doc.password_sha],
      ['pbkdf2', 'sha256', 20, hash.salt, 'red', undefined])
    assert.equal(doc.derived_key, pbkdf2Sync('secret', hash.salt, 20, 32, 'sha256').toString('hex'))
    assert.equal((await client.get(`${path(name)}/picture`)).text, 'a picture')
    const { _revisions: revisions } = await client.ok('GET', `${path(name)}?revs=true`)
    assert.equal((await client.get(`${path(name)}?rev=1-${revisions.ids[1]}`)).status, 404, 'the weak hash is still stored')
    // Sessions stay valid, and so does the password.
    const { json } = await server.as().get('/_session', { headers: { Cookie: cookie } })
    assert.equal(json.userCtx.name, name)
    assert.deepEqual(await session(server, `${name}:secret`), { name, roles: [] })
    assert.equal(await session(server, `${name}:wrong`), WRONG)
    assert.match((await client.ok('GET', path(name)))._rev, /^2-/)
  }
  // A user who changes the password first, and one whose document becomes too large.
  const first = await client.ok('PUT', path('first'), user('first', OLD_HASHES.sha1))
  await client.ok('DELETE', `/_users/_design/strict?rev=${(await client.ok('GET', '/_users/_design/strict'))._rev}`)
  await client.ok('PUT', '/_node/_local/_config/couchdb/users_db_security_editable', '"true"')
  await client.ok('PUT', '/_users/_security', {})
  const changed = await server.as('first:secret').put(path('first'), user('first', { password: 'new', _rev: first.rev }))
  assert.equal(changed.status, 201, changed.text)
  const large = user('large', { ...OLD_HASHES.sha1, text: '' })
  const text = 'x'.repeat(8_000_000 - JSON.stringify(large).length)
  await client.ok('PUT', path('large'), { ...large, text })
  assert.deepEqual(await session(server, 'large:secret'), { name: 'large', roles: [] })
  assert.match((await client.ok('GET', path('large')))._rev, /^1-/)
})

testWithServer('new passwords follow the rules, and hashes have enough iterations', {}, async (server) => {
  const { client } = server
  const set = (key, value) => client.put(`/_node/_local/_config/chttpd_auth/${key}`, JSON.stringify(value))
  await set('iterations', '20')
  assert.equal((await set('password_regexp', '[".{6,}", {"[0-9]", "It needs a \\"digit\\"."}, {"^[^ ]*$"}]')).status, 200)
  const put = async (password) => {
    const { status, json } = await client.put(path('ann'), user('ann', { password }))
    return status === 201 ? 'written' : `${status} ${json.error}: ${json.reason}`
  }
  const refusal = '400 bad_request: Password does not conform to requirements.'
  assert.equal(await put('short'), refusal)
  assert.equal(await put('longer'), `${refusal} It needs a "digit".`)
  assert.equal(await put('longer 1'), refusal)
  assert.equal(await put('longer1'), 'written')
  assert.deepEqual(await session(server, 'ann:longer1'), { name: 'ann', roles: [] })
  const [result] = await client.ok('POST', '/_users/_bulk_docs', { docs: [{ _id: 'org.couchdb.user:bob', ...user('bob', { password: 'x' }) }] })
  assert.equal(result.error, 'bad_request')
  for (const malformed of ['x', '["a"', '["a",]', '[1]', '[{"a","b","c"}]', '["("]', '["a"] x']) {
    const { status, json } = await set('password_regexp', malformed)
    assert.deepEqual([status, /password_regexp is malformed/.test(json.reason)], [400, true], malformed)
  }
  assert.equal((await set('password_regexp', '')).status, 200)
  await set('upgrade_hash_on_auth', 'false')
  await set('min_iterations', '21')
  assert.equal(await session(server, 'ann:longer1'), '403 Iteration count is too low for this server')
  // Somebody who only guesses learns nothing.
  assert.equal(await session(server, 'ann:wrong'), WRONG)
  await set('min_iterations', '1')
  await set('max_iterations', '19')
  assert.equal(await session(server, 'ann:longer1'), '403 Iteration count is too high for this server')
})
