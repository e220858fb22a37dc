// Replication between databases of one server and of two, by POST /_replicate.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { test } from 'node:test'
import { Authority, noOpenssl } from './support/certificates.mjs'
import { fill, leaves, listening, remote, replicate, withProxy, withServers } from './support/replication.mjs'
import { ADMIN, Server, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const [username] = ADMIN.split(':')

test('both sides have the same leaves, whoever of them replicates', () => withServers(2, async (a, b) => {
  await fill(a.client, 'source')
  const expected = await leaves(a.client, 'source')
  assert.ok(expected.length > 320)
  await replicate(a, { source: 'source', target: 'local', create_target: true })
  await replicate(a, { source: 'source', target: remote(b, 'pushed'), create_target: true })
  const { history: [session] } = await replicate(b, { source: remote(a, 'source'), target: 'pulled', create_target: true })
  assert.equal(session.docs_written, expected.length)
  assert.equal(session.doc_write_failures, 0)
  assert.deepEqual(await leaves(a.client, 'local'), expected)
  assert.deepEqual(await leaves(b.client, 'pushed'), expected)
  assert.deepEqual(await leaves(b.client, 'pulled'), expected)
}))

test('a replication goes on from its checkpoint, which both sides have', () => withServers(2, async (a, b) => {
  await fill(a.client, 'source', 100)
  const body = { source: 'source', target: remote(b, 'target'), create_target: true }
  const first = await replicate(a, body)
  const again = await replicate(a, body)
  assert.equal(again.no_changes, true)
  assert.equal(again.history[0].missing_checked, 0)
  await a.client.ok('PUT', '/source/new', { n: 1 })
  const third = await replicate(a, body)
  assert.equal(third.history[0].docs_written, 1)
  assert.equal(third.history[0].start_last_seq, first.source_last_seq)
  const [mine] = (await a.client.ok('GET', '/source/_local_docs?include_docs=true')).rows
  const [others] = (await b.client.ok('GET', '/target/_local_docs?include_docs=true')).rows
  assert.equal(mine.id, others.id)
  assert.equal(mine.doc.session_id, third.session_id)
  assert.deepEqual(mine.doc.history, others.doc.history)
}))

test('a continuous replication follows its source, over a restart, until it is cancelled', async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  for (const db of ['source', 'target']) await server.client.ok('PUT', `/${db}`)
  const body = { source: 'source', target: 'target', continuous: true }
  const { _local_id: id } = await replicate(server, body)
  assert.equal((await replicate(server, body))._local_id, id)
  const arrives = (id) => waitFor(`${id} in the target`, async () => (await server.client.get(`/target/${id}`)).status === 200)
  await server.client.ok('PUT', '/source/first', {})
  await arrives('first')
  await server.kill()
  server = await Server.start({ dataDir })
  await server.client.ok('PUT', '/source/second', {})
  await arrives('second')
  const { total_rows: total, jobs: [job] } = await server.client.ok('GET', '/_scheduler/jobs')
  assert.equal(total, 1)
  assert.equal(job.id, id)
  assert.equal(job.source, 'source')
  assert.equal((await server.client.ok('GET', `/_scheduler/jobs/${encodeURIComponent(id)}`)).target, 'target')
  await replicate(server, { ...body, cancel: true })
  await waitFor('the end of the replication', async () => (await server.client.ok('GET', '/_scheduler/jobs')).total_rows === 0)
  assert.equal((await server.client.post('/_replicate', { ...body, cancel: true })).status, 404)
  await server.stop()
})

