// `divan verify` with intact and damaged directories.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, closeSync, cpSync, openSync, readFileSync, readdirSync, readSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import path from 'node:path'
import { test as anyTest } from 'node:test'
import { binary, onlyEmbedded, runDivan, Server, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const test = onlyEmbedded(anyTest)

async function verify(dataDir) {
  const { code, stdout, stderr } = await runDivan(['verify', dataDir, '--quiet', '--json'])
  assert.equal(stderr, '')
  const result = JSON.parse(stdout)
  assert.equal(code, result.ok ? 0 : 1)
  return result
}

// Flips one bit of a file.
function flip(file, at) {
  const fd = openSync(file, 'r+')
  const byte = Buffer.alloc(1)
  readSync(fd, byte, 0, 1, at)
  byte[0] ^= 1
  writeSync(fd, byte, 0, 1, at)
  closeSync(fd)
}

// Files of a kind in a directory's store, the largest first.
function files(dataDir, extension) {
  const store = path.join(dataDir, 'store')
  return readdirSync(store)
    .filter((name) => name.endsWith(extension))
    .map((name) => path.join(store, name))
    .sort((a, b) => statSync(b).size - statSync(a).size)
}

// A directory of a server that did a bit of everything, with its rows in the log only (false) or in a table, too.
async function makeDirectory(inTables) {
  const dataDir = temporaryDirectory()
  const server = await Server.start({ dataDir })
  const { client } = server
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/shop/_design/by', { views: { n: { map: 'function (doc) { emit(doc.n); emit("x", doc.text); }', reduce: '_count' } } })
  for (let i = 0; i < 5; ++i) {
    const docs = Array.from({ length: 1000 }, (_, n) => ({ _id: `${i}-${n}`, n, text: 'x'.repeat(n === 7 ? 150_000 : 100) }))
    await client.ok('POST', '/shop/_bulk_docs', { docs })
  }
  await client.ok('DELETE', `/shop/1-1?rev=${(await client.ok('GET', '/shop/1-1'))._rev}`)
  await client.ok('PUT', '/shop/_local/a', { n: 1 })
  await client.ok('PUT', '/_jobs/mail')
  for (const id of ['a', 'b', 'c']) await client.ok('PUT', `/_jobs/mail/${id}`, { data: { n: 1 } })
  await client.ok('PUT', '/_workers/mailer/host', { timeout: 60_000 })
  await client.ok('POST', '/_jobs/mail/_accept', { worker: { role: 'mailer', id: 'host' } }).catch(() => client.ok('POST', '/_jobs/mail/_accept', {}))
  const { rows } = await client.ok('GET', '/shop/_design/by/_view/n')
  assert.equal(rows[0].value, 9998)
  await server.stop()
  if (inTables) {
    // At a start, a server writes the rows of the log into a table.
    const again = await Server.start({ dataDir })
    await again.stop()
    assert.ok(files(dataDir, '.sst').length > 0)
  }
  return dataDir
}

test('verify: intact directories pass, before and after a kill, in the log and in tables', async () => {
  for (const inTables of [false, true]) {
    const dataDir = await makeDirectory(inTables)
    const before = readdirSync(path.join(dataDir, 'store'))
    const result = await verify(dataDir)
    assert.deepEqual(result.findings, [])
    assert.deepEqual(result.databases.map(({ name, docs, deleted }) => [name, docs, deleted]), [['_users', 0, 0], ['shop', 5000, 1]])
    assert.ok(result.rows > 20_000)
    assert.deepEqual(readdirSync(path.join(dataDir, 'store')), before)
    const text = await runDivan(['verify', dataDir])
    assert.equal(text.code, 0)
    assert.match(text.stdout, /no findings in \d+ rows of 2 databases\n$/)
    const server = await Server.start({ dataDir })
    const writing = server.client.put('/shop/late', {}).catch(() => {})
    await waitFor('the write', async () => (await server.client.get('/shop/late')).status === 200)
    await writing
    await server.kill()
    assert.deepEqual((await verify(dataDir)).findings, [])
  }
})

test('verify: a flipped bit in a table is found, and the file named', async () => {
  const dataDir = await makeDirectory(true)
  const [table] = files(dataDir, '.sst')
  const { size } = statSync(table)
  for (const at of [10, size >> 1, size - 3]) {
    const copy = path.join(temporaryDirectory(), 'copy')
    cpSync(dataDir, copy, { recursive: true })
    flip(path.join(copy, 'store', path.basename(table)), at)
    const { ok, findings } = await verify(copy)
    assert.equal(ok, false)
    assert.ok(findings.some((text) => text.includes(path.basename(table))), findings.join('\n'))
    const text = await runDivan(['verify', copy, '--quiet'])
    assert.equal(text.code, 1)
    assert.match(text.stdout, /\d+ findings\n$/)
  }
})

test('verify: so is one in the log, and in the manifest', async () => {
  const dataDir = await makeDirectory(false)
  const manifest = path.join(dataDir, 'store', readFileSync(path.join(dataDir, 'store/CURRENT'), 'utf8').trim())
  for (const [file, at, words] of [
    [files(dataDir, '.log')[0], 100_000, /\.log is damaged at byte \d+/],
    [manifest, 20, /MANIFEST-\d+ is damaged at byte \d+/]
  ]) {
    const copy = path.join(temporaryDirectory(), 'copy')
    cpSync(dataDir, copy, { recursive: true })
    flip(path.join(copy, 'store', path.basename(file)), at)
    const { ok, findings } = await verify(copy)
    assert.equal(ok, false)
    assert.match(findings[0], words)
  }
})

test('verify: a table that is missing is found', async () => {
  const dataDir = await makeDirectory(true)
  const [table] = files(dataDir, '.sst')
  writeFileSync(table, '')
  const { findings } = await verify(dataDir)
  assert.ok(findings.some((text) => text.includes(path.basename(table))), findings.join('\n'))
})

// Without root's privileges.
function verifyAsOwner(dataDir) {
  const command = process.getuid() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all', binary] : [binary]
  return new Promise((resolve) => {
    execFile(command[0], [...command.slice(1), 'verify', dataDir, '--quiet'], (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }))
  })
}

