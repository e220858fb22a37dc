// To which addresses jobs are delivered, proxies and certificates. docs/delivery.md
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import { test } from 'node:test'
import { Authority, noOpenssl } from './support/certificates.mjs'
import { ALLOWED, newType, withReceiver } from './support/delivery.mjs'
import { Receiver, redirect } from './support/receiver.mjs'
import { listening } from './support/replication.mjs'
import { Server, testWithServer } from './support/server.mjs'
import { pause, waitFor } from './support/wait.mjs'

// Why a request was refused by the rules, and not by the network.
const REFUSED = /public|allow|den(y|ied)/i

// A test with a server that has these settings, and with a receiver.
const withSettings = (name, env, body) =>
  withReceiver((title, run) => testWithServer(title, { env }, run))(name, body)

// Sends one job to the URL and returns it at its end.
async function send(server, url) {
  const jobs = await newType(server, url, { timeout: 5000 }, { max_attempts: 1 })
  await jobs.add('a')
  return waitFor(`the end of a job for ${url}`, async () => {
    const job = await jobs.get('a')
    return ['finished', 'failed'].includes(job.state) && job
  })
}
async function assertSent(server, ...urls) {
  for (const url of urls) {
    const { state, last_error: error } = await send(server, url)
    assert.equal(state, 'finished', `${url}: ${error}`)
  }
}
async function assertRefused(server, ...urls) {
  for (const url of urls) {
    const { state, failures, last_error: error } = await send(server, url)
    assert.deepEqual([state, failures], ['failed', 1], url)
    assert.match(error, REFUSED, url)
    assert.ok(error.includes(new URL(url).hostname.replace(/[[\]]/g, '')), `${url}: ${error}`)
  }
}
const configure = (server, key, value) => server.client.ok('PUT', `/_node/_local/_config/deliver/${key}`, JSON.stringify(value))

withSettings('addresses that are not public are refused', {}, async (server, receiver) => {
  await assertRefused(server, receiver.url(), receiver.url('/', 'localhost'), `http://[::1]:${receiver.port}/`,
    'http://169.254.169.254/latest/meta-data', 'http://10.0.0.1/', 'http://172.16.0.1/', 'http://192.168.0.1/', 'http://100.64.0.1/',
    'http://0.0.0.0/', 'http://224.0.0.1/', 'http://255.255.255.255/', 'http://[::]/', 'http://[fe80::1]/', 'http://[fd00::1]/', 'https://127.0.0.1/')
  assert.equal(receiver.requests.length, 0)
})

withSettings('other forms of such addresses are refused', {}, async (server, receiver) => {
  const { port } = receiver
  for (const host of ['127.1', '2130706433', '0x7f000001', '0177.0.0.1', '127.0.0.2', '0', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]',
    '[64:ff9b::7f00:1]', '[2002:7f00:1::1]', 'LOCALHOST', 'localhost.']) {
    const type = { max_attempts: 1, deliver: { url: `http://${host}:${port}/`, timeout: 5000 } }
    const name = `form${host.replace(/\W/g, '-')}`
    // Some are not valid in a URL.
    const { status, json } = await server.client.put(`/_jobs/${name}`, type)
    if (status === 400) {
      assert.match(json.reason, /url/)
      continue
    }
    await server.client.ok('PUT', `/_jobs/${name}/a`, {})
    await waitFor(`the failure for ${host}`, async () => (await server.client.ok('GET', `/_jobs/${name}/a`)).state === 'failed')
  }
  assert.equal(receiver.requests.length, 0)
})

withSettings('an address is allowed by a network', { DIVAN_DELIVER_ALLOW: '10.1.0.0/16, 127.0.0.0/30' }, async (server, receiver) => {
  await assertSent(server, receiver.url())
  await assertRefused(server, 'http://127.0.0.4/', 'http://10.2.0.1/', `http://[::1]:${receiver.port}/`)
})

withSettings('a host name is allowed with all its addresses', { DIVAN_DELIVER_ALLOW: 'localhost' }, async (server, receiver) => {
  await assertSent(server, receiver.url('/', 'localhost'))
  await assertRefused(server, receiver.url())
})

withSettings('a name of the network is allowed by its address', ALLOWED, async (server, receiver) => {
  await assertSent(server, receiver.url('/', 'localhost'))
})

withSettings('`*` allows all', { DIVAN_DELIVER_ALLOW: '*' }, async (server, receiver) => {
  await assertSent(server, receiver.url(), receiver.url('/', 'localhost'))
})

withSettings('with `deny = *` only what is allowed remains', { ...ALLOWED, DIVAN_DELIVER_DENY: '*' }, async (server, receiver) => {
  await assertSent(server, receiver.url())
  await assertRefused(server, 'http://1.1.1.1:9/', 'http://127.0.0.2/')
})