test('documents are chosen by ids and by a selector', () => withServers(2, async (a, b) => {
  await fill(a.client, 'source', 100)
  const ids = ['d1', 'd50', 'none']
  const selector = { n: { $gte: 90 } }
  for (const [source, target] of [['source', 'target'], [remote(a, 'source'), 'target'], ['source', remote(b, 'target')]]) {
    const [server, other] = source.url ? [b, b] : target.url ? [a, b] : [a, a]
    const names = async (db) => (await other.client.ok('GET', `/${db}/_all_docs`)).rows.map(({ id }) => id)
    const to = (db) => (target.url ? remote(b, db) : db)
    const suffix = source.url ? '2' : target.url ? '3' : '1'
    await replicate(server, { source, target: to(`ids${suffix}`), create_target: true, doc_ids: ids })
    assert.deepEqual(await names(`ids${suffix}`), ['d1', 'd50'])
    await replicate(server, { source, target: to(`selected${suffix}`), create_target: true, selector })
    assert.deepEqual(await names(`selected${suffix}`), Array.from({ length: 10 }, (_, n) => `d${90 + n}`))
  }
}))

test('filter functions of the source choose documents', () => withServers(2, async (a, b) => {
  await fill(a.client, 'source', 100)
  await a.client.ok('PUT', '/source/_design/f', {
    filters: { from: 'function (doc, req) { return !doc._deleted && doc.n >= Number(req.query.from) && req.userCtx.roles.indexOf("_admin") >= 0 }', fails: 'function (doc) { throw "no" }',
      slow: 'function (doc) { for (;;) {} }' },
    views: { large: { map: 'function (doc) { if (doc.n >= 95) emit(null, null) }' } }
  })
  let number = 0
  for (const [server, source, create] of [[a, 'source', (name) => name], [b, remote(a, 'source'), (name) => name], [a, 'source', (name) => remote(b, name)]]) {
    const ids = async (options) => {
      const name = `target${++number}`
      const target = create(name)
      await replicate(server, { source, target, create_target: true, ...options })
      return (await (target.url ? b : server).client.ok('GET', `/${name}/_all_docs`)).rows.map(({ id }) => id)
    }
    assert.deepEqual(await ids({ filter: 'f/from', query_params: { from: '90' } }), Array.from({ length: 10 }, (_, n) => `d${90 + n}`))
    assert.deepEqual(await ids({ filter: '_view', query_params: { view: 'f/large' } }), ['d95', 'd96', 'd97', 'd98', 'd99'])
    const failing = [['f/none', /missing|not_found/], ['none/f', /missing|not_found/], ['f/fails', /fails|failed/]]
    if (number === 2) failing.push(['f/slow', /slow|failed/])
    for (const [filter, reason] of failing)
      assert.match((await server.client.post('/_replicate', { source, target: 'failing', create_target: true, filter })).json.reason, reason)
  }
}))

async function attachment(server, db, id, name) {
  const answer = await fetch(`${server.url}/${db}/${id}/${name}`, { headers: { Authorization: `Basic ${Buffer.from(ADMIN).toString('base64')}` } })
  assert.equal(answer.status, 200)
  return Buffer.from(await answer.arrayBuffer())
}
const large = randomBytes(3_000_000), larger = Buffer.concat([randomBytes(500_000), Buffer.alloc(11_000_000, 'text ')])

async function fillWithAttachments(client) {
  await client.ok('PUT', '/source')
  const small = { content_type: 'text/plain', data: Buffer.from('hello').toString('base64') }
  const inline = { content_type: 'application/x-data', data: large.subarray(0, 1_000_000).toString('base64') }
  await client.ok('PUT', '/source/doc', { n: 1, _attachments: { 'a/b.txt': small, inline } })
  let { _rev: rev } = await client.ok('GET', '/source/doc')
  for (const [name, type, body] of [['large', 'image/png', large], ['larger', 'text/plain', larger], ['empty', 'text/plain', Buffer.alloc(0)]])
    rev = (await client.put(`/source/doc/${name}?rev=${rev}`, body, { headers: { 'Content-Type': type } })).json.rev
  await client.ok('PUT', '/source/_design%2Fd', { _attachments: { inline, small } })
  return rev
}