test('verify: it does not write, and needs no write permission', async () => {
  const server = await Server.start()
  await server.client.ok('PUT', '/one')
  const { dataDir } = server
  const copy = path.join(temporaryDirectory(), 'copy')
  const store = path.join(copy, 'store')
  cpSync(dataDir, copy, { recursive: true })
  await server.stop()
  rmSync(path.join(store, 'LOCK'))
  const files = readdirSync(store)
  assert.equal((await verifyAsOwner(copy)).code, 0)
  assert.deepEqual(readdirSync(store), files)
  writeFileSync(path.join(store, 'LOCK'), '')
  for (const name of readdirSync(store)) chmodSync(path.join(store, name), 0o444)
  chmodSync(store, 0o555)
  const readOnly = await verifyAsOwner(copy)
  assert.equal(readOnly.code, 0, readOnly.stderr)
  assert.match(readOnly.stdout, /no findings/)
  for (const [place, mode] of [[path.join(store, 'LOCK'), 0o444], [store, 0o755], [copy, 0o755]]) {
    chmodSync(place, 0)
    const { code, stderr } = await verifyAsOwner(copy)
    chmodSync(place, mode)
    assert.equal(code, 1)
    assert.match(stderr, /[Pp]ermission denied/)
  }
})

test('verify: a directory that is in use, of a newer format, or missing', async () => {
  const server = await Server.start({ dataDir: path.join(temporaryDirectory(), 'data') })
  const refused = async (dataDir, words) => {
    const { code, stderr } = await runDivan(['verify', dataDir])
    assert.equal(code, 1)
    assert.match(stderr, words)
  }
  await refused(server.dataDir, /in use by another process/)
  assert.equal((await server.client.get('/_up')).status, 200)
  await refused(temporaryDirectory(), /there is no store/)
  await refused('/no/such/directory', /there is no store/)
  const copy = path.join(temporaryDirectory(), 'copy')
  await server.stop()
  cpSync(server.dataDir, copy, { recursive: true })
  writeFileSync(path.join(copy, 'store/FORMAT'), 'divan embedded store, format 99\n')
  await refused(copy, /format 99 is newer/)
})
