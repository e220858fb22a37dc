// What browsers need: sessions in cookies, and pages of other origins. docs/browsers.md
import assert from 'node:assert/strict'
import { Server, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const ORIGIN = 'https://app.example'
const setting = (server, section, key, value) =>
  server.client.ok('PUT', `/_node/_local/_config/${section}/${key}`, JSON.stringify(value))

/** The value of AuthSession in a response, '' if it is removed, undefined if it is not set. */
const sessionOf = ({ headers }) =>
  headers['set-cookie']?.map((field) => field.match(/^AuthSession=([^;]*)/)).find((match) => match)?.[1]
const withCookie = (cookie, more = {}) => ({ headers: { Cookie: `other=1; AuthSession=${cookie}`, ...more } })

async function logIn(server, name, password) {
  const answer = await server.as(null).post('/_session', { name, password })
  assert.equal(answer.status, 200, answer.text)
  return sessionOf(answer)
}
async function addUser(server, name, password, more = {}) {
  const { rev } = await server.client.ok('PUT', `/_users/org.couchdb.user:${name}`, { name, type: 'user', roles: [], password, ...more })
  return rev
}
/** Who a cookie is: the name and how it was authenticated; the reason of an error. */
async function whois(server, cookie) {
  const { status, json } = await server.as(null).get('/_session', withCookie(cookie))
  return status === 200 ? [json.userCtx.name, json.info.authenticated] : json.reason
}

testWithServer('a user logs in with a form, uses the cookie, and logs out', {}, async (server) => {
  await setting(server, 'chttpd_auth', 'iterations', '10')
  await addUser(server, 'ann', 'pä&=+ 1', { roles: ['jobs'] })
  const anonymous = server.as(null)
  const json = await anonymous.post('/_session', { name: 'ann', password: 'pä&=+ 1' })
  assert.deepEqual([json.status, json.json], [200, { ok: true, name: 'ann', roles: ['jobs'] }])
  assert.match(json.headers['set-cookie'][0], /^AuthSession=[\w-]+; Path=\/; Expires=[\w,: ]+ GMT; Max-Age=600; HttpOnly$/)
  const body = new URLSearchParams({ username: 'ann', password: 'pä&=+ 1' }).toString()
  const form = await anonymous.post('/_session', body, { headers: { 'Content-Type': 'application/x-www-form-urlencoded' } })
  assert.equal(form.status, 200, form.text)
  for (const answer of [json, form]) {
    const { status, json } = await anonymous.get('/_session', withCookie(sessionOf(answer)))
    assert.equal(status, 200)
    assert.deepEqual(json.userCtx, { name: 'ann', roles: ['jobs'] })
    assert.deepEqual(json.info, { authentication_handlers: ['cookie', 'default'], authenticated: 'cookie' })
  }
  // Its roles are those of the user.
  assert.equal((await anonymous.get('/_jobs', withCookie(sessionOf(json)))).status, 200)
  assert.equal((await anonymous.get('/_all_dbs', withCookie(sessionOf(json)))).status, 401)

  const out = await anonymous.delete('/_session', withCookie(sessionOf(json)))
  assert.deepEqual([out.status, out.json, sessionOf(out)], [200, { ok: true }, ''])
  assert.match(out.headers['set-cookie'][0], /Max-Age=0/)
})

testWithServer('an administrator logs in, and the cookie survives a restart', {}, async (server) => {
  const cookie = await logIn(server, 'admin', 'secret')
  assert.deepEqual(await whois(server, cookie), ['admin', 'cookie'])
  assert.equal((await server.as(null).put('/db', undefined, withCookie(cookie))).status, 201)
  await server.kill()
  const again = await Server.start({ dataDir: server.dataDir })
  assert.deepEqual(await whois(again, cookie), ['admin', 'cookie'])
  await again.stop()
})

testWithServer('a wrong login sets no cookie, and says nothing about the user', {}, async (server) => {
  await setting(server, 'chttpd_auth', 'iterations', '10')
  await addUser(server, 'ann', 'right')
  for (const name of ['ann', 'nobody', 'admin', '']) {
    const answer = await server.as(null).post('/_session', { name, password: 'wrong' })
    assert.deepEqual([answer.status, answer.json], [401, { error: 'unauthorized', reason: 'Name or password is incorrect.' }])
    assert.equal(sessionOf(answer), '')
  }
  const bad = async (body, type = 'application/json') => {
    const { status, json } = await server.as(null).post('/_session', body, { headers: { 'Content-Type': type } })
    return [status, json.error, json.reason]
  }
  assert.deepEqual(await bad('{}'), [400, 'bad_request', 'request body must contain a username'])
  assert.deepEqual(await bad('[]'), [400, 'bad_request', 'request body must contain a username'])
  assert.deepEqual(await bad('{"name":"a","username":"b"}'), [400, 'bad_request', 'request body contains different usernames'])
  assert.equal((await bad('{"name":1}'))[0], 400)
  assert.equal((await bad('{'))[0], 400)
  assert.equal((await bad('name=%zz', 'application/x-www-form-urlencoded'))[0], 400)
  assert.deepEqual((await bad('name=a', 'text/plain')).slice(0, 2), [415, 'bad_content_type'])
  assert.deepEqual((await bad(JSON.stringify({ name: 'a'.repeat(100_000) }))).slice(0, 2), [413, 'too_large'])
})

testWithServer('a cookie ends with the password, the user and its time', {}, async (server) => {
  await setting(server, 'chttpd_auth', 'iterations', '10')
  const _rev = await addUser(server, 'ann', 'one')
  const first = await logIn(server, 'ann', 'one')
  assert.deepEqual(await whois(server, first), ['ann', 'cookie'])
  const rev = await addUser(server, 'ann', 'two', { _rev })
  assert.deepEqual(await whois(server, first), [null, undefined])
  const second = await logIn(server, 'ann', 'two')
  assert.deepEqual(await whois(server, second), ['ann', 'cookie'])
  await server.client.ok('DELETE', `/_users/org.couchdb.user:ann?rev=${rev}`)
  assert.deepEqual(await whois(server, second), [null, undefined])

  assert.equal(await whois(server, 'x'), 'Malformed AuthSession cookie. Please clear your cookies.')
  // A password beside a cookie that is not valid.
  const both = await server.client.get('/_session', withCookie(second))
  assert.deepEqual([both.json.userCtx.name, both.json.info.authenticated], ['admin', 'default'])
})

testWithServer('a cookie is renewed while it is used', {}, async (server) => {
  const cookie = await logIn(server, 'admin', 'secret')
  const use = () => server.as(null).get('/_all_dbs', withCookie(cookie))
  assert.equal(sessionOf(await use()), undefined, 'it is new')
  // Each cookie older than a second is in the last nine tenths of this time.
  await setting(server, 'chttpd_auth', 'timeout', '10')
  let renewed
  await waitFor('a new cookie', async () => (renewed = sessionOf(await use())) !== undefined)
  assert.notEqual(renewed, cookie)
  assert.deepEqual(await whois(server, renewed), ['admin', 'cookie'])
  const out = await server.as(null).delete('/_session', withCookie(cookie))
  assert.equal(out.headers['set-cookie'].length, 1)
  await setting(server, 'chttpd_auth', 'timeout', '1')
  await waitFor('the end of the session', async () => (await use()).status === 401)
})

// A browser would send these for a page of any origin, with the cookie, and without asking the server before.
testWithServer('a page of another origin cannot write with a cookie', {}, async (server) => {
  const cookie = await logIn(server, 'admin', 'secret')
  await server.client.ok('PUT', '/db')
  await server.client.ok('PUT', '/_jobs/t', {})
  const post = (target, body, type) => server.as(null).post(target, body, withCookie(cookie, { 'Content-Type': type }))
  for (const type of [undefined, 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
    for (const [target, body] of [['/db', '{}'], ['/db/_bulk_docs', '{"docs":[{}]}'], ['/_jobs/t', ''], ['/_jobs/t/_accept', ''], ['/db/_compact', '']]) {
      const { status, json } = await post(target, body, type)
      assert.deepEqual([status, json.error], [415, 'bad_content_type'], `${target} ${type}`)
    }
  }
  assert.equal((await post('/db', '{}', 'application/json')).status, 201)
  assert.equal((await server.client.get('/db')).json.doc_count, 1)
  assert.equal((await server.client.get('/_jobs/t')).json.counts.pending, 0)
  const out = await server.as(null).delete('/_session', withCookie('?'))
  assert.deepEqual([out.status, sessionOf(out)], [200, ''], 'a malformed cookie can be removed')
})

testWithServer('the attributes of a cookie are settings', {}, async (server) => {
  await setting(server, 'chttpd_auth', 'same_site', 'strict')
  await setting(server, 'chttpd_auth', 'allow_persistent_cookies', 'false')
  await setting(server, 'chttpd_auth', 'cookie_domain', 'example.com')
  const answer = await server.as(null).post('/_session', { name: 'admin', password: 'secret' }, { headers: { 'X-Forwarded-Proto': 'https' } })
  assert.match(answer.headers['set-cookie'][0], /^AuthSession=[\w-]+; Path=\/; HttpOnly; Secure; Domain=example.com; SameSite=strict$/)
  for (const [key, value] of [['same_site', 'sometimes'], ['timeout', '0'], ['cookie_domain', 'a; Secure']]) {
    const { status } = await server.client.put(`/_node/_local/_config/chttpd_auth/${key}`, JSON.stringify(value))
    assert.equal(status, 400, key)
  }
})

testWithServer('a login redirects to a path of this server only', {}, async (server) => {
  const to = (next) => server.as(null).post(`/_session?next=${encodeURIComponent(next)}`, { name: 'admin', password: 'secret' })
  const { status, headers } = await to('/db/page?x=1')
  assert.deepEqual([status, new URL(headers.location).pathname], [302, '/db/page'])
  assert.equal((await to('/a\r\nX: y')).headers.x, undefined)
  assert.equal((await to('/a b\\ü')).headers.location.replace(/^http:..[^/]*/, ''), '/a%20b%5C%C3%BC')
  for (const bad of ['//evil.example', 'https://evil.example', 'page']) {
    const refused = await to(bad)
    assert.deepEqual([refused.status, sessionOf(refused)], [400, undefined], bad)
  }
  const out = await server.as(null).delete('/_session?next=/page')
  assert.deepEqual([out.status, new URL(out.headers.location).pathname], [302, '/page'])
})

const preflight = (server, { origin = ORIGIN, method = 'PUT', fields } = {}) =>
  server.as(null).request('OPTIONS', '/', {
    headers: { Origin: origin, 'Access-Control-Request-Method': method, 'Access-Control-Request-Headers': fields }
  })
const corsOf = ({ headers }) => Object.keys(headers).filter((name) => name.startsWith('access-control-')).sort()

testWithServer('pages of other origins are refused by default', {}, async (server) => {
  const answer = await server.client.get('/', { headers: { Origin: ORIGIN } })
  assert.deepEqual([answer.status, corsOf(answer)], [200, []])
  const asked = await preflight(server)
  assert.deepEqual([asked.status, corsOf(asked)], [405, []])
})

testWithServer('pages of origins that are allowed may use the server', {}, async (server) => {
  await setting(server, 'chttpd', 'enable_cors', 'true')
  assert.deepEqual(corsOf(await server.client.get('/', { headers: { Origin: ORIGIN } })), [])
  await setting(server, 'cors', 'origins', `http://other.example, ${ORIGIN}`)

  const asked = await preflight(server, { fields: 'Content-Type,authorization' })
  assert.deepEqual([asked.status, asked.text], [204, ''])
  assert.equal(asked.headers['access-control-allow-origin'], ORIGIN)
  assert.equal(asked.headers['access-control-allow-headers'], 'Content-Type,authorization')
  assert.equal(asked.headers['access-control-max-age'], '600')
  assert.match(asked.headers['access-control-allow-methods'], /\bPUT\b/)
  assert.equal(asked.headers.vary, 'Origin')
  assert.equal(asked.headers['access-control-allow-credentials'], undefined)
  for (const other of [{ origin: 'https://evil.example' }, { origin: 'null' }, { method: 'BREW' }, { method: 'put' }, { fields: 'x-other' }]) {
    const refused = await preflight(server, other)
    assert.deepEqual([refused.status, refused.headers['access-control-allow-methods']], [405, undefined], JSON.stringify(other))
  }

  await server.client.ok('PUT', '/db')
  const read = async (client, target) => (await client.get(target, { headers: { Origin: ORIGIN } })).headers
  for (const [client, target] of [[server.client, '/db'], [server.as(null), '/db'], [server.as('admin:wrong'), '/'], [server.client, '/%zz']]) {
    const headers = await read(client, target)
    assert.equal(headers['access-control-allow-origin'], ORIGIN, target)
    assert.match(headers['access-control-expose-headers'], /^content-type, accept-ranges, etag/)
  }
  const feed = await server.client.open('/db/_changes?feed=continuous&timeout=1', { headers: { Origin: ORIGIN } })
  assert.equal(feed.headers['access-control-allow-origin'], ORIGIN)
  assert.deepEqual(corsOf(await server.client.get('/', { headers: { Origin: 'https://evil.example' } })), [])
})

// Tools for CouchDB set it, such as add-cors-to-couchdb.
testWithServer('the older name of enable_cors applies if the newer one is not set', {}, async (server) => {
  await setting(server, 'cors', 'origins', '*')
  const isAllowed = async () => (await preflight(server)).status === 204
  assert.equal(await isAllowed(), false)
  await setting(server, 'httpd', 'enable_cors', 'true')
  assert.equal(await isAllowed(), true)
  await setting(server, 'chttpd', 'enable_cors', 'false')
  assert.equal(await isAllowed(), false)
  await setting(server, 'chttpd', 'enable_cors', '')
  assert.equal(await isAllowed(), true)
})

testWithServer('all origins, with credentials, and own lists', {}, async (server) => {
  await setting(server, 'chttpd', 'enable_cors', 'true')
  for (const [key, value] of Object.entries({
    origins: '*', credentials: 'true', methods: 'GET, PUT', headers: 'x-own', exposed_headers: 'x-seen', max_age: '5'
  })) await setting(server, 'cors', key, value)
  const asked = await preflight(server, { fields: 'X-Own' })
  assert.equal(asked.status, 204)
  assert.equal(asked.headers['access-control-allow-credentials'], 'true')
  assert.equal(asked.headers['access-control-allow-methods'], 'GET, PUT')
  assert.equal(asked.headers['access-control-max-age'], '5')
  assert.equal((await preflight(server, { method: 'DELETE' })).status, 405)
  assert.equal((await preflight(server, { fields: 'content-type' })).status, 405)

  // A page logs in, and reads with the cookie.
  const login = await server.as(null).post('/_session', { name: 'admin', password: 'secret' }, { headers: { Origin: ORIGIN } })
  assert.equal(login.headers['access-control-allow-origin'], ORIGIN)
  const read = await server.as(null).get('/_all_dbs', withCookie(sessionOf(login), { Origin: ORIGIN }))
  assert.equal(read.status, 200)
  assert.equal(read.headers['access-control-allow-origin'], ORIGIN)
  assert.equal(read.headers['access-control-allow-credentials'], 'true')
  assert.equal(read.headers['access-control-expose-headers'], 'content-type, x-seen')
  assert.equal((await server.client.put('/_node/_local/_config/cors/max_age', '"soon"')).status, 400)
})
