// Replication with other servers than the present Divan: older ones, those that authenticate otherwise, pouchdb-server and CouchDB.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import http from 'node:http'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { Client } from './support/client.mjs'
import { freePort } from './support/cluster.mjs'
import { fill, leaves, listening, remote, replicate, withProxy, withServers } from './support/replication.mjs'
import { ADMIN, Server, temporaryDirectory } from './support/server.mjs'
import { pause, waitFor } from './support/wait.mjs'

const require = createRequire(import.meta.url)
const [username] = ADMIN.split(':')

test('a source without _bulk_get is read document by document', () => withServers(2, async (a, b) => {
  await fill(a.client, 'source', 120)
  const many = Array.from({ length: 120 }, (_, n) => ({ _id: 'many', _rev: `1-${String(n).padStart(32, '0')}`, n }))
  await a.client.ok('POST', '/source/_bulk_docs', { docs: many, new_edits: false })
  for (const status of [404, 405]) {
    const before = ({ path }) => (path.endsWith('/_bulk_get') ? status : undefined)
    await withProxy(a, async (proxied, requests) => {
      const { history: [session] } = await replicate(b, { source: remote(proxied, 'source'), target: `t${status}`, create_target: true })
      assert.equal(session.doc_write_failures, 0)
      assert.equal(requests.filter(({ path }) => path.endsWith('/_bulk_get')).length, 1)
      assert.deepEqual(await leaves(b.client, `t${status}`), await leaves(a.client, 'source'))
      // A later revision, with the attachment that the target has.
      const doc = await a.client.ok('GET', '/source/attached')
      await a.client.ok('PUT', '/source/attached', { ...doc, status })
      const more = await replicate(b, { source: remote(proxied, 'source'), target: `t${status}` })
      assert.equal(more.history[0].docs_written, 1)
      assert.deepEqual(await leaves(b.client, `t${status}`), await leaves(a.client, 'source'))
    }, undefined, before)
  }
}))

// For withProxy: refuses Basic credentials, and sessions that have had `uses` requests or were ended.
function onlySessions(uses) {
  let left = 0
  return {
    end: () => { left = 0 },
    before({ headers, path, method }) {
      if (headers.authorization) return 401
      if (path === '/_session' && method === 'POST') left = uses
      else if (headers.cookie && left-- <= 0) return 401
      return undefined
    }
  }
}
const logins = (requests) => requests.filter(({ path, method }) => path === '/_session' && method === 'POST').length

test('a server that refuses Basic credentials gets a session, and another one when it has expired', () => withServers(2, async (a, b) => {
  await fill(a.client, 'source', 1200)
  await a.client.ok('PUT', '/source/large', { _attachments: { a: { data: Buffer.alloc(600_000, 'x').toString('base64'), content_type: 'text/plain' } } })
  await withProxy(a, async (proxied, requests) => {
    await replicate(b, { source: remote(proxied, 'source'), target: 'pulled', create_target: true })
    assert.ok(logins(requests) > 2)
    assert.deepEqual(await leaves(b.client, 'pulled'), await leaves(a.client, 'source'))
    await replicate(a, { source: 'source', target: remote(proxied, 'pushed'), create_target: true })
    assert.deepEqual(await leaves(a.client, 'pushed'), await leaves(a.client, 'source'))
    await replicate(b, { source: remote(proxied, 'source'), target: remote(proxied, 'through'), create_target: true })
    assert.deepEqual(await leaves(a.client, 'through'), await leaves(a.client, 'source'))
    // Wrong credentials: one attempt to log in.
    requests.length = 0
    const wrong = { url: `${proxied.url}/source`, auth: { basic: { username, password: 'wrong' } } }
    assert.match((await b.client.post('/_replicate', { source: wrong, target: 'pulled' })).json.reason, /The credentials are not accepted/)
    assert.equal(logins(requests), 1)
  }, undefined, onlySessions(4).before)
}))