test('attachments of any size are copied, and only those that the target lacks', () => withServers(2, (a, b) => withProxy(b, async (proxied, requests) => {
  let rev = await fillWithAttachments(a.client)
  const ways = [[a, 'source', 'local'], [a, 'source', remote(proxied, 'pushed')], [b, remote(a, 'source'), 'pulled'], [b, remote(a, 'source'), remote(proxied, 'through')]]
  const where = (target) => (target === 'local' ? a : b)
  const name = (target) => (target.url ? new URL(target.url).pathname.slice(1) : target)
  for (const [server, source, target] of ways) {
    const { history: [session] } = await replicate(server, { source, target, create_target: true })
    assert.equal(session.docs_written, 2)
    assert.equal(session.doc_write_failures, 0)
    const doc = await where(target).client.ok('GET', `/${name(target)}/doc`)
    const expected = await a.client.ok('GET', '/source/doc')
    assert.deepEqual(doc, expected)
    for (const [part, bytes] of [['large', large], ['larger', larger], ['empty', Buffer.alloc(0)], ['inline', large.subarray(0, 1_000_000)]])
      assert.ok((await attachment(where(target), name(target), 'doc', part)).equals(bytes), `${part} of ${name(target)}`)
    assert.equal((await attachment(where(target), name(target), 'doc', 'a%2Fb.txt')).toString(), 'hello')
    assert.equal((await attachment(where(target), name(target), '_design/d', 'inline')).length, 1_000_000)
  }
  // The body alone, then a further attachment.
  for (const change of ['body', 'another']) {
    const doc = await a.client.ok('GET', '/source/doc')
    if (change === 'body') ({ rev } = await a.client.ok('PUT', '/source/doc', { ...doc, n: 2 }))
    else assert.equal((await a.client.put(`/source/doc/another?rev=${rev}`, large.subarray(0, 400_000), { headers: { 'Content-Type': 'image/png' } })).status, 201)
    requests.length = 0
    for (const [server, source, target] of ways) {
      await replicate(server, { source, target })
      assert.deepEqual(await where(target).client.ok('GET', `/${name(target)}/doc`), await a.client.ok('GET', '/source/doc'))
    }
    const sent = requests.reduce((sum, request) => sum + request.sent, 0)
    assert.ok(change === 'body' ? sent < 100_000 : sent > 800_000 && sent < 900_000, `${sent} bytes were sent: ${JSON.stringify(requests.filter((r) => r.sent > 1000))}`)
  }
  assert.ok((await attachment(b, 'through', 'doc', 'another')).equals(large.subarray(0, 400_000)))
})))

test('an attachment whose connection is lost is read again', () => withServers(2, async (a, b) => {
  await fillWithAttachments(a.client)
  let cuts = 0
  const cut = ({ method, path }) => (method === 'GET' && path.endsWith('/larger') && cuts++ < 2 ? 5_000_000 : Infinity)
  await withProxy(a, async (proxied) => {
    await replicate(b, { source: remote(proxied, 'source'), target: 'pulled', create_target: true })
    assert.ok((await attachment(b, 'pulled', 'doc', 'larger')).equals(larger))
    cuts = 0
    await replicate(a, { source: remote(proxied, 'source'), target: remote(b, 'through'), create_target: true })
    assert.ok((await attachment(b, 'through', 'doc', 'larger')).equals(larger))
  }, cut)
  assert.equal(cuts, 3)
}))

test('a stub that the target lacks meanwhile is sent again with its content', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  const data = Buffer.from('hello').toString('base64')
  const { rev } = await a.client.ok('PUT', '/source/d', { _attachments: { a: { content_type: 'text/plain', data } } })
  await replicate(a, { source: 'source', target: remote(b, 'target'), create_target: true })
  await a.client.ok('PUT', '/source/d', { ...(await a.client.ok('GET', '/source/d')), n: 2 })
  let edited = false
  await withProxy(b, async (proxied) => {
    const { history: [session] } = await replicate(a, { source: 'source', target: remote(proxied, 'target') })
    assert.equal(session.doc_write_failures, 0)
  }, () => Infinity, async ({ path }) => {
    if (path !== '/target/_bulk_docs' || edited) return
    edited = true
    await b.client.ok('PUT', '/target/d', { _rev: rev, other: true })
  })
  assert.ok(edited)
  const [mine] = await leaves(a.client, 'source')
  assert.deepEqual((await leaves(b.client, 'target')).find(({ _rev }) => _rev === mine._rev), mine)
}))

