// FoundationDB clusters that use TLS, each of a test's own: DIVAN_FDB_PROGRAMS is the directory of fdbserver
// and fdbcli. Invalid files are detected without a cluster.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { Authority, noOpenssl } from './support/certificates.mjs'
import { newStore, onOwnCluster, refused, tlsSettings } from './support/cluster.mjs'
import { runDivan, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const PASSWORD = 'a long word'
const VERIFY_SERVER = 'Check.Valid=1,S.CN=server'

let made
// Shared by all tests: a trusted authority, and an untrusted one.
function certificates() {
  if (!made) {
    const [authority, other] = [new Authority(), new Authority()]
    made = { server: authority.give('server'), client: authority.give('client'), stranger: other.give('stranger') }
    made.encrypted = authority.encrypted(made.client.key, PASSWORD)
  }
  return made
}

const onTlsCluster = (name, body) => onOwnCluster(name, [], body, { tls: certificates, skip: noOpenssl })

async function doJob({ client }, id) {
  await client.ok('PUT', `/_jobs/mail/${id}`, {})
  const [job] = (await client.ok('POST', '/_jobs/mail/_accept', { timeout: 60_000 })).jobs
  await client.ok('POST', `/_jobs/mail/${id}/_finish`, { lock: job.lock })
  assert.equal((await client.ok('GET', `/_jobs/mail/${id}`)).state, 'finished')
}

onTlsCluster('with TLS, nodes write, read and run jobs, also after a restart', async (cluster, start) => {
  const store = { DIVAN_FDB_NAME: 'one' }
  const [a, b] = [await start(store), await start(store)]
  await a.client.ok('PUT', '/shop')
  await a.client.ok('PUT', '/_jobs/mail')
  const feed = await b.client.open('/shop/_changes?feed=continuous&heartbeat=1000')
  const { rev } = await a.client.ok('PUT', '/shop/tea', { text: 'x'.repeat(300_000) }) // more than a TLS record, and than a row
  assert.equal((await feed.row()).id, 'tea')
  feed.close()
  await doJob(b, 'first')
  await a.stop()
  await b.stop()

  // The same with an encrypted key, and with conditions for the cluster's certificate.
  const again = await start({ ...store, DIVAN_FDB_TLS_KEY_FILE: certificates().encrypted, DIVAN_FDB_TLS_PASSWORD: PASSWORD })
  const doc = await again.client.ok('GET', '/shop/tea')
  assert.deepEqual([doc._rev, doc.text.length], [rev, 300_000])
  await doJob(again, 'second')
  await again.stop()
  const strict = await start({ ...store, DIVAN_FDB_TLS_VERIFY_PEERS: VERIFY_SERVER })
  assert.equal((await strict.client.ok('GET', '/shop')).doc_count, 1)
  await strict.stop()

  const { DIVAN_DIVAN_STORE: where, ...settings } = { ...cluster.settings(), ...store }
  const { code, stdout, stderr } = await runDivan(['verify', '--store', where, '--quiet'], { env: settings })
  assert.equal(code, 0, stdout + stderr)
})

onTlsCluster('a node whose certificate or authority does not match ends with a one-line error', async (cluster, start) => {
  const { client, stranger } = certificates()
  const settings = cluster.settings()
  const words = /has not answered within 0\.5 s: is it running, .* accept each other's certificates \(\[fdb\] tls_certificate_file, /
  const cases = {
    'no settings of TLS': tlsSettings({}),
    'no certificate': tlsSettings({ ca: client.ca }),
    'no authority': tlsSettings({ ...client, ca: '' }),
    'another authority': tlsSettings({ ...client, ca: stranger.ca }),
    'a certificate of another authority': tlsSettings({ ...stranger, ca: client.ca }),
    'conditions that are not met': { DIVAN_FDB_TLS_VERIFY_PEERS: VERIFY_SERVER.replace('server', 'another') },
    'invalid conditions': { DIVAN_FDB_TLS_VERIFY_PEERS: 'nonsense' }
  }
  await Promise.all(Object.entries(cases).map(([name, wrong]) => assert.doesNotReject(refused({ ...settings, ...wrong }, words), name)))
  const file = path.join(temporaryDirectory(), 'fdb.cluster')
  await refused({ ...settings, ...tlsSettings({}), DIVAN_DIVAN_STORE: 'fdb:', FDB_CLUSTER_FILE: cluster.file }, words)
  writeFileSync(file, readFileSync(cluster.file, 'utf8').replace(':tls', ''))
  await refused({ ...settings, DIVAN_DIVAN_STORE: `fdb:${file}` }, /has not answered .*: is it running, .* No address there ends in `:tls` /)
  await (await start()).stop()
})

onTlsCluster('a node whose cluster comes back with a certificate of another authority waits for the right one', async (cluster, start) => {
  const node = await start()
  const { client } = node
  await client.ok('PUT', '/shop')
  await cluster.kill()
  cluster.run([], certificates().stranger)
  for (let n = 0; n < 3; ++n) {
    const answer = await client.get('/shop')
    assert.equal(answer.status, 503)
    assert.match(answer.json.reason, /The FoundationDB cluster has not answered for 1 s\./)
  }
  await cluster.kill()
  cluster.run()
  await waitFor('the node to be up', async () => (await client.get('/_up')).status === 200)
  await client.ok('PUT', '/shop/a', {})
  await node.stop()
})

test('cluster: an invalid TLS file is an immediate one-line error when a server starts', { skip: noOpenssl }, async () => {
  const { server, client, encrypted } = certificates()
  const directory = temporaryDirectory()
  const garbage = path.join(directory, 'garbage.pem')
  writeFileSync(garbage, '-----BEGIN CERTIFICATE-----\nno\n')
  const damaged = path.join(directory, 'damaged.pem')
  writeFileSync(damaged, readFileSync(client.ca, 'utf8') + '-----BEGIN CERTIFICATE-----\nno\n')
  const none = path.join(directory, 'none')
  const cluster = path.join(directory, 'fdb.cluster')
  writeFileSync(cluster, 'test:test@127.0.0.1:1:tls\n')
  // [changed settings, the setting that the error names, the error]
  const cases = [
    [{ certificate: none }, 'tls_certificate_file', 'cannot be read: No such file or directory'],
    [{ key: none }, 'tls_key_file', 'cannot be read: No such file or directory'],
    [{ ca: none }, 'tls_ca_file', 'cannot be read: No such file or directory'],
    [{ certificate: garbage }, 'tls_certificate_file', 'has no certificate in PEM'],
    [{ certificate: directory }, 'tls_certificate_file', 'is no file'],
    [{ certificate: client.key }, 'tls_certificate_file', 'has no certificate in PEM'],
    [{ key: garbage }, 'tls_key_file', 'has no key in PEM'],
    [{ key: directory }, 'tls_key_file', 'is no file'],
    [{ ca: garbage }, 'tls_ca_file', 'has no certificate in PEM'],
    [{ ca: damaged }, 'tls_ca_file', 'has a damaged certificate'],
    [{ key: server.key }, 'tls_key_file', `is not the key of the first certificate in ${client.certificate}`],
    [{ key: encrypted }, 'tls_key_file', 'is encrypted, and there is no [fdb] tls_password'],
    [{ key: encrypted, password: 'another word' }, 'tls_key_file', 'is encrypted, and [fdb] tls_password is not its password']
  ]
  await Promise.all(cases.map(async ([{ password = '', ...file }, setting, why]) => {
    const settings = { ...newStore(), DIVAN_DIVAN_STORE: `fdb:${cluster}`, ...tlsSettings({ ...client, ...file }), DIVAN_FDB_TLS_PASSWORD: password }
    const line = `divan: [fdb] ${setting}: ${Object.values(file)[0]} ${why}.\n`
    await refused(settings, new RegExp(`^${line.replaceAll(/[[\].]/g, '\\$&')}$`))
  }))
  // Without settings the FoundationDB client's variables are used.
  const variables = { FDB_TLS_CERTIFICATE_FILE: client.certificate, FDB_TLS_KEY_FILE: server.key, FDB_TLS_CA_FILE: client.ca }
  const settings = { ...newStore(), DIVAN_DIVAN_STORE: `fdb:${cluster}` }
  await refused({ ...settings, ...variables }, /^divan: FDB_TLS_KEY_FILE: \S+ is not the key of /)
  const wrong = { ...variables, FDB_TLS_KEY_FILE: encrypted, FDB_TLS_PASSWORD: 'another word' }
  await refused({ ...settings, ...wrong }, /^divan: FDB_TLS_KEY_FILE: \S+ is encrypted, and FDB_TLS_PASSWORD is not its password\.$/m)
})
