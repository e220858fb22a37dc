// Backups of a running server, and restores.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { backUp, restoreInto, run, withRestored } from './support/backup.mjs'
import { startProxy } from './support/proxy.mjs'
import { authorization } from './support/raw.mjs'
import { binary, runDivan, Server, shareServer, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer()

const VIEWS = {
  views: { by: { map: 'function (doc) { emit(doc.kind, doc.n); }', reduce: '_stats' }, ids: { map: 'function (doc) { emit(doc._id); }' } }
}

// Creates a database with all kinds of contents.
async function fillDatabase(client, db) {
  await client.ok('PUT', `/${db}`)
  await client.ok('PUT', `/${db}/_revs_limit`, 7)
  await client.ok('PUT', `/${db}/_security`, { admins: { names: ['ann'], roles: [] }, members: { names: [], roles: ['crew'] } })
  await client.ok('PUT', `/${db}/_design/all`, VIEWS)
  const docs = Array.from({ length: 300 }, (_, n) => ({ _id: `doc${n}`, n, kind: ['a', 'ü', null][n % 3] }))
  await client.ok('POST', `/${db}/_bulk_docs`, { docs })
  await client.ok('PUT', `/${db}/large`, { text: 'x'.repeat(300_000) })
  await client.ok('PUT', `/${db}/_local/place`, { text: 'l'.repeat(200_000) })
  await client.ok('PUT', `/${db}/_local/gone`, {}).then(({ rev }) => client.ok('DELETE', `/${db}/_local/gone?rev=${rev}`))
  const conflicts = [
    { _id: 'conflicted', _rev: '3-c', _revisions: { start: 3, ids: ['c', 'b', 'a'] }, n: 1 },
    { _id: 'conflicted', _rev: '2-x', _revisions: { start: 2, ids: ['x', 'a'] }, n: 2 },
    { _id: 'conflicted', _rev: '4-d', _deleted: true, _revisions: { start: 4, ids: ['d', 'z', 'y', 'a'] } },
    { _id: 'loser-last', _rev: '5-b', _revisions: { start: 5, ids: ['b'] }, big: 'y'.repeat(100_000) }
  ]
  await client.ok('POST', `/${db}/_bulk_docs`, { new_edits: false, docs: conflicts })
  await client.ok('POST', `/${db}/_bulk_docs`, { new_edits: false, docs: [{ _id: 'loser-last', _rev: '1-a', n: 3 }] })
  let { rev } = await client.ok('PUT', `/${db}/changed`, { v: 0 })
  for (let v = 1; v < 12; ++v) rev = (await client.ok('PUT', `/${db}/changed?rev=${rev}`, { v })).rev
  await client.ok('DELETE', `/${db}/doc7?rev=${(await client.ok('GET', `/${db}/doc7`))._rev}`)
}

// All of it that a client can read.
async function look(client, db) {
  const requests = [
    '_all_docs?include_docs=true&conflicts=true',
    '_changes?style=all_docs&include_docs=true&conflicts=true&attachments=false',
    '_local_docs?include_docs=true',
    '_local/place',
    '_security',
    '_revs_limit',
    'conflicted?open_revs=all&revs=true',
    'changed?revs=true',
    'loser-last?revs=true&conflicts=true',
    '_design/all/_view/by?group=true',
    '_design/all/_view/ids'
  ]
  const seen = {}
  for (const target of requests) {
    const headers = { Accept: 'application/json' }
    seen[target] = (await client.request('GET', `/${db}/${target}`, { headers })).text
  }
  const { db_name, ...info } = await client.ok('GET', `/${db}`)
  return { ...seen, info: JSON.stringify(info) }
}

it('everything comes back, in a new directory and in a running server', async (server) => {
  const { client } = server
  await fillDatabase(client, 'full')
  await client.ok('PUT', '/_jobs/mail')
  await client.ok('PUT', '/_jobs/mail/a', { data: { to: 'ann' } })
  const before = await look(client, 'full')
  assert.match(before['_changes?style=all_docs&include_docs=true&conflicts=true&attachments=false'], /"deleted":true/)
  const file = await backUp(server)

  await withRestored(file, async (restored) => {
    assert.deepEqual(await look(restored.client, 'full'), before)
    assert.equal((await restored.client.ok('GET', '/')).uuid, (await client.ok('GET', '/')).uuid)
    assert.deepEqual((await restored.client.ok('GET', '/_jobs/mail/a')).data, { to: 'ann' })
    await checkGoesOn(restored.client, 'full')
  })

  await restoreInto(server, file, '--database', 'full', '--as', 'again')
  assert.deepEqual(await look(client, 'again'), before)
  await checkGoesOn(client, 'again')
  assert.deepEqual(await look(client, 'full'), before)
})

// Sequences that clients have stored are still valid, and later ones are greater.
async function checkGoesOn(client, db) {
  const { last_seq } = await client.ok('GET', `/${db}/_changes`)
  assert.deepEqual((await client.ok('GET', `/${db}/_changes?since=${last_seq}`)).results, [])
  await client.ok('PUT', `/${db}/doc7`, { kind: 'new', n: 1000 })
  const { results } = await client.ok('GET', `/${db}/_changes?since=${last_seq}`)
  assert.deepEqual(results.map(({ id }) => id), ['doc7'])
  assert.ok(parseInt(results[0].seq) > parseInt(last_seq), `${results[0].seq} after ${last_seq}`)
  const { rows } = await client.ok('GET', `/${db}/_design/all/_view/by?key="new"&reduce=false`)
  assert.deepEqual(rows, [{ id: 'doc7', key: 'new', value: 1000 }])
}

test('backup: a database moves to a newer server, and its sequences continue', async () => {
  const old = await Server.start()
  const young = await Server.start()
  await fillDatabase(old.client, 'moved')
  for (let n = 0; n < 50; ++n) await old.client.ok('POST', '/moved', { n })
  const before = await look(old.client, 'moved')
  const { results: updates } = await young.client.ok('GET', '/_db_updates')
  assert.deepEqual(new Set(updates.map(({ db_name }) => db_name)), new Set(['_users']))
  const feed = await young.client.open('/_db_updates?feed=continuous&since=now')
  await restoreInto(young, await backUp(old))
  assert.deepEqual(await look(young.client, 'moved'), before)
  const { db_name, type } = await feed.row()
  assert.deepEqual([db_name, type], ['moved', 'created'])
  feed.close()
  await checkGoesOn(young.client, 'moved')
  await old.stop()
  await young.stop()
})

test('backup: users move to a newer server, unless that has users', async () => {
  const old = await Server.start()
  const young = await Server.start()
  const add = async (server, name) => {
    await server.client.ok('PUT', '/_node/_local/_config/chttpd_auth/iterations', '"10"')
    await server.client.ok('PUT', `/_users/org.couchdb.user:${name}`, { name, type: 'user', roles: [], password: 'pw' })
  }
  await add(old, 'ann')
  await old.client.ok('PUT', '/one')
  await old.client.ok('PUT', '/two')
  const file = await backUp(old)
  await restoreInto(young, file)
  assert.deepEqual(await young.client.ok('GET', '/_all_dbs'), ['_users', 'one', 'two'])
  assert.equal((await young.as('ann:pw').get('/_session')).json.userCtx.name, 'ann')

  const other = await Server.start()
  await add(other, 'bob')
  const { code, stderr } = await run(other, ['restore', file])
  assert.equal(code, 1)
  assert.match(stderr, /Database _users exists already/)
  assert.deepEqual(await other.client.ok('GET', '/_all_dbs'), ['_users'])
  assert.equal((await other.as('bob:pw').get('/_session')).status, 200)
  for (const server of [old, young, other]) await server.stop()
})

testWithServer('a backup during writes shows one moment', {}, async (server) => {
  const { client } = server
  await client.ok('PUT', '/pairs')
  // Enough rows that a backup takes a while.
  for (let i = 0; i < 10; ++i) {
    const docs = Array.from({ length: 2000 }, (_, n) => ({ _id: `m${i}-${n}`, text: 'x'.repeat(500) }))
    await client.ok('POST', '/pairs/_bulk_docs', { docs })
  }
  let writing = true
  let rounds = 0
  // Two documents that always change together: the first and (nearly) the last one of the database.
  const writer = async (w) => {
    let revs = [undefined, undefined]
    for (let n = 0; writing; ++n, ++rounds) {
      const docs = [`a${w}`, `z${w}`].map((_id, i) => ({ _id, _rev: revs[i], n }))
      revs = (await client.ok('POST', '/pairs/_bulk_docs', { docs })).map(({ rev }) => rev)
    }
  }
  const writers = [0, 1, 2].map(writer)
  await waitFor('writes', () => rounds > 20)
  const files = []
  for (let i = 0; i < 3; ++i) files.push(await backUp(server))
  writing = false
  await Promise.all(writers)
  let last = -1
  for (const file of files) {
    await withRestored(file, async (restored) => {
      for (const w of [0, 1, 2]) {
        const a = await restored.client.ok('GET', `/pairs/a${w}`)
        const z = await restored.client.ok('GET', `/pairs/z${w}`)
        assert.equal(a.n, z.n)
      }
      const { n } = await restored.client.ok('GET', '/pairs/a0')
      assert.ok(n > last)
      last = n
      assert.equal((await restored.client.ok('GET', '/pairs')).doc_count, 20_006)
      assert.equal((await restored.client.ok('GET', '/pairs/_changes')).results.length, 20_006)
    })
  }
})

it('no existing database is replaced, and then none is restored', async (server) => {
  await server.client.ok('PUT', '/one')
  await server.client.ok('PUT', '/two')
  const file = await backUp(server)
  await server.client.ok('DELETE', '/one')
  const { code, stderr } = await run(server, ['restore', file, '--database', 'one', '--database', 'two'])
  assert.equal(code, 1)
  assert.match(stderr, /file_exists: Database two exists already/)
  assert.equal((await server.client.get('/one')).status, 404)
  await restoreInto(server, file, '--database', 'one')
  assert.equal((await server.client.get('/one')).status, 200)
  const unknown = await run(server, ['restore', file, '--database', 'three'])
  assert.equal(unknown.code, 1)
  assert.match(unknown.stderr, /The backup has no database three/)
  const unclear = await run(server, ['restore', file, '--as', 'four'])
  assert.equal(unclear.code, 1)
  const illegal = await run(server, ['restore', file, '--database', 'one', '--as', 'Four'])
  assert.match(illegal.stderr, /illegal_database_name/)
})

it('damaged and truncated files are refused everywhere, and leave nothing', async (server) => {
  await server.client.ok('PUT', '/damaged')
  const docs = Array.from({ length: 3000 }, (_, n) => ({ _id: `d${n}`, n, text: 'x'.repeat(200) }))
  await server.client.ok('POST', '/damaged/_bulk_docs', { docs })
  const whole = readFileSync(await backUp(server))
  const flipped = Buffer.from(whole)
  flipped[whole.length >> 1] ^= 1
  const bad = { cut: [whole.subarray(0, whole.length - 1), /truncated/], flipped: [flipped, /checksum of block \d+ is wrong/], other: [Buffer.from('PK3'), /is not a backup of Divan/] }
  const directory = temporaryDirectory()
  for (const [name, [bytes, words]] of Object.entries(bad)) {
    const file = path.join(directory, name)
    writeFileSync(file, bytes)
    const dataDir = path.join(directory, `of-${name}`)
    const offline = await runDivan(['restore', file, '--quiet', '--data-dir', dataDir])
    assert.equal(offline.code, 1)
    assert.match(offline.stderr, words)
    assert.ok(!existsSync(dataDir))
    const online = await run(server, ['restore', file, '--database', 'damaged', '--as', `of-${name}`])
    assert.equal(online.code, 1)
    assert.match(online.stderr, words)
  }
  assert.deepEqual((await server.client.ok('GET', '/_all_dbs')).filter((name) => name.startsWith('of-')), [])
})

it('a directory that is not empty is not changed', async (server) => {
  const file = await backUp(server)
  const dataDir = temporaryDirectory()
  writeFileSync(path.join(dataDir, 'precious'), '')
  const { code, stderr } = await runDivan(['restore', file, '--data-dir', dataDir])
  assert.equal(code, 1)
  assert.match(stderr, /is not empty/)
  assert.deepEqual(readdirSync(dataDir), ['precious'])
  // What an empty file system has.
  const mounted = temporaryDirectory()
  mkdirSync(path.join(mounted, 'lost+found'))
  const restored = await runDivan(['restore', file, '--quiet', '--data-dir', mounted])
  assert.equal(restored.code, 0, restored.stderr)
  assert.deepEqual(readdirSync(mounted).sort(), ['lost+found', 'store'])
  const empty = path.join(temporaryDirectory(), 'file')
  writeFileSync(empty, '')
  assert.match((await runDivan(['restore', file, '--data-dir', empty])).stderr, /Data directory .*file: File exists/)
  // The rows of a killed restore are not visible.
  const killed = temporaryDirectory()
  mkdirSync(path.join(killed, 'store.restoring'))
  const served = await runDivan(['serve', '--data-dir', killed, '--port', '0'])
  assert.equal(served.code, 1)
  assert.match(served.stderr, /is being restored/)
  for (const args of [['restore', file, '--data-dir', killed], ['verify', killed]]) {
    const again = await runDivan(args)
    assert.equal(again.code, 1)
    assert.match(again.stderr, /is being restored into it, .* remove .*store\.restoring and restore again/)
  }
  assert.deepEqual(readdirSync(killed), ['store.restoring'])
})

it('a backup file appears when it is complete', async (server) => {
  const file = await backUp(server)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const again = await run(server, ['backup', file])
  assert.equal(again.code, 1)
  assert.match(again.stderr, /already exists/)
  const { client } = server
  await client.ok('PUT', '/filler')
  await client.ok('POST', '/filler/_bulk_docs', { docs: Array.from({ length: 2000 }, () => ({ text: 'x'.repeat(1000) })) })
  const proxy = await startProxy(server, { onAnswer: (bytes) => (bytes > 1_000_000 ? 'cut' : undefined) })
  const directory = temporaryDirectory()
  const cut = await run(server, ['backup', path.join(directory, 'cut')], proxy.url)
  proxy.close()
  assert.equal(cut.code, 1)
  assert.notEqual(cut.stderr, '')
  assert.deepEqual(readdirSync(directory), [])
  const piped = await runDivan(['backup', '-', '--quiet', '--url', server.url, '--user', server.credentials])
  assert.ok(piped.stdout.startsWith('DIVANBAK'))
})

// Runs `divan backup` through a shell: {code, stderr}.
function shell(server, command) {
  const env = { ...process.env, DIVAN_URL: server.url, DIVAN_USER: server.credentials }
  return new Promise((resolve) => {
    execFile('/bin/sh', ['-c', command, binary], { env }, (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stderr }))
  })
}