test('a target that is created again gets everything', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  await a.client.ok('PUT', '/source/old', {})
  // If it is another server's, that is noticed at the next change.
  for (const [target, { client }, name] of [['local', a, 'local'], [remote(b, 'pushed'), b, 'pushed']]) {
    const body = { source: 'source', target, create_target: true, continuous: true, checkpoint_interval: 50 }
    const { _local_id: id } = await replicate(a, body)
    await waitFor('the old one', async () => (await client.get(`/${name}/old`)).status === 200)
    await waitFor('a checkpoint', async () => (await client.ok('GET', `/${name}/_local_docs`)).rows.length > 0)
    await client.ok('DELETE', `/${name}`)
    await client.ok('PUT', `/${name}`)
    if (name !== 'local') await a.client.ok('PUT', `/source/for-${name}`, {})
    await waitFor('the replication to see it', async () => (await a.client.ok('GET', `/_scheduler/jobs/${encodeURIComponent(id)}`)).state === 'crashing')
    assert.equal((await a.client.post(`/_jobs/replication/${encodeURIComponent(id)}/_resubmit`, {})).status, 200)
    await waitFor('the old one again', async () => (await client.get(`/${name}/old`)).status === 200)
  }
}))

test('documents and attachments may have the names of directories', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  for (const id of ['.', '..', 'd']) {
    const { status, json } = await a.client.put(`/source/${encodeURIComponent(id).replaceAll('.', '%2E')}/${id === 'd' ? '%2E%2E' : 'a'}`, large, { headers: { 'Content-Type': 'image/png' } })
    assert.equal(status, 201, JSON.stringify(json))
  }
  await replicate(a, { source: 'source', target: remote(b, 'pushed'), create_target: true })
  await replicate(b, { source: remote(a, 'source'), target: 'pulled', create_target: true })
  const expected = await leaves(a.client, 'source')
  for (const name of ['pushed', 'pulled']) assert.deepEqual(await leaves(b.client, name), expected)
}))

test('a document whose leaves are too large together is copied', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  for (let n = 0; n < 10; ++n) {
    const docs = [{ _id: 'd', _rev: `1-${n}`, text: String(n).repeat(7_000_000) }]
    assert.deepEqual(await a.client.ok('POST', '/source/_bulk_docs', { new_edits: false, docs }), [])
  }
  await a.client.ok('PUT', '/source/after', {})
  const { history: [session] } = await replicate(b, { source: remote(a, 'source'), target: 'pulled', create_target: true })
  assert.equal(session.docs_written, 11)
}))

test('a target may refuse large attachments', () => withServers(2, async (a, b) => {
  await fillWithAttachments(a.client)
  for (const server of [a, b]) await server.client.ok('PUT', '/_node/_local/_config/couchdb/max_attachment_size', '"1000000"')
  for (const target of ['local', remote(b, 'pushed')]) {
    const { history: [session] } = await replicate(a, { source: 'source', target, create_target: true })
    assert.equal(session.doc_write_failures, 1)
    assert.equal(session.docs_written, 1)
  }
  for (const server of [a, b]) {
    await server.client.ok('PUT', '/validated')
    await server.client.ok('PUT', '/validated/_design/v', { validate_doc_update: 'function () { throw { forbidden: "no" } }' })
    await server.client.ok('PUT', '/_node/_local/_config/couchdb/max_attachment_size', '"infinity"')
  }
  for (const target of ['validated', remote(b, 'validated')]) {
    const { history: [session] } = await replicate(a, { source: 'source', target })
    assert.equal(session.doc_write_failures, 1)
    assert.equal((await (target.url ? b : a).client.get('/validated/doc')).status, 404)
  }
}))

