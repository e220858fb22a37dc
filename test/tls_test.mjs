// TLS of the server's own connections: [ssl].
import assert from 'node:assert/strict'
import { createCipheriv, createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import https from 'node:https'
import net from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import tls from 'node:tls'
import { Authority, noOpenssl } from './support/certificates.mjs'
import { runDivan, Server, temporaryDirectory } from './support/server.mjs'
import { waitFor, within } from './support/wait.mjs'

const authority = noOpenssl ? null : new Authority()
const ca = noOpenssl ? null : readFileSync(authority.file)

/** Copies of a certificate and its key, which a test may replace: {DIVAN_SSL_...}. */
function settings(name = 'localhost', more = {}) {
  const directory = temporaryDirectory()
  const files = ['cert', 'key'].map((kind) => path.join(directory, kind))
  const { certificate, key } = authority.give(name)
  copyFileSync(certificate, files[0])
  copyFileSync(key, files[1])
  return { DIVAN_SSL_ENABLE: 'true', DIVAN_SSL_PORT: '0', DIVAN_SSL_CERT_FILE: files[0], DIVAN_SSL_KEY_FILE: files[1], ...more }
}

function withTls(name, more, body) {
  test(`tls: ${name}`, { skip: noOpenssl }, async () => {
    const env = settings('localhost', more)
    const server = await Server.start({ env })
    server.tlsPort = Number(/https:\/\/127\.0\.0\.1:(\d+)/.exec(server.stdout)[1])
    try {
      await body(server, env)
    } finally {
      await server.stop()
    }
  })
}

const connection = (server, more = {}) => ({ host: '127.0.0.1', port: server.tlsPort, servername: 'localhost', ca, ...more })
/** Opens a TLS connection, whose handshake is complete. */
async function connect(server, more) {
  const socket = tls.connect(connection(server, more))
  await within('a handshake', once(socket, 'secureConnect'))
  return socket
}
async function request(server, method, target, { body, agent, headers = {}, tlsOptions = {} } = {}) {
  const options = { ...connection(server, tlsOptions), method, path: target, agent, auth: 'admin:secret', headers }
  const sent = https.request(options)
  sent.end(body)
  const [answer] = await within(`${method} ${target}`, once(sent, 'response'))
  const chunks = []
  for await (const chunk of answer) chunks.push(chunk)
  return { status: answer.statusCode, headers: answer.headers, body: Buffer.concat(chunks), reused: sent.reusedSocket }
}

withTls('requests of all sizes, on connections that are kept', {}, async (server) => {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 })
  assert.equal((await request(server, 'PUT', '/db', { agent })).status, 201)
  for (const size of [0, 1, 16_383, 16_384, 16_385, 100_000, 5_000_000]) {
    const bytes = randomBytes(size)
    const put = await request(server, 'PUT', `/db/a${size}/bytes`, { agent, body: bytes, headers: { 'Content-Type': 'application/octet-stream' } })
    assert.equal(put.status, 201, `${size}: ${put.body}`)
    assert.equal(put.reused, true)
    const got = await request(server, 'GET', `/db/a${size}/bytes`, { agent })
    assert.ok(got.body.equals(bytes), `${size}`)
  }
  agent.destroy()
  // The port without TLS serves the same.
  assert.equal((await server.client.ok('GET', '/db')).doc_count, 7)
})

withTls('many clients at once, and a client that reads slowly', {}, async (server) => {
  await server.client.ok('PUT', '/db')
  const docs = Array.from({ length: 3000 }, (_, n) => ({ _id: `d${n}`, text: 'x'.repeat(2000) }))
  await server.client.ok('POST', '/db/_bulk_docs', { docs })
  const slow = await connect(server)
  slow.write(`GET /db/_all_docs?include_docs=true HTTP/1.1\r\nHost: h\r\nAuthorization: Basic ${btoa('admin:secret')}\r\nConnection: close\r\n\r\n`)
  slow.pause()
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => request(server, 'GET', `/db/d${n}`)))
  for (const [n, { body }] of answers.entries()) assert.equal(JSON.parse(body)._id, `d${n}`)
  let text = ''
  slow.setEncoding('utf8').on('data', (part) => (text += part))
  slow.resume()
  await within('the end of the slow response', once(slow, 'end'))
  assert.equal(text.match(/"id":"d\d+"/g).length, 3000)
  slow.destroy()
})