it('two backups into one file: one succeeds, the other fails with an error', async (server) => {
  const { client } = server
  await client.ok('PUT', '/twice')
  const docs = Array.from({ length: 2000 }, () => ({ text: 'x'.repeat(1000) }))
  await client.ok('POST', '/twice/_bulk_docs', { docs })
  const directory = temporaryDirectory()
  const file = path.join(directory, 'both')
  // Both have started before either ends.
  let asking = 0
  const waiting = []
  const proxy = await startProxy(server, {
    onRequest: () => {
      if (++asking === 2) waiting.forEach((go) => go())
      return asking < 2 ? new Promise((resolve) => waiting.push(resolve)) : undefined
    }
  })
  const both = await Promise.all([1, 2].map(() => run(server, ['backup', file], proxy.url)))
  proxy.close()
  assert.deepEqual(both.map(({ code }) => code).sort(), [0, 1])
  assert.match(both.find(({ code }) => code === 1).stderr, /Cannot create .*: File exists/)
  assert.deepEqual(readdirSync(directory), ['both'])
  await withRestored(file, async (restored) => {
    assert.equal((await restored.client.ok('GET', '/twice')).doc_count, 2000)
  })
})

it('a backup to an invalid file fails', async (server) => {
  const directory = temporaryDirectory()
  const nameless = await shell(server, `cd ${directory} && "$0" backup --quiet ""`)
  assert.equal(nameless.code, 1)
  assert.match(nameless.stderr, /name is empty/)
  assert.deepEqual(readdirSync(directory), [])
  const closed = await shell(server, '"$0" backup --quiet - >&-')
  assert.equal(closed.code, 1)
  assert.match(closed.stderr, /Cannot write to standard output/)
})