test('users are replicated, with their passwords', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/_users/org.couchdb.user:ann', { name: 'ann', type: 'user', roles: ['r'], password: 'a password' })
  await a.client.ok('PUT', '/people')
  await a.client.ok('PUT', '/people/org.couchdb.user:bob', { _id: 'org.couchdb.user:bob', name: 'bob', type: 'user', roles: [], password: 'another one' })
  await a.client.ok('PUT', '/people/nobody', {})
  await replicate(b, { source: remote(a, '_users'), target: '_users' })
  const { history: [session] } = await replicate(b, { source: remote(a, 'people'), target: '_users' })
  assert.equal(session.doc_write_failures, 1)
  for (const user of ['ann:a password', 'bob:another one'])
    assert.equal((await b.as(user).ok('GET', '/_session')).userCtx.name, user.split(':')[0])
  assert.equal((await b.client.ok('GET', '/_users/org.couchdb.user:bob')).password, undefined)
}))

test('functions that validate documents of the target refuse some', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  await a.client.ok('POST', '/source/_bulk_docs', { docs: Array.from({ length: 50 }, (_, n) => ({ _id: `d${n}`, n })) })
  const validate_doc_update = 'function (doc, old, user) { if (doc.n % 5 == 0) throw { forbidden: "no " + user.name } }'
  for (const server of [a, b]) {
    await server.client.ok('PUT', '/target')
    await server.client.ok('PUT', '/target/_design/d', { validate_doc_update })
  }
  for (const target of ['target', remote(b, 'target')]) {
    const { history: [session] } = await replicate(a, { source: 'source', target })
    assert.equal(session.docs_written, 40)
    assert.equal(session.doc_write_failures, 10)
  }
  for (const server of [a, b]) assert.equal((await server.client.ok('GET', '/target')).doc_count, 41)
}))

test('a server that is killed while it replicates loses nothing', async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  await fill(server.client, 'source', 3000)
  for (let i = 0; i < 8; ++i) {
    const id = `target${i}`
    await replicate(server, { source: 'source', target: id, create_target: true, continuous: true })
    await waitFor('the first documents', async () => (await server.client.get(`/${id}`)).json.doc_count > 0)
    await server.kill()
    server = await Server.start({ dataDir })
  }
  const expected = await leaves(server.client, 'source')
  for (let i = 0; i < 8; ++i) {
    await waitFor('all documents', async () => (await server.client.ok('GET', `/target${i}/_changes?style=all_docs`)).results.length === 3002)
    assert.deepEqual(await leaves(server.client, `target${i}`), expected)
  }
  await server.stop()
})

test('other servers are reached with TLS, whose certificates are verified', { skip: noOpenssl }, async () => {
  const authority = new Authority()
  const { certificate, key } = authority.give('localhost')
  const b = await Server.start({ env: { DIVAN_SSL_ENABLE: 'true', DIVAN_SSL_PORT: '0', DIVAN_SSL_CERT_FILE: certificate, DIVAN_SSL_KEY_FILE: key } })
  const a = await Server.start()
  const port = /https:\/\/127\.0\.0\.1:(\d+)/.exec(b.stdout)[1]
  await a.client.ok('PUT', '/source')
  await a.client.ok('PUT', '/source/d', {})
  const set = (name, value) => a.client.ok('PUT', `/_node/_local/_config/replicator/${name}`, JSON.stringify(value))
  await set('retries_per_request', '0')
  const push = (name) => a.client.post('/_replicate', { source: 'source', target: remote({ url: `https://localhost:${port}` }, name), create_target: true })
  assert.match((await push('one')).json.reason, /certificate/)
  await set('ssl_trusted_certificates_file', authority.file)
  assert.equal((await push('one')).json.ok, true)
  await set('ssl_trusted_certificates_file', '')
  assert.match((await push('two')).json.reason, /certificate/)
  await set('verify_ssl_certificates', 'false')
  assert.equal((await push('two')).json.ok, true)
  for (const name of ['one', 'two']) assert.equal((await b.client.get(`/${name}/d`)).status, 200)
  for (const [name, value] of [['retries_per_request', '-1'], ['connection_timeout', 'x'], ['max_jobs', '0']])
    assert.equal((await a.client.put(`/_node/_local/_config/replicator/${name}`, JSON.stringify(value))).status, 400)
  for (const server of [a, b]) await server.stop()
})

