// Replaced revisions, which are stored until a compaction: after restarts, in backups, and when they are removed.
import assert from 'node:assert/strict'
import { test as anyTest } from 'node:test'
import { backUp, restoreInto, withRestored } from './support/backup.mjs'
import { onlyEmbedded, runDivan, Server, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const test = onlyEmbedded(anyTest)

// Writes `count` revisions of a document with an attachment of its own each; returns their numbers.
async function writeRevisions(client, db, id, count) {
  const revs = []
  for (let n = 0; n < count; n++) {
    const data = Buffer.from(`attachment ${n}`).toString('base64')
    const { rev } = await client.ok('PUT', `/${db}/${id}`, { n, _rev: revs.at(-1), _attachments: { x: { data } } })
    revs.push(rev)
  }
  return revs
}

// The `n` of a revision; null if it is not stored.
async function numberOf(client, db, id, rev) {
  const answer = await client.get(`/${db}/${id}?rev=${rev}`)
  assert.ok(answer.status === 200 || answer.status === 404, answer.text)
  return answer.status === 200 ? answer.json.n : null
}

const numbersOf = (client, db, id, revs) => Promise.all(revs.map((rev) => numberOf(client, db, id, rev)))

async function compact(client, db) {
  await client.ok('POST', `/${db}/_compact`, {})
  await waitFor('the end of the compaction', async () => !(await client.ok('GET', `/${db}`)).compact_running)
}

async function verify(dataDir) {
  const { code, stdout } = await runDivan(['verify', dataDir, '--quiet'])
  assert.equal(code, 0, stdout)
}

testWithServer('replaced revisions are stored until a compaction', {}, async (server) => {
  const { client } = server
  await client.ok('PUT', '/db')
  const revs = await writeRevisions(client, 'db', 'a', 13)
  // The setting's default is ten.
  assert.deepEqual(await numbersOf(client, 'db', 'a', revs), [null, null, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  const before = await client.ok('GET', '/db')
  assert.ok(before.sizes.file > before.sizes.active, JSON.stringify(before.sizes))
  assert.equal((await client.get(`/db/a/x?rev=${revs[3]}`)).text, 'attachment 3')

  await compact(client, 'db')
  assert.deepEqual(await numbersOf(client, 'db', 'a', revs.slice(-2)), [null, 12])
  assert.equal((await client.get(`/db/a/x?rev=${revs[3]}`)).status, 404)
  assert.equal((await client.get('/db/a/x')).text, 'attachment 12')
  const after = await client.ok('GET', '/db')
  assert.deepEqual(after.sizes, { file: before.sizes.active, external: before.sizes.active, active: before.sizes.active })
  assert.equal(after.update_seq, before.update_seq)
  assert.equal(await client.ok('PUT', '/_node/_local/_config/couchdb/max_old_revisions', '"1"'), '10')
  const others = await writeRevisions(client, 'db', 'b', 3)
  assert.deepEqual(await numbersOf(client, 'db', 'b', others), [null, 1, 2])
})

test('replaced revisions survive a kill, and are part of backups', async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  await server.client.ok('PUT', '/db')
  const revs = await writeRevisions(server.client, 'db', 'a', 3)
  await server.kill()
  server = await Server.start({ dataDir })
  assert.deepEqual(await numbersOf(server.client, 'db', 'a', revs), [0, 1, 2])
  const file = await backUp(server)
  await withRestored(file, async (other) => {
    assert.deepEqual(await numbersOf(other.client, 'db', 'a', revs), [0, 1, 2])
    await compact(other.client, 'db')
    assert.deepEqual(await numbersOf(other.client, 'db', 'a', revs), [null, null, 2])
  })
  await compact(server.client, 'db')
  // Into a running server, whose own compaction came further.
  await restoreInto(server, file, '--database', 'db', '--as', 'copy')
  assert.deepEqual(await numbersOf(server.client, 'copy', 'a', revs), [0, 1, 2])
  await server.client.ok('PUT', '/copy/a', { n: 3, _rev: revs[2] })
  await compact(server.client, 'copy')
  assert.deepEqual(await numbersOf(server.client, 'copy', 'a', revs), [null, null, null])
  await server.stop()
  await verify(dataDir)
})

test('a compaction that is killed is completed by the next one', async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  await server.client.ok('PUT', '/db')
  const docs = Array.from({ length: 20_000 }, (_, n) => ({ _id: `d${n}`, n }))
  for (let i = 0; i < 2; i++) {
    for (let from = 0; from < docs.length; from += 2_000) {
      const results = await server.client.ok('POST', '/db/_bulk_docs', { docs: docs.slice(from, from + 2_000) })
      results.forEach(({ rev }, n) => (docs[from + n]._rev = rev))
    }
  }
  const sizes = async () => (await server.client.ok('GET', '/db')).sizes
  const { file, active } = await sizes()
  assert.ok(file > 1.9 * active)
  await server.client.ok('POST', '/db/_compact', {})
  await waitFor('a part of the compaction', async () => (await sizes()).file < file)
  const tasks = await server.client.ok('GET', '/_active_tasks')
  for (const task of tasks) {
    assert.equal(task.type, 'database_compaction')
    assert.equal(task.database, 'db')
    // It may end at this moment.
    assert.ok(task.changes_done % 1000 === 0 && task.changes_done <= task.total_changes && task.total_changes <= 20_000, JSON.stringify(task))
  }
  await server.kill()
  server = await Server.start({ dataDir })
  await compact(server.client, 'db')
  const after = await sizes()
  assert.equal(after.file, active)
  await server.stop()
  await verify(dataDir)
})