it('a restore with --data-dir ignores the server in the environment', async (server) => {
  await server.client.ok('PUT', '/told')
  const file = await backUp(server)
  await server.client.ok('DELETE', '/told')
  const env = { DIVAN_URL: server.url, DIVAN_USER: server.credentials }
  const dataDir = path.join(temporaryDirectory(), 'new')
  const offline = await runDivan(['restore', file, '--quiet', '--data-dir', dataDir], { env })
  assert.equal(offline.code, 0, offline.stderr)
  assert.ok(existsSync(path.join(dataDir, 'store')))
  assert.equal((await server.client.get('/told')).status, 404)
  const both = await runDivan(['restore', file, '--quiet', '--data-dir', `${dataDir}2`, '--url', server.url], { env })
  assert.ok(both.code > 0)
  assert.match(both.stderr, /--url excludes --data-dir/)
  assert.ok(!existsSync(`${dataDir}2`))
  const online = await runDivan(['restore', file, '--quiet', '--database', 'told'], { env })
  assert.equal(online.code, 0, online.stderr)
  assert.equal((await server.client.get('/told')).status, 200)
})

it('an input that cannot be read twice is rejected', async (server) => {
  await server.client.ok('PUT', '/piped')
  const file = await backUp(server)
  const piped = await shell(server, `cat ${file} | "$0" restore --quiet /dev/stdin --database piped --as piped2`)
  assert.equal(piped.code, 1)
  assert.match(piped.stderr, /\/dev\/stdin is not a regular file/)
  const offline = await shell(server, `cat ${file} | "$0" restore --quiet /dev/stdin --data-dir ${file}.new`)
  assert.equal(offline.code, 0, offline.stderr)
})