test('a proxy is used for the side that it is given for', () => withServers(2, async (a, b) => {
  await fill(a.client, 'source', 10)
  const seen = []
  const proxy = http.createServer((request, response) => {
    seen.push(request.url)
    request.pipe(http.request(request.url, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers)
      answer.pipe(response)
    }))
  })
  await listening(proxy, async (port) => {
    const url = `http://127.0.0.1:${port}`
    const body = { source: 'source', target: remote(b, 'target'), create_target: true }
    await replicate(a, body)
    assert.deepEqual(seen, [])
    await replicate(a, { ...body, target: remote(b, 'proxied'), source_proxy: url })
    assert.deepEqual(seen, [])
    for (const [member, database] of [['target_proxy', 'target-proxy'], ['proxy', 'proxy']]) {
      await replicate(a, { ...body, target: remote(b, database), [member]: url })
      assert.ok(seen.some((target) => target.startsWith(`${b.url}/${database}`)), member)
    }
    assert.equal((await a.client.post('/_replicate', { ...body, proxy: 'ftp://x' })).status, 400)
  })
}))

// A SOCKS5 proxy without authentication (RFC 1928), which resolves names itself: the ports to which it has connected are added to `seen`.
function socksProxy(seen) {
  return net.createServer((client) => {
    client.on('error', () => {})
    client.once('data', () => {
      client.write(Buffer.from([5, 0]))
      client.once('data', (request) => {
        const isName = request[3] === 3
        const host = isName ? request.subarray(5, 5 + request[4]).toString() : request.subarray(4, 8).join('.')
        const port = request.readUInt16BE(request.length - 2)
        seen.push(port)
        const upstream = net.connect({ host: host === 'peer.invalid' ? '127.0.0.1' : host, port }, () => {
          client.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 0]))
          client.pipe(upstream).pipe(client)
        })
        upstream.on('error', () => client.destroy())
      })
    })
  })
}

test('a proxy may be one of SOCKS, or reached with TLS', { skip: noOpenssl }, () => withServers(2, async (a, b) => {
  await fill(a.client, 'source', 10)
  const port = Number(new URL(b.url).port)
  const seen = []
  await listening(socksProxy(seen), async (socks) => {
    await replicate(a, { source: 'source', target: remote(b, 'one'), create_target: true, target_proxy: `socks5://127.0.0.1:${socks}` })
    // The proxy resolves the name.
    await replicate(a, { source: 'source', target: remote({ url: `http://peer.invalid:${port}` }, 'two'), create_target: true, target_proxy: `socks5h://127.0.0.1:${socks}` })
  })
  assert.ok(seen.length >= 2 && seen.every((one) => one === port))

  const authority = new Authority()
  const { certificate, key } = authority.give('localhost')
  const paths = []
  const proxy = https.createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => {
    paths.push(request.url)
    request.pipe(http.request(request.url, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers)
      answer.pipe(response)
    }))
  })
  await listening(proxy, async (proxyPort) => {
    const set = (name, value) => a.client.ok('PUT', `/_node/_local/_config/replicator/${name}`, JSON.stringify(value))
    await set('retries_per_request', '0')
    const push = () => a.client.post('/_replicate', { source: 'source', target: remote(b, 'three'), create_target: true, target_proxy: `https://localhost:${proxyPort}` })
    assert.match((await push()).json.reason, /certificate/)
    await set('ssl_trusted_certificates_file', authority.file)
    assert.equal((await push()).json.ok, true)
  })
  assert.ok(paths.some((url) => url.startsWith(`${b.url}/three`)))
  for (const name of ['one', 'two', 'three']) assert.deepEqual(await leaves(b.client, name), await leaves(a.client, 'source'))
}))