withTls('a feed, whose end the server notices', {}, async (server) => {
  await server.client.ok('PUT', '/db')
  const connections = await server.metric('divan_http_connections')
  const feed = await connect(server)
  let text = ''
  feed.setEncoding('utf8').on('data', (part) => (text += part))
  feed.write(`GET /db/_changes?feed=continuous&heartbeat=100 HTTP/1.1\r\nHost: h\r\nAuthorization: Basic ${btoa('admin:secret')}\r\n\r\n`)
  await waitFor('the head', () => text.includes('200 OK'))
  await server.client.ok('PUT', '/db/a', {})
  await waitFor('the change', () => text.includes('"id":"a"'))
  await waitFor('the connection', async () => (await server.metric('divan_http_connections')) === connections + 1)
  feed.destroy()
  await waitFor('its end', async () => (await server.metric('divan_http_connections')) === connections)
})

withTls('cookies and locations know that the client uses TLS', {}, async (server) => {
  const body = JSON.stringify({ name: 'admin', password: 'secret' })
  const login = await request(server, 'POST', '/_session', { body, headers: { 'Content-Type': 'application/json' } })
  assert.match(login.headers['set-cookie'][0], /; Secure/)
  const created = await request(server, 'PUT', '/db', { headers: { Host: 'db.example' } })
  assert.equal(created.headers.location, 'https://db.example/db')
})