test('a session that ends while an attachment is opened is replaced', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  await a.client.ok('PUT', '/source/large', { _attachments: { a: { data: Buffer.alloc(3_000_000, 'x').toString('base64'), content_type: 'text/plain' } } })
  const sessions = onlySessions(1000)
  const ended = new Set()
  const before = (record) => {
    if (record.path.startsWith('/source/large/') && !ended.has(record.path)) {
      ended.add(record.path)
      sessions.end()
    }
    return sessions.before(record)
  }
  await withProxy(a, async (proxied) => {
    for (const target of ['pulled', remote(b, 'through')]) {
      ended.clear()
      const { history: [session] } = await replicate(b, { source: remote(proxied, 'source'), target, create_target: true })
      assert.equal(session.docs_written, 1)
      assert.equal(ended.size, 1)
    }
  }, undefined, before)
}))

test('a server that ignores Basic credentials gets a session', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  await a.client.ok('PUT', '/source/d', {})
  await b.client.ok('PUT', '/target')
  await b.client.ok('PUT', '/target/_security', {})
  await b.client.ok('PUT', '/target/_design/d', { validate_doc_update: 'function (doc, old, user) { if (!user.name) throw { unauthorized: "no user" } }' })
  const before = ({ headers }) => { delete headers.authorization }
  await withProxy(b, async (proxied, requests) => {
    const { history: [session] } = await replicate(a, { source: 'source', target: remote(proxied, 'target') })
    assert.equal(session.docs_written, 1)
    assert.equal(logins(requests), 1)
  }, undefined, before)
}))

test('a session is renewed before it expires', async () => {
  const short = await Server.start({ env: { DIVAN_CHTTPD_AUTH_TIMEOUT: '10' } })
  const other = await Server.start()
  await short.client.ok('PUT', '/target')
  await short.client.ok('PUT', '/target/_security', {})
  await short.client.ok('PUT', '/target/_design/d', { validate_doc_update: 'function (doc, old, user) { if (!user.name) throw { unauthorized: "no user" } }' })
  await other.client.ok('PUT', '/source')
  const before = ({ headers }) => (headers.authorization ? 401 : undefined)
  await withProxy(short, async (proxied, requests) => {
    const body = { source: 'source', target: remote(proxied, 'target'), continuous: true }
    await replicate(other, body)
    const first = new Set()
    for (let n = 0; first.size < 3; ++n) {
      await other.client.ok('PUT', `/source/d${n}`, {})
      await waitFor('the document', async () => (await short.client.get(`/target/d${n}`)).status === 200)
      for (const { headers } of requests) if (headers.cookie) first.add(headers.cookie)
      await pause(200)
    }
    await replicate(other, { ...body, cancel: true })
  }, undefined, before)
  for (const server of [short, other]) await server.stop()
})

test('redirects of a database are followed, without credentials if they lead to another server', () => withServers(2, async (a, b) => {
  await fill(a.client, 'source', 20)
  await a.client.ok('PUT', '/source/large', { _attachments: { a: { data: Buffer.alloc(600_000, 'x').toString('base64'), content_type: 'text/plain' } } })
  const seen = []
  const redirector = http.createServer((request, response) => {
    seen.push(request.url)
    const [, to] = request.url.match(/^\/(?:same|moved)(.*)/) ?? []
    if (request.url.startsWith('/same')) return void response.writeHead(307, { Location: `/moved${to}` }).end()
    request.pipe(http.request(`${a.url}/source${to}`, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers)
      answer.pipe(response)
    }))
  })
  await listening(redirector, (port) => replicate(b, { source: remote({ url: `http://127.0.0.1:${port}` }, 'same'), target: 'target', create_target: true }))
  assert.deepEqual(await leaves(b.client, 'target'), await leaves(a.client, 'source'))
  assert.equal(seen.filter((url) => url.startsWith('/same')).length, 1)

  // The whole database, or only its sessions.
  const got = []
  const other = http.createServer((request, response) => {
    request.on('data', (bytes) => got.push(bytes.toString()))
    got.push(JSON.stringify(request.headers))
    request.on('end', () => response.writeHead(401, { 'Content-Type': 'application/json' }).end('{}'))
  })
  await listening(other, async (otherPort) => {
    for (const path of ['/x', '/_session']) {
      const away = http.createServer((request, response) => {
        request.resume()
        if (request.url === path) response.writeHead(307, { Location: `http://localhost:${otherPort}/y` }).end()
        else response.writeHead(401, { 'Content-Type': 'application/json' }).end('{}')
      })
      await listening(away, async (port) => {
        const source = { ...remote({ url: `http://127.0.0.1:${port}` }, 'x'), headers: { 'X-Key': 'key' } }
        const { json } = await a.client.post('/_replicate', { source, target: 'copy', create_target: true })
        assert.match(json.reason, /401/)
      })
    }
  })
  assert.ok(got.length > 0)
  assert.ok(got.every((text) => !/authorization|secret|admin|key/i.test(text)), got.join())
}))