test('a server may require a certificate of the one that replicates', { skip: noOpenssl }, () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  await a.client.ok('PUT', '/source/d', {})
  const authority = new Authority()
  const { certificate, key } = authority.give('localhost')
  const mine = authority.give('client')
  const front = https.createServer({ cert: readFileSync(certificate), key: readFileSync(key), ca: readFileSync(authority.file), requestCert: true, rejectUnauthorized: true }, (request, response) => {
    request.pipe(http.request(b.url + request.url, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers)
      answer.pipe(response)
    }))
  })
  front.on('tlsClientError', () => {})
  await listening(front, async (port) => {
    const set = (name, value) => a.client.ok('PUT', `/_node/_local/_config/replicator/${name}`, JSON.stringify(value))
    await set('retries_per_request', '0')
    await set('ssl_trusted_certificates_file', authority.file)
    const push = () => a.client.post('/_replicate', { source: 'source', target: remote({ url: `https://localhost:${port}` }, 'target'), create_target: true })
    assert.match((await push()).json.reason, /connection_failed/)
    await set('cert_file', mine.certificate)
    await set('key_file', authority.encrypted(mine.key, 'word'))
    await set('password', 'wrong')
    assert.notEqual((await push()).json.ok, true)
    await set('password', 'word')
    assert.equal((await push()).json.ok, true)
    assert.equal((await b.client.get('/target/d')).status, 200)
  })
}))

test('users of the job queue cannot use replications', () => withServers(1, async (server) => {
  const { client } = server
  await client.ok('PUT', '/secret')
  await client.ok('PUT', '/_users/org.couchdb.user:w', { name: 'w', type: 'user', roles: ['jobs'], password: 'pw' })
  const worker = server.as('w:pw')
  const { _local_id: id } = await replicate(server, { source: 'secret', target: { url: `${server.url}/x`, auth: { basic: { username, password: 'hidden' } } }, continuous: true })
  for (const [method, target, body] of [
    ['POST', '/_jobs/replication', { data: { replication: { source: 'secret', target: 'mine' }, user: { name: 'admin', roles: ['_admin'] } } }],
    ['GET', `/_jobs/replication/${encodeURIComponent(id)}`], ['GET', '/_jobs/replication/_list'], ['POST', '/_jobs/_accept', { types: ['replication'] }],
    ['POST', '/_transact', { jobs: { add: [{ type: 'replication', data: {} }] } }]])
    assert.equal((await worker.request(method, target, { body })).status, 403, target)
  assert.ok(!JSON.stringify(await client.ok('GET', '/_scheduler/jobs')).includes('hidden'))
}))

test('a document that cannot be copied does not keep the others', () => withServers(2, async (a, b) => {
  const { client } = a
  await client.ok('PUT', '/source')
  await client.ok('POST', '/source/_bulk_docs', { docs: [{ _id: 'alone' }, { _id: 'p:1' }, { _id: 'p:2' }] })
  await client.put('/source/large/attachment', Buffer.alloc(9_000_000), { headers: { 'Content-Type': 'application/octet-stream' } })
  const params = { create_target: true, create_target_params: { partitioned: true } }
  for (const target of ['target', remote(b, 'target')]) {
    const { history: [session] } = await replicate(a, { source: 'source', target, ...params })
    assert.equal(session.docs_written, 2)
    assert.equal(session.doc_write_failures, 2)
  }
}))