withTls('bytes that are no TLS, and handshakes that stop, end only their own connections', {}, async (server) => {
  const silent = net.connect(server.tlsPort, '127.0.0.1')
  await once(silent, 'connect')
  for (const bytes of ['GET / HTTP/1.1\r\n\r\n', Buffer.from('16030100', 'hex'), Buffer.alloc(5000, 0xff)]) {
    const socket = net.connect(server.tlsPort, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(bytes)
    if (bytes.length > 4) await within('the end of the connection', new Promise((resolve) => socket.on('close', resolve)))
    else socket.destroy()
  }
  assert.equal((await request(server, 'GET', '/_up')).status, 200)
  silent.destroy()
})

withTls('only the versions of the settings', { DIVAN_SSL_TLS_VERSIONS: "['tlsv1.3']" }, async (server) => {
  assert.equal((await connect(server)).getProtocol(), 'TLSv1.3')
  await assert.rejects(connect(server, { maxVersion: 'TLSv1.2' }), /alert protocol version|unsupported protocol|ECONNRESET/)
})

withTls('older versions than TLS 1.2 are refused; its ciphers are those of the settings', { DIVAN_SSL_CIPHERS: 'ECDHE-ECDSA-AES256-GCM-SHA384' }, async (server) => {
  await assert.rejects(connect(server, { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }))
  const socket = await connect(server, { maxVersion: 'TLSv1.2' })
  assert.equal(socket.getCipher().name, 'ECDHE-ECDSA-AES256-GCM-SHA384')
  await assert.rejects(connect(server, { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' }))
})

withTls('a new certificate is used without a restart, and an invalid one is not', {}, async (server, env) => {
  const subject = async () => {
    const socket = await connect(server, { checkServerIdentity: () => undefined })
    const { CN } = socket.getPeerCertificate().subject
    socket.destroy()
    return CN
  }
  const old = await connect(server)
  assert.equal(await subject(), 'localhost')
  const { certificate, key } = authority.give('renewed')
  for (const [from, to] of [[certificate, env.DIVAN_SSL_CERT_FILE], [key, env.DIVAN_SSL_KEY_FILE]]) {
    copyFileSync(from, `${to}.new`)
    renameSync(`${to}.new`, to)
  }
  await waitFor('the new certificate', async () => (await subject()) === 'renewed')
  writeFileSync(env.DIVAN_SSL_CERT_FILE, 'nonsense')
  await waitFor('the error in the log', async () => {
    assert.equal(await subject(), 'renewed')
    return server.log.includes('The previous TLS certificate stays in use.')
  })
  let answer = ''
  old.setEncoding('utf8').on('data', (part) => (answer += part))
  old.write('GET /_up HTTP/1.1\r\nHost: h\r\n\r\n')
  await waitFor('an answer on the old connection', () => answer.includes('"status":"ok"'))
})

test('tls: invalid settings are errors of one line at the start', { skip: noOpenssl }, async () => {
  const other = authority.give('other')
  const broken = path.join(temporaryDirectory(), 'broken')
  writeFileSync(broken, 'nonsense')
  for (const [more, reason] of [
    [{ DIVAN_SSL_CERT_FILE: '' }, /^divan: \[ssl\] enable needs cert_file and key_file\.$/],
    [{ DIVAN_SSL_CERT_FILE: '/nowhere' }, /^divan: TLS: cannot read the certificate \/nowhere: .+\.$/],
    [{ DIVAN_SSL_CERT_FILE: broken }, /^divan: TLS: cannot read the certificate .*broken: .+\.$/],
    [{ DIVAN_SSL_KEY_FILE: other.key }, /^divan: TLS: cannot use the key .*: key values mismatch\.$/],
    [{ DIVAN_SSL_KEY_FILE: authority.encrypted(other.key, 'word') }, /^divan: TLS: cannot use the key .+\.$/],
    [{ DIVAN_SSL_CIPHERS: 'nothing' }, /^divan: TLS: invalid ciphers nothing: no cipher match\.$/],
    [{ DIVAN_SSL_TLS_VERSIONS: 'tlsv1' }, /^divan: Setting \[ssl\] tls_versions = tlsv1 is invalid; expected tlsv1\.2, tlsv1\.3, or both\.$/],
    [{ DIVAN_SSL_TLS_VERSIONS: ',' }, /^divan: Setting \[ssl\] tls_versions is empty; expected/]
  ]) {
    const { code, stderr } = await runDivan(['serve', '--data-dir', temporaryDirectory(), '--port', '0'], { env: settings('localhost', more) })
    assert.equal(code, 1)
    assert.match(stderr.trim(), reason)
  }
})

/** A record of TLS 1.3 that the client of `secret` sends as its record `number` (RFC 8446, section 5.2), with AES-128-GCM and SHA-256. */
function record(secret, number, type, content) {
  const expand = (label, size) => {
    const name = Buffer.from(`tls13 ${label}`)
    const info = Buffer.concat([Buffer.from([0, size, name.length]), name, Buffer.from([0, 1])])
    return createHmac('sha256', secret).update(info).digest().subarray(0, size)
  }
  const nonce = Buffer.from(expand('iv', 12))
  nonce[11] ^= number
  const size = content.length + 1 + 16
  const head = Buffer.from([23, 3, 3, size >> 8, size & 255])
  const cipher = createCipheriv('aes-128-gcm', expand('key', 16), nonce).setAAD(head)
  return Buffer.concat([head, cipher.update(Buffer.concat([content, Buffer.from([type])])), cipher.final(), cipher.getAuthTag()])
}

withTls('a client that sends a part of a message keeps nothing busy', { DIVAN_CHTTPD_SEND_TIMEOUT: '1000' }, async (server) => {
  await request(server, 'PUT', '/db')
  const raw = net.connect(server.tlsPort, '127.0.0.1')
  const socket = tls.connect({ socket: raw, servername: 'localhost', ca, ciphers: 'TLS_AES_128_GCM_SHA256', minVersion: 'TLSv1.3' })
  let secret
  socket.on('keylog', (line) => {
    const [name, , value] = line.toString().trim().split(' ')
    if (name === 'CLIENT_TRAFFIC_SECRET_0') secret = Buffer.from(value, 'hex')
  })
  socket.on('error', () => {})
  await within('a handshake', once(socket, 'secureConnect'))
  const feed = `GET /db/_changes?feed=continuous&heartbeat=100&since=now HTTP/1.1\r\nHost: h\r\nAuthorization: Basic ${btoa('admin:secret')}\r\n\r\n`
  // The second one begins a KeyUpdate, during which OpenSSL does not write.
  raw.write(Buffer.concat([record(secret, 0, 23, Buffer.from(feed)), record(secret, 1, 22, Buffer.from('18000001', 'hex'))]))
  // As nothing can be sent to it, it is disconnected like one that does not read.
  await within('the end of the connection', once(raw, 'close'))
  assert.equal((await request(server, 'GET', '/db')).status, 200)
})
