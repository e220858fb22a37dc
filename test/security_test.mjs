// Who may use a database: its security object, the users' database, and public databases.
import assert from 'node:assert/strict'
import nano from 'nano'
import { shareServer, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer({ env: { DIVAN_CHTTPD_AUTH_ITERATIONS: '10' } })

const path = (name) => `/_users/org.couchdb.user:${name}`
const user = (name, more) => ({ _id: `org.couchdb.user:${name}`, name, type: 'user', roles: [], ...more })

async function addUser(server, name, more) {
  await server.client.ok('PUT', path(name), user(name, { password: 'pw', ...more }))
  return server.as(`${name}:pw`)
}

const ANONYMOUS = '401 You are not authorized to access this db.'
const STRANGER = '403 You are not allowed to access this db.'
const NOT_ADMIN = '403 You are not a db or server admin.'
const SERVER_ADMINS = '401 You are not a server admin.'

/** The status of a request, with the reason of an error. */
async function answer(client, method, target, body) {
  const { status, json } = await client.request(method, target, { body })
  return status >= 400 ? `${status} ${json.reason}` : status
}

const view = { views: { all: { map: 'function (doc) { emit(doc._id, 1) }' } } }

it('members read and write documents, admins also design documents and settings', async (server) => {
  const names = ['ann', 'bob', 'cleo', 'dan'].map((name) => `${name}1`)
  const [ann, bob, cleo, dan] = names
  const clients = {}
  for (const name of [ann, bob, dan]) clients[name] = await addUser(server, name)
  clients[cleo] = await addUser(server, cleo, { roles: ['staff'] })
  const db = `/${await server.newDatabase()}`
  const { rev } = await server.client.ok('PUT', `${db}/a`, { n: 1 })
  await server.client.ok('PUT', `${db}/_design/d`, view)
  // A new database is for administrators.
  for (const name of names) assert.equal(await answer(clients[name], 'GET', `${db}/a`), STRANGER)
  await server.client.ok('PUT', `${db}/_security`, { admins: { names: [ann] }, members: { names: [bob], roles: ['staff'] } })

  const reads = [
    ...['', '/a', '/_all_docs', '/_design_docs', '/_local_docs', '/_changes', '/_changes?feed=longpoll&since=0', '/_security'],
    ...['/_revs_limit', '/_design/d', '/_design/d/_view/all', '/_design/d/_info', '/a?open_revs=all']
  ].map((target) => ['GET', db + target])
  const posts = [
    ['POST', `${db}/_bulk_get`, { docs: [{ id: 'a' }] }],
    ['POST', `${db}/_revs_diff`, { a: [rev] }],
    ['POST', `${db}/_missing_revs`, { a: [rev] }],
    ['POST', `${db}/_all_docs`, { keys: ['a'] }],
    ['POST', `${db}/_design/d/_view/all`, { keys: ['a'] }]
  ]
  const writes = [
    ['PUT', (name) => `${db}/of-${name}`, {}],
    ['POST', () => db, { n: 1 }],
    ['POST', () => `${db}/_bulk_docs`, { docs: [{}] }],
    ['PUT', (name) => `${db}/_local/${name}`, {}],
    ['POST', () => `${db}/_ensure_full_commit`, {}]
  ]
  const admins = [
    ['PUT', `${db}/_design/of-admins`, {}],
    ['POST', db, { _id: '_design/posted' }],
    ['PUT', `${db}/_design%2Fencoded`, {}],
    ['PUT', `${db}/_design/replicated?new_edits=false`, { _rev: '1-abc' }],
    ['DELETE', `${db}/_design/d?rev=1-abc`],
    ['PUT', `${db}/_revs_limit`, '100'],
    ['PUT', `${db}/_security`, { admins: {}, members: { names: ['thief'] } }]
  ]
  const maintenance = [['POST', `${db}/_compact`, {}], ['POST', `${db}/_compact/d`, {}], ['POST', `${db}/_view_cleanup`, {}]]

  for (const name of names) {
    const client = clients[name]
    const refusal = name === dan ? STRANGER : null
    for (const [method, target, body] of [...reads, ...posts])
      assert.equal(await answer(client, method, target, body), refusal ?? 200, `${name} ${target}`)
    for (const [method, target, body] of writes)
      assert.equal(await answer(client, method, target(name), body), refusal ?? 201, `${name} ${target(name)}`)
    if (name === ann) continue
    for (const [method, target, body] of admins)
      assert.equal(await answer(client, method, target, body), refusal ?? NOT_ADMIN, `${name} ${target}`)
    for (const [method, target, body] of maintenance) {
      assert.equal(await answer(client, method, target, body), refusal ?? '401 You are not a server or db admin.', target)
    }
    for (const method of ['PUT', 'DELETE']) assert.equal(await answer(client, method, db), SERVER_ADMINS)
  }
  const nobody = server.as(null)
  for (const [method, target, body] of [...reads, ...posts, ...admins, ...maintenance])
    assert.equal(await answer(nobody, method, target, body), ANONYMOUS, target)
  assert.equal(await answer(nobody, 'PUT', `${db}/x`, {}), ANONYMOUS)

  // Only the design documents of a request are refused, also when they are replicated or copied.
  const docs = [{ _id: 'mixed' }, { _id: '_design/mixed' }]
  const results = await clients[bob].ok('POST', `${db}/_bulk_docs`, { docs })
  assert.deepEqual(results.map(({ ok, error, reason }) => ok ?? `${error}: ${reason}`), [
    true, 'forbidden: You are not a db or server admin.'
  ])
  const replicated = docs.map((doc) => ({ ...doc, _id: `${doc._id}2`, _rev: '1-abc' }))
  const refused = await clients[bob].ok('POST', `${db}/_bulk_docs`, { docs: replicated, new_edits: false })
  assert.deepEqual(refused.map(({ id, error }) => [id, error]), [['_design/mixed2', 'forbidden']])
  const copy = await clients[bob].request('COPY', `${db}/a`, { headers: { Destination: '_design/copied' } })
  assert.deepEqual([copy.status, copy.json.reason], [403, 'You are not a db or server admin.'])
  const ids = (await server.client.ok('GET', `${db}/_design_docs`)).rows.map(({ id }) => id)
  assert.deepEqual(ids, ['_design/d'])

  for (const [method, target, body] of [...admins.slice(0, 4), ...maintenance, admins[5]]) {
    const status = await answer(clients[ann], method, target, body)
    assert.ok(status >= 200 && status < 300, `${method} ${target}: ${status}`)
  }
  for (const method of ['PUT', 'DELETE']) assert.equal(await answer(clients[ann], method, db), SERVER_ADMINS)
  // A change applies to the next request, also to that of the admin who made it.
  assert.equal(await answer(clients[ann], ...admins[6]), 200)
  for (const name of [ann, bob, cleo]) assert.equal(await answer(clients[name], 'GET', `${db}/a`), STRANGER)
})

it('names in a security object may be escaped', async (server) => {
  const db = `/${await server.newDatabase()}`
  await server.client.ok('PUT', `${db}/_security`, '{"\\u006dembers":{"\\u006eames":["somebody"]}}')
  assert.equal(await answer(server.as(null), 'GET', db), ANONYMOUS)
  assert.deepEqual(await server.client.ok('GET', `${db}/_security`), { members: { names: ['somebody'] } })
})

it('a database without members is public', async (server) => {
  const db = `/${await server.newDatabase()}`
  await server.client.ok('PUT', `${db}/_security`, {})
  const nobody = server.as(null)
  assert.equal(await answer(nobody, 'PUT', `${db}/a`, {}), 201)
  assert.equal(await answer(nobody, 'GET', `${db}/_all_docs`), 200)
  assert.equal(await answer(nobody, 'PUT', `${db}/_design/d`, {}), '401 You are not a db or server admin.')
  assert.equal(await answer(nobody, 'PUT', `${db}/_security`, {}), '401 You are not a db or server admin.')
  assert.equal(await answer(nobody, 'POST', `${db}/_compact`, {}), '401 You are not a server or db admin.')
  assert.equal(await answer(nobody, 'DELETE', db), SERVER_ADMINS)
  assert.equal(await answer(nobody, 'GET', '/none'), '404 Database does not exist.')
  assert.deepEqual((await nobody.ok('GET', '/_uuids')).uuids.length, 1)
})

testWithServer('new databases can be public', { env: { DIVAN_COUCHDB_DEFAULT_SECURITY: 'everyone' } }, async (server) => {
  await server.client.ok('PUT', '/db')
  assert.deepEqual(await server.client.ok('GET', '/db/_security'), {})
  assert.equal(await answer(server.as(null), 'PUT', '/db/a', {}), 201)
  assert.equal(await answer(server.as(null), 'GET', '/_users'), ANONYMOUS)
  await server.client.ok('PUT', '/_replicator')
  assert.equal(await answer(server.as(null), 'GET', '/_replicator'), ANONYMOUS)
})

it('system databases are for administrators, whatever their security objects say', async (server) => {
  const ann = await addUser(server, 'ann2')
  await server.client.ok('PUT', '/_replicator')
  await server.client.ok('PUT', '/_replicator/_security', { members: { names: ['ann2'] }, admins: { names: ['ann2'] } })
  for (const target of ['', '/a', '/_all_docs', '/_changes']) assert.equal(await answer(ann, 'GET', `/_replicator${target}`), target.startsWith('/_') ? SERVER_ADMINS : STRANGER, target)
  await server.client.ok('DELETE', '/_replicator')
})

it('a feed ends when its user has lost the access', async (server) => {
  const ann = await addUser(server, 'ann3', { roles: ['staff'] })
  const db = `/${await server.newDatabase()}`
  await server.client.ok('PUT', `${db}/_security`, { members: { roles: ['staff'] } })
  const feed = await ann.open(`${db}/_changes?feed=continuous&heartbeat=1000`)
  await server.client.ok('PUT', `${db}/a`, {})
  assert.equal((await feed.row()).id, 'a')
  const stored = await server.client.ok('GET', path('ann3'))
  await server.client.ok('PUT', path('ann3'), { ...stored, roles: [] })
  // The access is checked every ten seconds.
  let written = 0
  let ended = false
  const end = feed.ended().then((how) => { ended = true; return how })
  await waitFor('the feed to end', async () => {
    if (!ended) await server.client.ok('PUT', `${db}/b${written++}`, {})
    return ended
  })
  assert.notEqual(await end, 'end')
  assert.equal(await answer(ann, 'GET', `${db}/_changes`), STRANGER)
})

it('a transaction writes the databases of its user', async (server) => {
  const ann = await addUser(server, 'ann4', { roles: ['jobs'] })
  const db = await server.newDatabase()
  const write = (doc, name = db) => answer(ann, 'POST', '/_transact', { docs: { [name]: [doc] } })
  assert.equal(await write({ _id: 'a' }), `403 Database \`${db}\`: You are not allowed to access this db.`)
  await server.client.ok('PUT', `/${db}/_security`, { members: { names: ['ann4'] } })
  assert.equal(await write({ _id: 'a' }), 200)
  assert.equal(await write({ _id: '_design/d' }), `403 Database \`${db}\`: You are not a db or server admin.`)
  assert.equal(await write(user('eve'), '_users'), '403 Database `_users`: You are not allowed to access this db.')
  await server.client.ok('PUT', `/${db}/_security`, { admins: { names: ['ann4'] } })
  assert.equal(await write({ _id: '_design/d' }), 200)
})

it('nano works for a member as for an administrator', async (server) => {
  await addUser(server, 'ann5')
  const name = await server.newDatabase()
  await server.client.ok('PUT', `/${name}/_security`, { members: { names: ['ann5'] } })
  const { protocol, host } = new URL(server.url)
  const db = nano(`${protocol}//ann5:pw@${host}`).use(name)
  const { rev } = await db.insert({ n: 1 }, 'a')
  assert.equal((await db.get('a'))._rev, rev)
  await db.bulk({ docs: [{ _id: 'b' }, { _id: 'c' }] })
  assert.equal((await db.list()).rows.length, 3)
  assert.equal((await db.changes()).results.length, 3)
  await assert.rejects(db.insert({ views: {} }, '_design/d'), /You are not a db or server admin/)
})

const EDITABLE = { env: { DIVAN_CHTTPD_AUTH_ITERATIONS: '10', DIVAN_COUCHDB_USERS_DB_SECURITY_EDITABLE: 'true' } }

it('the users are for administrators, and their security object cannot be changed', async (server) => {
  const ann = await addUser(server, 'ann6')
  const refused = '403 You can\'t edit the security object of the user database.'
  assert.equal(await answer(server.client, 'PUT', '/_users/_security', {}), refused)
  assert.equal(await answer(ann, 'GET', path('ann6')), STRANGER)
  assert.equal(await answer(server.as(null), 'PUT', path('eve'), user('eve')), ANONYMOUS)
})

testWithServer('with a public _users, users sign up and write their own documents', EDITABLE, async (server) => {
  await server.client.ok('PUT', path('root'), user('root', { roles: ['jobs'], password: 'pw' }))
  await server.client.ok('PUT', '/_users/_security', {})
  const nobody = server.as(null)
  const put = (client, name, more) => answer(client, 'PUT', path(name), user(name, more))
  assert.equal(await put(nobody, 'ann', { password: 'pw', roles: ['jobs'] }), '403 Only _admin may set roles')
  assert.equal(await put(nobody, 'ann', { password: 'pw', nick: 'a' }), 201)
  assert.equal(await answer(nobody, 'POST', '/_users', user('bob', { password: 'pw' })), 201)
  assert.equal(await put(nobody, 'bob', { password: 'mine' }), '409 Document update conflict.')
  assert.equal(await put(nobody, 'eve', { _deleted: true }), '403 Only admins may delete other user docs.')
  assert.equal(await put(nobody, 'eve', { _attachments: { x: { data: 'MQ==' } } }), '403 Only admins may attach files to users.')
  // A deleted revision beside the one that counts.
  await server.client.ok('POST', '/_users/_bulk_docs', { new_edits: false, docs: [{ _id: 'org.couchdb.user:bob', _rev: '1-dead', _deleted: true }] })
  assert.equal(await answer(nobody, 'PUT', `${path('bob')}?rev=1-dead`, user('bob', { password: 'mine' })), '403 You may only update your own user document.')
  assert.equal((await server.as('bob:pw').get('/_session')).status, 200)
  for (const method of ['GET', 'DELETE']) assert.equal(await answer(nobody, method, path('ann')), '404 missing')

  const ann = server.as('ann:pw')
  const own = await ann.ok('GET', path('ann'))
  assert.equal(own.nick, 'a')
  assert.equal(await answer(nobody, 'PUT', path('ann'), own), '403 You may only update your own user document.')
  assert.equal(await answer(ann, 'PUT', path('ann'), { ...own, roles: ['_admin'] }),
    '403 No system roles (starting with underscore) in users db.')
  assert.equal(await answer(ann, 'PUT', path('ann'), { ...own, roles: ['jobs'] }), '403 Only _admin may edit roles')
  assert.equal(await answer(ann, 'PUT', path('ann'), { ...own, name: 'root' }),
    '403 Doc ID must be of the form org.couchdb.user:name')
  assert.equal(await answer(ann, 'PUT', path('ann'), { ...own, iterations: 11 }), '403 iterations must be from 1 to 10.')
  assert.equal(await answer(ann, 'PUT', path('ann'), { ...own, nick: 'x'.repeat(65_536) }),
    "413 A user's own document may have 65536 bytes.")
  for (const target of [path('bob'), path('root'), path('none'), '/_users/other']) {
    const expected = target === '/_users/other' ? SERVER_ADMINS : '404 missing'
    for (const method of ['GET', 'PUT', 'DELETE']) assert.equal(await answer(ann, method, target, {}), expected, target)
  }
  assert.equal(await answer(ann, 'POST', '/_users', user('bob', { password: 'mine' })), '404 missing')
  assert.equal(await answer(ann, 'POST', '/_users', { _id: '_local/x' }), '404 missing')
  assert.equal(await answer(ann, 'PUT', `${path('ann')}?new_edits=false`, { ...own, roles: ['jobs'] }), '404 missing')
  const others = [
    ['GET', '_all_docs'], ['POST', '_all_docs'], ['GET', '_changes'], ['POST', '_bulk_get'], ['POST', '_bulk_docs'], ['GET', '_local_docs'],
    ['GET', '_design_docs'], ['GET', '_design/d'], ['PUT', '_design/d'], ['GET', '_design/d/_view/v'], ['GET', '_local/x'],
    ['PUT', '_local/x'], ['POST', '_revs_diff'], ['PUT', '_security'], ['GET', '_security'], ['PUT', '_revs_limit']
  ]
  for (const client of [ann, nobody]) {
    for (const [method, target] of others)
      assert.equal(await answer(client, method, `/_users/${target}`, {}), SERVER_ADMINS, `${method} ${target}`)
  }
  const copy = await ann.request('COPY', path('ann'), { headers: { Destination: 'org.couchdb.user:bob' } })
  assert.equal(copy.status, 404)

  // Password, profile and deletion.
  assert.equal(await answer(ann, 'PUT', path('ann'), { ...own, nick: 'b', password: 'new' }), 201)
  assert.equal(await answer(ann, 'GET', path('ann')), '401 Name or password is incorrect.')
  const changed = server.as('ann:new')
  const { nick, _rev: rev } = await changed.ok('GET', path('ann'))
  assert.equal(nick, 'b')
  assert.equal(await answer(changed, 'DELETE', `${path('ann')}?rev=${rev}`), 200)
  assert.equal(await answer(changed, 'GET', path('ann')), '401 Name or password is incorrect.')
  assert.equal(await put(nobody, 'ann', { password: 'pw', roles: ['jobs'] }), '403 Only _admin may set roles')
  assert.equal(await put(nobody, 'ann', { password: 'again' }), 201)

  // Admins of the database do everything but list it.
  await server.client.ok('PUT', '/_users/_security', { admins: { names: ['root'] } })
  const root = server.as('root:pw')
  const bob = await root.ok('GET', path('bob'))
  assert.equal(await answer(root, 'PUT', path('bob'), { ...bob, roles: ['jobs'] }), 201)
  assert.equal(await answer(root, 'GET', '/_users/_all_docs'), SERVER_ADMINS)
  assert.equal(await answer(root, 'DELETE', '/_users'), SERVER_ADMINS)
})