test('many large documents are copied in pieces', () => withServers(2, async (a, b) => {
  await a.client.ok('PUT', '/source')
  for (let n = 0; n < 40; ++n) await a.client.ok('PUT', `/source/d${n}`, { n, text: 'x'.repeat(700_000) })
  for (const [server, body] of [[a, { source: 'source', target: 'local' }], [a, { source: 'source', target: remote(b, 'pushed') }],
    [b, { source: remote(a, 'source'), target: 'pulled' }], [a, { source: 'source', target: 'selected', selector: { n: { $gte: 0 } } }]])
    assert.equal((await replicate(server, { ...body, create_target: true })).history[0].docs_written, 40)
}))

test('changes that are no documents wake nobody for nothing, and those that are wake everybody', () => withServers(1, async ({ client }) => {
  await client.ok('PUT', '/source')
  for (let i = 0; i < 5; ++i) {
    const target = `target${i}`
    await client.ok('POST', '/_replicate', { source: 'source', target, create_target: true, continuous: true })
    await waitFor('the target', async () => (await client.get(`/${target}`)).status === 200)
  }
  for (let n = 0; n < 5; ++n) {
    const { rev } = await client.ok('PUT', `/source/d${n}`, {})
    await client.ok('PUT', `/source/_local/l${n}`, {})
    // Less than the time after which a replication looks by itself.
    for (let i = 0; i < 5; ++i) await waitFor('the document', async () => (await client.get(`/target${i}/d${n}`)).status === 200, { limit: 20_000 })
    if (n === 3) await client.ok('POST', '/source/_purge', { d3: [rev] })
  }
  const { jobs } = await client.ok('GET', '/_scheduler/jobs')
  assert.deepEqual(jobs.map(({ state }) => state), Array(5).fill('running'))
}))

test('a replication goes on when its target was created again, and when it was cancelled and asked for again', () => withServers(1, async ({ client }) => {
  await client.ok('PUT', '/source')
  await client.ok('PUT', '/source/a', {})
  const body = { source: 'source', target: 'target', continuous: true, create_target: true }
  await client.ok('POST', '/_replicate', body)
  const arrives = (id) => waitFor(`${id} in the target`, async () => (await client.get(`/target/${id}`)).status === 200)
  await arrives('a')
  for (let n = 0; n < 5; ++n) {
    await client.ok('POST', '/_replicate', { ...body, cancel: true })
    await client.ok('POST', '/_replicate', body)
    await client.ok('PUT', `/source/again${n}`, {})
    await arrives(`again${n}`)
  }
  await client.ok('POST', '/_replicate', { ...body, cancel: true })
  await client.ok('DELETE', '/target')
  await client.ok('POST', '/_replicate', body)
  await arrives('a')
}))

test('a request that cannot be a replication is refused, and one that fails says why', () => withServers(1, async (server) => {
  const { client } = server
  await client.ok('PUT', '/source')
  for (const body of [{}, { source: 'source' }, { source: '', target: 'x' }, { source: 1, target: 'x' }, { source: 'source', target: 'http://127.0.0.1' },
    { source: 'source', target: 'x', doc_ids: 5 }, { source: 'source', target: 'x', doc_ids: [], selector: {} }, { source: 'source', target: 'x', continuous: 1 },
    { source: { url: 'source', headers: { 'a\nb': 'c' } }, target: 'x' }, []])
    assert.equal((await client.post('/_replicate', body)).status, 400, JSON.stringify(body))
  const fails = async (body) => {
    const { status, json: { error, reason } } = await client.post('/_replicate', body)
    assert.equal(status, 500)
    assert.equal(error, 'replication_failed')
    return reason
  }
  assert.match(await fails({ source: 'none', target: 'source' }), /Database does not exist/)
  assert.match(await fails({ source: 'source', target: 'none' }), /Database does not exist/)
  assert.match(await fails({ source: { ...remote(server, 'source'), auth: { basic: { username, password: 'wrong' } } }, target: 'source' }), /unauthorized/)
  assert.equal((await server.as().post('/_replicate', { source: 'source', target: 'x' })).status, 401)
}))