withSettings('`deny` refuses public addresses, and nothing that is allowed', { ...ALLOWED, DIVAN_DELIVER_DENY: '1.1.1.0/24,127.0.0.0/8,localhost' },
  async (server, receiver) => {
    await assertSent(server, receiver.url(), receiver.url('/', 'localhost'))
    await assertRefused(server, 'http://1.1.1.1:9/', 'http://127.0.0.2/')
  })

withSettings('changes of the rules hold for new connections', {}, async (server, receiver) => {
  await assertRefused(server, receiver.url())
  await configure(server, 'allow', '127.0.0.1')
  await assertSent(server, receiver.url())
  await configure(server, 'allow', '')
  const other = await Receiver.start()
  try {
    await assertRefused(server, other.url())
    // Those that exist, within a minute.
    await waitFor('the end of the old connections', async () => {
      const { state } = await send(server, receiver.url())
      return state === 'failed' || pause(1000)
    })
    await configure(server, 'allow', '10.0.0.0/8,127.0.0.1')
    await assertSent(server, other.url(), receiver.url())
  } finally {
    await other.stop()
  }
})

withSettings('invalid settings are refused', {}, async (server) => {
  const bad = {
    allow: ['10.0.0.0/33', '1.2.3.4/x', '::1/129', 'a b'], deny: ['10.0.0.0/-1', 'http://example.com/'],
    max_requests: ['0', '10001', 'x'], max_requests_per_host: ['0', '10001'], proxy: ['ftp://example.com/', 'x y']
  }
  for (const [key, values] of Object.entries(bad)) {
    for (const value of values) {
      const { status } = await server.client.put(`/_node/_local/_config/deliver/${key}`, JSON.stringify(value))
      assert.equal(status, 400, `${key}: ${value}`)
    }
  }
  for (const value of ['', 'hooks.example.com,*.example.com, 10.1.0.0/16,::1,*']) await configure(server, 'allow', value)
})

withSettings('redirects to refused addresses are refused', ALLOWED, async (server, receiver) => {
  for (const target of [`http://[::1]:${receiver.port}/`, 'http://169.254.169.254/latest/meta-data', 'http://127.0.0.2/']) {
    receiver.answer = redirect(target)
    const before = receiver.requests.length
    const { state, last_error: error } = await send(server, receiver.url('/hook'))
    assert.equal(state, 'failed')
    assert.match(error, REFUSED)
    assert.deepEqual(receiver.requests.slice(before).map(({ url }) => url), ['/hook'])
  }
})

// The environment's exceptions must not send requests past the proxy.
withSettings('through a proxy, only the URL is checked', { NO_PROXY: '*', no_proxy: '*' }, async (server) => {
  const paths = []
  const proxy = http.createServer((request, response) => {
    paths.push(request.url)
    request.resume().on('end', () => response.end())
  })
  await listening(proxy, async (port) => {
    await configure(server, 'proxy', `http://127.0.0.1:${port}`)
    // Before there is a connection to the proxy, for which older rules might still hold.
    await assertRefused(server, 'http://10.0.0.1/', 'http://127.0.0.1/')
    await configure(server, 'deny', 'hooks.example.com')
    await assertRefused(server, 'http://hooks.example.com/a')
    await configure(server, 'deny', '*.example.com')
    await assertRefused(server, 'http://hooks.example.com/a')
    await configure(server, 'allow', 'hooks.example.com')
    await assertSent(server, 'http://hooks.example.com/a', 'http://hooks.example.org/b')
    assert.deepEqual(paths, ['http://hooks.example.com/a', 'http://hooks.example.org/b'])
  })
})

test('delivery_addresses: certificates are verified', { skip: noOpenssl }, async () => {
  const authority = new Authority()
  const read = (name) => {
    const { certificate, key } = authority.give(name)
    return { cert: readFileSync(certificate), key: readFileSync(key) }
  }
  const [own, others] = [await Receiver.start({ tls: read('localhost') }), await Receiver.start({ tls: read('hooks.example.com') })]
  const server = await Server.start({ env: { DIVAN_DELIVER_ALLOW: 'localhost' } })
  try {
    const url = own.url('/', 'localhost')
    const unknown = await send(server, url)
    assert.equal(unknown.state, 'failed')
    assert.match(unknown.last_error, /certificate/i)
    await configure(server, 'ssl_trusted_certificates_file', authority.file)
    await assertSent(server, url)
    const wrongName = await send(server, others.url('/', 'localhost'))
    assert.equal(wrongName.state, 'failed')
    assert.deepEqual([own.requests.length, others.requests.length], [1, 0])
  } finally {
    await server.stop()
    await own.stop()
    await others.stop()
  }
})