test('a continuous replication goes on when the session ends while it waits', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  const sessions = onlySessions(1000)
  await withProxy(a, async (proxied, requests) => {
    const body = { source: remote(proxied, 'source'), target: 'target', create_target: true, continuous: true }
    await replicate(b, body)
    for (let n = 0; n < 3; ++n) {
      await a.client.ok('PUT', `/source/d${n}`, {})
      await waitFor('the document', async () => (await b.client.get(`/target/d${n}`)).status === 200)
      sessions.end()
    }
    assert.ok(logins(requests) >= 3)
    await replicate(b, { ...body, cancel: true })
  }, undefined, sessions.before)
}))

// Calls body with a server whose JSON passes through functions on its way to `server`: request(path, body) and response(path, body).
function withChangedJson(server, { request: change = (path, body) => body, response: changeBack = (path, body) => body }, body) {
  const { hostname, port } = new URL(server.url)
  const proxy = http.createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    const changed = text && JSON.stringify(await change(request.url, JSON.parse(text)))
    const headers = { ...request.headers }
    if (changed) headers['content-length'] = Buffer.byteLength(changed)
    delete headers['accept-encoding']
    http.request({ hostname, port, method: request.method, path: request.url, headers }, async (answer) => {
      let back = ''
      for await (const chunk of answer) back += chunk
      if (back) back = JSON.stringify(await changeBack(request.url, JSON.parse(back)))
      response.writeHead(answer.statusCode, { 'Content-Type': 'application/json' }).end(back)
    }).end(changed)
  })
  return listening(proxy, (proxyPort) => body({ url: `http://127.0.0.1:${proxyPort}` }))
}

const recreate = async (client, database) => {
  await client.ok('DELETE', `/${database}`)
  await client.ok('PUT', `/${database}`)
}

test('a target that is created again gets everything, also if it does not compare revisions of checkpoints, as CouchDB', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  await a.client.ok('PUT', '/source/old', {})
  const request = async (path, body) => {
    if (!path.includes('/_local/')) return body
    const { json, status } = await b.client.get(path)
    return { ...body, _rev: status === 200 ? json._rev : undefined }
  }
  await withChangedJson(b, { request }, async (changed) => {
    const body = { source: 'source', target: remote(changed, 'target'), create_target: true, continuous: true, checkpoint_interval: 50 }
    const { _local_id: id } = await replicate(a, body)
    await waitFor('a checkpoint', async () => (await b.client.get('/target/old')).status === 200 && (await b.client.ok('GET', '/target/_local_docs')).rows.length > 0)
    await pause(1100) // `instance_start_time` is in seconds
    await recreate(b.client, 'target')
    await a.client.ok('PUT', '/source/new', {})
    const job = `/_jobs/replication/${encodeURIComponent(id)}`
    await waitFor('the failure', async () => (await a.client.ok('GET', `/_scheduler/jobs/${encodeURIComponent(id)}`)).state === 'crashing')
    assert.equal((await a.client.post(`${job}/_resubmit`, {})).status, 200)
    await waitFor('the old document', async () => (await b.client.get('/target/old')).status === 200)
    await replicate(a, { ...body, cancel: true })
  })
}))

