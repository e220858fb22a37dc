// Users whom other servers have authenticated: JSON Web Tokens, and reverse proxies.
import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { runDivan, shareServer, temporaryDirectory } from './support/server.mjs'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const escaped = ({ publicKey }) => publicKey.export({ type: 'spki', format: 'pem' }).replaceAll('\n', '\\n')

const settings = path.join(temporaryDirectory(), 'divan.ini')
writeFileSync(settings, `[jwt_keys]
hmac:_default = ${Buffer.from('jwt secret').toString('base64')}
rsa:company = ${escaped(rsa)}
ec:phones = ${escaped(ec)}
[chttpd_auth]
proxy_use_secret = true
secret = proxy secret
`)
const it = shareServer({ args: ['--config', settings] })

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
const soon = () => Math.floor(Date.now() / 1000) + 600
const join = (head, claims, signer) => {
  const message = `${encoded(head)}.${encoded(claims)}`
  return `Bearer ${message}.${signer(message).toString('base64url')}`
}
const hmac = (claims, secret = 'jwt secret') => join({ alg: 'HS256' }, claims, (message) => createHmac('sha256', secret).update(message).digest())
const asymmetric = (alg, kid, { privateKey }, claims) =>
  join({ alg, kid, typ: 'JWT' }, claims, (message) => sign('sha256', message, { key: privateKey, dsaEncoding: 'ieee-p1363' }))
const proxied = (name, roles, secret = 'proxy secret') => ({
  'X-Auth-CouchDB-UserName': name,
  'X-Auth-CouchDB-Roles': roles,
  'X-Auth-CouchDB-Token': createHmac('sha256', secret).update(name).digest('hex')
})

async function session(server, headers) {
  const { status, json } = await server.as().request('GET', '/_session', { headers })
  return status === 200 ? [json.userCtx.name, json.userCtx.roles, json.info.authenticated] : [status, json.error, json.reason]
}
const withToken = (server, Authorization) => session(server, { Authorization })

it('tokens of each kind of key name users and roles', async (server) => {
  const claims = { sub: 'ann', exp: soon(), '_couchdb.roles': ['staff'] }
  const wanted = ['ann', ['staff'], 'jwt']
  assert.deepEqual(await withToken(server, hmac(claims)), wanted)
  assert.deepEqual(await withToken(server, asymmetric('RS256', 'company', rsa, claims)), wanted)
  assert.deepEqual(await withToken(server, asymmetric('ES256', 'phones', ec, claims)), wanted)
  assert.deepEqual(await withToken(server, hmac({ ...claims, '_couchdb.roles': ['_admin'] })), ['ann', ['_admin'], 'jwt'])
})

it('other tokens are refused', async (server) => {
  const claims = { sub: 'ann', exp: soon() }
  const bad = [400, 'bad_request', 'Bad signature in authentication token']
  assert.deepEqual(await withToken(server, hmac(claims, 'other secret')), bad)
  assert.deepEqual(await withToken(server, asymmetric('RS256', 'company', generateKeyPairSync('rsa', { modulusLength: 2048 }), claims)), bad)
  assert.deepEqual(await withToken(server, hmac({ ...claims, exp: 1 })), [401, 'unauthorized', 'exp not in future'])
  assert.deepEqual(await withToken(server, 'Bearer x'), [400, 'bad_request', 'Malformed authentication token'])
})

it('a token gives access to databases by name and role, without a document in _users', async (server) => {
  const db = await server.newDatabase()
  await server.client.ok('PUT', `/${db}/_security`, { members: { names: ['ann'], roles: ['staff'] } })
  const status = async (claims) => {
    const headers = { Authorization: hmac({ exp: soon(), ...claims }) }
    return (await server.as().request('GET', `/${db}`, { headers })).status
  }
  assert.equal(await status({ sub: 'ann' }), 200)
  assert.equal(await status({ sub: 'bob', '_couchdb.roles': ['staff'] }), 200)
  assert.equal(await status({ sub: 'bob', '_couchdb.roles': ['other'] }), 403)
  assert.equal(await status({ sub: 'admin' }), 403) // the name of an administrator does not make one
})

it('a proxy that knows the secret names the user', async (server) => {
  assert.deepEqual(await session(server, proxied('cleo', 'a, b')), ['cleo', ['a', 'b'], 'proxy'])
  assert.deepEqual(await session(server, proxied('cleo', '_admin')), ['cleo', ['_admin'], 'proxy'])
  const anonymous = [null, [], undefined]
  assert.deepEqual(await session(server, proxied('cleo', '', 'guessed')), anonymous)
  assert.deepEqual(await session(server, { ...proxied('cleo', ''), 'X-Auth-CouchDB-UserName': 'dan' }), anonymous)
  assert.deepEqual(await session(server, { 'X-Auth-CouchDB-UserName': 'cleo' }), anonymous)
  const twice = { ...proxied('cleo', ''), 'X-Auth-CouchDB-Roles': ['_admin', ''] }
  assert.deepEqual(await session(server, twice), anonymous)
})

// A browser may send its credentials for the proxy with a form of any page.
it('a form cannot be posted through a proxy', async (server) => {
  const db = await server.newDatabase()
  const post = (type) =>
    server.as().request('POST', `/${db}/_compact`, { body: '{}', headers: { ...proxied('root', '_admin'), 'Content-Type': type } })
  assert.equal((await post('text/plain')).status, 415)
  assert.equal((await post('application/json')).status, 202)
})

it('secrets are never shown, and keys cannot be changed over HTTP', async (server) => {
  const { text } = await server.client.request('GET', '/_node/_local/_config')
  for (const secret of ['proxy secret', Buffer.from('jwt secret').toString('base64')]) assert.ok(!text.includes(secret))
  assert.ok(text.includes('rsa:company'))
  for (const [key, status] of [['jwt_keys/hmac:_default', 403], ['chttpd_auth/secret', 403], ['jwt_keys/rsa:company', 400], ['jwt_auth/required_claims', 400]]) {
    const answer = await server.client.request('PUT', `/_node/_local/_config/${key}`, { body: '"x"' })
    assert.equal(answer.status, status, key)
  }
  assert.ok(!server.log.includes('secret'))
})

it('a server does not start with an invalid key', async () => {
  for (const [line, message] of [['hmac:a = ?', /hmac:a: A key for HMAC must be in base64/], ['rsa:a = x', /not a public key of the type `rsa`/]]) {
    const file = path.join(temporaryDirectory(), 'bad.ini')
    writeFileSync(file, `[jwt_keys]\n${line}\n`)
    const { code, stderr } = await runDivan(['serve', '--data-dir', temporaryDirectory(), '--port', '0', '--config', file])
    assert.notEqual(code, 0)
    assert.match(stderr, message)
  }
})