it('a restore continues after lost responses', async (server) => {
  await server.client.ok('PUT', '/lossy')
  const docs = Array.from({ length: 2000 }, (_, n) => ({ _id: `d${n}`, text: 'x'.repeat(1000) }))
  await server.client.ok('POST', '/lossy/_bulk_docs', { docs })
  const file = await backUp(server)
  // The response to the first request of each kind is lost.
  const lost = new Set()
  let losing = false
  const proxy = await startProxy(server, {
    onRequest: (text) => {
      const kind = /^(POST \/_restore) |^(PUT \/_restore\/\w+\/2) |^(POST \/_restore\/)/.exec(text)?.[0]
      losing = kind !== undefined && !lost.has(kind.replace(/\w{32}/, ''))
      if (losing) lost.add(kind.replace(/\w{32}/, ''))
    },
    onAnswer: () => (losing ? 'cut' : undefined)
  })
  const { code, stderr } = await run(server, ['restore', file, '--database', 'lossy', '--as', 'found'], proxy.url)
  proxy.close()
  assert.equal(code, 0, stderr)
  assert.equal(lost.size, 3)
  assert.equal((await server.client.ok('GET', '/found')).doc_count, 2000)
  assert.equal((await server.client.ok('GET', '/found/_all_docs')).rows.length, 2000)
})

