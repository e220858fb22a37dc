// @cloudant/couchbackup, with which CouchDB's databases are backed up: what it restores is what there was.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream, existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { shareServer, temporaryDirectory } from './support/server.mjs'
import { waitFor, within } from './support/wait.mjs'

const couchbackup = createRequire(import.meta.url)('@cloudant/couchbackup')
const isOld = parseInt(process.versions.node) < 20
const it = isOld ? (name) => test(`couchbackup: ${name}`, { skip: 'couchbackup needs Node.js 20' }) : shareServer()

const urlOf = (server, db) => `${server.url.replace('http://', `http://${server.credentials}@`)}/${db}`

/** Waits for the end of a call with (error, data). */
const done = (what, call) =>
  within(what, new Promise((resolve, reject) => call((error, data) => (error ? reject(error) : resolve(data)))))

async function backUp(server, db, options) {
  const file = path.join(temporaryDirectory(), 'backup')
  const log = path.join(path.dirname(file), 'log')
  await done('the backup', (end) => couchbackup.backup(urlOf(server, db), createWriteStream(file), { ...(options?.mode === 'shallow' ? {} : { log }), ...options }, end))
  return file
}
// It decodes each chunk of a file by itself, so the stream gives it chunks of complete characters.
const restore = (server, file, db, options) =>
  done('the restore', (end) => couchbackup.restore(createReadStream(file, 'utf8'), urlOf(server, db), { ...options }, end))

/** All leaf revisions of all documents, with their histories and attachments. */
async function contents(server, db) {
  const { results } = await server.client.ok('GET', `/${db}/_changes?style=all_docs`)
  const leaves = {}
  for (const { id, changes } of results) {
    const revisions = JSON.stringify(changes.map(({ rev }) => rev))
    const target = `/${db}/${encodeURIComponent(id)}?open_revs=${encodeURIComponent(revisions)}&revs=true&attachments=true`
    const found = await server.client.ok('GET', target)
    leaves[id] = found.map(({ ok }) => ok).sort((a, b) => (a._rev < b._rev ? -1 : 1))
    // The number of the write that added an attachment is that of its revision here.
    for (const leaf of leaves[id]) for (const stub of Object.values(leaf._attachments ?? {})) delete stub.revpos
  }
  return leaves
}

/** Documents with conflicts, deleted leaves and deep histories. */
async function fill(server, db, { attachments }) {
  const write = async (docs, more = {}) => {
    const results = await server.client.ok('POST', `/${db}/_bulk_docs`, { docs, ...more })
    for (const { error, reason } of results) assert.equal(error, undefined, reason)
    return results
  }
  await write(Array.from({ length: 1200 }, (_, n) => ({ _id: `doc-${n}`, n, text: 'ü'.repeat(n % 50) })))
  await write([{ _id: '_design/views', views: { by_n: { map: 'function (doc) { emit(doc.n) }', reduce: '_count' } } }])
  const conflict = (n, branch, generation, more = {}) => ({
    _id: `conflict-${n}`,
    branch,
    _revisions: { start: generation, ids: Array.from({ length: generation }, (_, i) => `${branch}${generation - i}`.padEnd(32, 'abc')) },
    ...more
  })
  for (let n = 0; n < 30; ++n) {
    await write([conflict(n, 'a', 3), conflict(n, 'b', 4), conflict(n, 'c', 5, { _deleted: true })], { new_edits: false })
  }
  await write([conflict('gone', 'd', 2, { _deleted: true, reason: 'kept' })], { new_edits: false })
  if (!attachments) return
  for (let n = 0; n < 5; ++n) {
    const small = { content_type: 'text/plain', data: Buffer.from(`small ${n}`).toString('base64') }
    const large = { content_type: 'image/png', data: randomBytes(200_000).toString('base64') }
    await write([{ _id: `attached-${n}`, _attachments: { small, 'a/large ü': large } }])
    await write([conflict(`attached-${n}`, 'e', 2, { _attachments: { small } }), conflict(`attached-${n}`, 'f', 2, { _attachments: { large } })], {
      new_edits: false
    })
  }
}

for (const attachments of [false, true]) {
  it(`a database with conflicts${attachments ? ' and attachments' : ''} is backed up and restored`, async (server) => {
    const db = await server.newDatabase()
    await fill(server, db, { attachments })
    const before = await contents(server, db)
    const file = await backUp(server, db, { parallelism: 3, bufferSize: 100, attachments })
    const copy = await server.newDatabase()
    await restore(server, file, copy, { parallelism: 3, bufferSize: 100, attachments })
    assert.deepEqual(await contents(server, copy), before)
    const { doc_count, doc_del_count } = await server.client.ok('GET', `/${db}`)
    const restored = await server.client.ok('GET', `/${copy}`)
    assert.deepEqual([restored.doc_count, restored.doc_del_count], [doc_count, doc_del_count])
    const view = '_design/views/_view/by_n'
    assert.deepEqual(await server.client.ok('GET', `/${copy}/${view}`), await server.client.ok('GET', `/${db}/${view}`))
  })
}

it('a shallow backup has the winning revisions', async (server) => {
  const db = await server.newDatabase()
  await fill(server, db, { attachments: false })
  const file = await backUp(server, db, { mode: 'shallow', bufferSize: 500 })
  const copy = await server.newDatabase()
  await restore(server, file, copy)
  const rows = async (name) => (await server.client.ok('GET', `/${name}/_all_docs?include_docs=true`)).rows.map(({ doc }) => ({ ...doc, _rev: '' }))
  assert.deepEqual(await rows(copy), await rows(db))
})

it('a backup that was killed is resumed', async (server) => {
  const db = await server.newDatabase()
  await fill(server, db, { attachments: false })
  const directory = temporaryDirectory()
  const [file, log] = ['backup', 'log'].map((name) => path.join(directory, name))
  const program = createRequire(import.meta.url).resolve('@cloudant/couchbackup/bin/couchbackup.bin.js')
  const run = (...args) => {
    const child = spawn(process.execPath, [program, '--url', urlOf(server, ''), '--db', db, '--log', log, '--output', file, ...args])
    child.stderr.setEncoding('utf8').on('data', (text) => (child.errors = (child.errors ?? '') + text))
    child.ended = once(child, 'exit')
    return child
  }
  const lines = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').length : 0)
  const first = run('--buffer-size', '2', '--parallelism', '1')
  await waitFor('some batches', () => lines() > 20)
  first.kill('SIGKILL')
  assert.equal((await first.ended)[1], 'SIGKILL')
  const second = run('--resume')
  assert.equal((await within('the rest of the backup', second.ended))[0], 0, second.errors)
  const copy = await server.newDatabase()
  await restore(server, file, copy)
  assert.deepEqual(await contents(server, copy), await contents(server, db))
})

it('a backup is not restored into a database that is not empty, or that does not exist', async (server) => {
  const db = await server.newDatabase()
  await server.client.ok('PUT', `/${db}/a`, {})
  const file = await backUp(server, db)
  await assert.rejects(restore(server, file, db), ({ name }) => name === 'DatabaseNotEmpty')
  await assert.rejects(restore(server, file, 'missing'), ({ name }) => name === 'DatabaseNotFound')
  await assert.rejects(backUp(server, 'missing'), ({ name }) => name === 'DatabaseNotFound')
})