test('a target that is created again before the first checkpoint gets everything', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  await a.client.ok('PUT', '/source/old', {})
  let recreated = false
  const response = async (path, body) => {
    // Only the revisions of its checkpoints show it.
    if (path === '/target') delete body.instance_start_time
    if (path === '/target/_bulk_docs' && !recreated) {
      recreated = true
      await recreate(b.client, 'target')
    }
    return body
  }
  await withChangedJson(b, { response }, async (changed) => {
    const body = { source: 'source', target: remote(changed, 'target'), create_target: true, continuous: true, checkpoint_interval: 50 }
    const { _local_id: id } = await replicate(a, body)
    await waitFor('the failure', async () => (await a.client.ok('GET', `/_scheduler/jobs/${encodeURIComponent(id)}`)).state === 'crashing')
    assert.equal((await a.client.post(`/_jobs/replication/${encodeURIComponent(id)}/_resubmit`, {})).status, 200)
    await waitFor('the document', async () => (await b.client.get('/target/old')).status === 200)
    await replicate(a, { ...body, cancel: true })
  })
}))

// Calls body with the base URL of a pouchdb-server that keeps its databases in memory.
async function withPouchdbServer(body) {
  const directory = temporaryDirectory()
  const child = spawn(process.execPath, [require.resolve('pouchdb-server/bin/pouchdb-server'), '--in-memory', '--port', `${await freePort()}`, '--host', '127.0.0.1', '--dir', directory],
    { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (bytes) => { output += bytes })
  try {
    const url = await waitFor('pouchdb-server', () => output.match(/started on (http:\/\/[\d.:]+)/)?.[1])
    await body(new URL(url).origin)
  } finally {
    child.kill('SIGKILL')
  }
}

// Replicates both ways between a server and another one, which both get conflicts, deletions and attachments.
async function converge(server, theirs) {
  const { client } = server
  const other = new Client(theirs.origin, theirs.credentials)
  const db = (name) => (theirs.credentials ? { url: `${theirs.origin}/${name}`, auth: { basic: theirs.basic } } : `${theirs.origin}/${name}`)
  await fill(client, 'mine')
  const sent = await replicate(server, { source: 'mine', target: db('copy'), create_target: true })
  assert.equal(sent.history[0].doc_write_failures, 0)
  assert.deepEqual(await leaves(other, 'copy'), await leaves(client, 'mine'))

  const data = Buffer.alloc(400_000, 'text').toString('base64')
  await other.ok('PUT', '/copy/theirs', { _attachments: { a: { content_type: 'text/plain', data } } })
  const d5 = await other.ok('GET', '/copy/d5')
  await other.ok('PUT', '/copy/d5', { ...d5, by: 'them' })
  await client.ok('PUT', '/mine/d5', { ...(await client.ok('GET', '/mine/d5')), by: 'us' })
  const d100 = await other.ok('GET', '/copy/d100')
  await other.ok('DELETE', `/copy/d100?rev=${d100._rev}`)
  for (const [source, target] of [[db('copy'), 'mine'], ['mine', db('copy')]]) await replicate(server, { source, target })
  assert.deepEqual(await leaves(other, 'copy'), await leaves(client, 'mine'))
  assert.ok((await leaves(client, 'mine')).some(({ _id, _attachments }) => _id === 'theirs' && _attachments.a.length === undefined))

  // Nothing is read twice, since both sides have a checkpoint.
  const again = await replicate(server, { source: 'mine', target: db('copy') })
  assert.equal(again.history[0].docs_read ?? 0, 0)

  const both = [{ source: 'mine', target: db('copy') }, { source: db('copy'), target: 'mine' }]
  for (const body of both) await replicate(server, { ...body, continuous: true })
  for (let n = 0; n < 20; ++n) await [client.ok('PUT', `/mine/m${n}`, { n }), other.ok('PUT', `/copy/t${n}`, { n })][n % 2]
  await waitFor('both to have the same leaves', async () => {
    const mine = await leaves(client, 'mine')
    return mine.length > 320 && isDeepStrictEqual(mine, await leaves(other, 'copy'))
  })
  for (const body of both) await replicate(server, { ...body, continuous: true, cancel: true })
}

test('documents are replicated with pouchdb-server', () => withPouchdbServer((origin) => withServers(1, (server) => converge(server, { origin }))))

const couchdb = process.env.DIVAN_TEST_COUCHDB
test('documents are replicated with CouchDB', { skip: !couchdb && 'DIVAN_TEST_COUCHDB is not the URL of one' }, async () => {
  const { origin, username: name, password } = new URL(couchdb)
  await withServers(1, (server) => converge(server, { origin, credentials: `${name}:${password}`, basic: { username: name, password } }))
})