it('a restore whose last responses are all lost reports an unknown result', async (server) => {
  await server.client.ok('PUT', '/unsure')
  const file = await backUp(server)
  const proxy = await startProxy(server, { onRequest: (text) => (/^POST \/_restore\/|^DELETE/.test(text) ? 'cut' : undefined) })
  const { code, stderr } = await run(server, ['restore', file, '--database', 'unsure', '--as', 'unsure2'], proxy.url)
  proxy.close()
  assert.equal(code, 1)
  assert.match(stderr, /result is unknown: either all databases exist, or none/)
})

testWithServer('a restore into a server that accepts only small requests', { env: { DIVAN_CHTTPD_MAX_HTTP_REQUEST_SIZE: '200000' } }, async (server) => {
  const { client } = server
  await client.ok('PUT', '/small')
  for (let i = 0; i < 20; ++i) {
    const docs = Array.from({ length: 100 }, (_, n) => ({ _id: `d${i}-${n}`, text: 'x'.repeat(1000) }))
    await client.ok('POST', '/small/_bulk_docs', { docs })
  }
  await client.ok('PUT', '/small/large', { text: 'y'.repeat(190_000) })
  const file = await backUp(server)
  await restoreInto(server, file, '--database', 'small', '--as', 'again')
  assert.equal((await client.ok('GET', '/again')).doc_count, 2001)
  assert.equal((await client.ok('GET', '/again/_all_docs')).rows.length, 2001)
  assert.equal((await client.ok('GET', '/again/large')).text.length, 190_000)
})

it('only administrators take and restore backups', async (server) => {
  for (const user of [undefined, 'admin:wrong']) {
    const client = server.as(user)
    assert.equal((await client.get('/_backup')).status, 401)
    assert.equal((await client.request('POST', '/_restore', { body: {} })).status, 401)
  }
  const { client } = server
  assert.equal((await client.request('POST', '/_backup')).status, 405)
  assert.equal((await client.request('HEAD', '/_backup')).status, 200)
})

it('invalid restores are refused', async ({ client }) => {
  const begin = (body) => client.request('POST', '/_restore', { body })
  for (const body of [{}, { version: 1 }, { version: 'x', databases: [] }, { version: -1, databases: [] }, { version: 2 ** 62, databases: [] }, '{"version":1152921504606846975,"databases":[]}', '{']) {
    assert.equal((await begin(body)).status, 400, JSON.stringify(body))
  }
  const database = (name, number = 1) => ({ name, number, created: 1 })
  assert.equal((await begin({ version: 1, databases: [database('Illegal')] })).status, 400)
  assert.equal((await begin({ version: 1, databases: [database('x'), database('x', 2)] })).status, 400)
  const { id } = await client.ok('POST', '/_restore', { version: 1, databases: [database('never')] })
  const piece = (number, body) => client.request('PUT', `/_restore/${id}/${number}`, { body, headers: { 'Content-Type': 'application/octet-stream' } })
  assert.equal((await piece(0, 'nonsense')).json.error, 'bad_backup')
  assert.equal((await piece('x', 'nonsense')).status, 400)
  assert.equal((await client.request('POST', `/_restore/${id}`, { body: { rows: 1 } })).status, 400)
  assert.equal((await client.request('POST', `/_restore/${id}`, { body: {} })).status, 400)
  await client.ok('DELETE', `/_restore/${id}`)
  assert.equal((await client.request('POST', `/_restore/${id}`, { body: { rows: 0 } })).status, 404)
  assert.equal((await client.request('DELETE', '/_restore/nobody')).status, 404)
  assert.equal((await client.get('/never')).status, 404)
})

test('backup: a restore is not visible after the server is killed during it, and the next attempt succeeds', async () => {
  const source = await Server.start()
  await source.client.ok('PUT', '/big')
  for (let i = 0; i < 5; ++i) {
    await source.client.ok('POST', '/big/_bulk_docs', { docs: Array.from({ length: 2000 }, (_, n) => ({ _id: `${i}-${n}`, text: 'x'.repeat(1000) })) })
  }
  const file = await backUp(source)
  const info = await source.client.ok('GET', '/big')
  await source.stop()

  const dataDir = temporaryDirectory()
  const target = await Server.start({ dataDir })
  await target.client.ok('PUT', '/other')
  let killed
  const proxy = await startProxy(target, {
    onRequest: (text) => {
      if (text.startsWith('PUT /_restore/') && / \/_restore\/\w+\/3 /.test(text)) killed ??= target.kill()
    }
  })
  const { code, stderr } = await run(target, ['restore', file], proxy.url)
  proxy.close()
  assert.ok(killed)
  await killed
  assert.equal(code, 1)
  assert.notEqual(stderr, '')

  const again = await Server.start({ dataDir })
  assert.deepEqual(await again.client.ok('GET', '/_all_dbs'), ['_users', 'other'])
  assert.equal((await again.client.get('/big')).status, 404)
  await restoreInto(again, file)
  assert.deepEqual(await again.client.ok('GET', '/big'), info)
  assert.equal((await again.client.ok('GET', '/big/_all_docs')).rows.length, 10_000)
  await again.stop()
})

testWithServer('a client that does not read does not keep the server from stopping', {}, async (server) => {
  const { client } = server
  await client.ok('PUT', '/filler')
  for (let i = 0; i < 10; ++i) {
    await client.ok('POST', '/filler/_bulk_docs', { docs: Array.from({ length: 2000 }, () => ({ text: 'x'.repeat(1000) })) })
  }
  const stalled = net.connect(client.port, client.hostname)
  stalled.on('error', () => {})
  stalled.write(`GET /_backup HTTP/1.1\r\nHost: h\r\n${authorization(server)}\r\n`)
  await new Promise((resolve) => stalled.once('readable', resolve))
  // Others continue meanwhile.
  await client.ok('PUT', '/filler/a', {})
  server.terminate()
  await server.ended()
  stalled.destroy()
})
