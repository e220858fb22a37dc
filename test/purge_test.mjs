// Purges: automatic ones, and what backups, restarts and `divan verify` make of them.
import assert from 'node:assert/strict'
import { test as anyTest } from 'node:test'
import { backUp, restoreInto, withRestored } from './support/backup.mjs'
import { onlyEmbedded, runDivan, Server, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const test = onlyEmbedded(anyTest)
const view = { views: { n: { map: 'function (doc) { emit(doc.n, doc.n); }', reduce: '_sum' } } }
const sum = async (client, db = 'db') => (await client.ok('GET', `/${db}/_design/d/_view/n`)).rows[0]?.value ?? 0
const EVERY_SECOND = { DIVAN_COUCH_AUTO_PURGE_PLUGIN_REPEAT: '1_sec' }

// Writes documents 0 to count - 1, whose `n` is their number; returns their revisions by id.
async function write(client, count, db = 'db') {
  const docs = Array.from({ length: count }, (_, n) => ({ _id: `d${n}`, n }))
  const written = await client.ok('POST', `/${db}/_bulk_docs`, { docs })
  return Object.fromEntries(written.map(({ id, rev }) => [id, rev]))
}

const purge = (client, revs, ids, db = 'db') =>
  client.ok('POST', `/${db}/_purge`, Object.fromEntries(ids.map((id) => [id, [revs[id]]])))

test('a purge survives a kill, and an index that was behind follows it', async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir, args: ['--background', 'views'] })
  await server.client.ok('PUT', '/db')
  await server.client.ok('PUT', '/db/_design/d', view)
  const revs = await write(server.client, 3000)
  assert.equal(await sum(server.client), (2999 * 3000) / 2)
  const ids = Object.keys(revs).slice(10)
  const { purged } = await purge(server.client, revs, ids)
  assert.deepEqual(purged[ids[0]], [revs[ids[0]]])
  assert.equal(Object.keys(purged).length, 2990)
  await server.kill()

  server = await Server.start({ dataDir })
  const { doc_count: count, purge_seq: seq } = await server.client.ok('GET', '/db')
  assert.equal(count, 11)
  assert.notEqual(seq, '0')
  assert.equal(await sum(server.client), 45)
  assert.equal((await server.client.ok('GET', '/db/_purged_infos')).purged_infos.length, 1000)
  await server.client.ok('POST', '/db/_compact', {})
  await server.stop()
  const { code, stdout } = await runDivan(['verify', dataDir, '--quiet'])
  assert.equal(code, 0, stdout)
})

testWithServer('restored databases have their purges', { args: ['--background', 'views'] }, async (server) => {
  const { client } = server
  await client.ok('PUT', '/db')
  await client.ok('PUT', '/db/_design/d', view)
  const revs = await write(client, 10)
  assert.equal(await sum(client), 45)
  await purge(client, revs, ['d9'])
  const infos = await client.ok('GET', '/db/_purged_infos')
  const file = await backUp(server)
  const check = async (other, db) => {
    assert.deepEqual(await other.ok('GET', `/${db}/_purged_infos`), infos)
    assert.equal(await sum(other, db), 36)
  }
  await restoreInto(server, file, '--database', 'db', '--as', 'copy')
  await check(client, 'copy')
  await withRestored(file, (restored) => check(restored.client, 'db'))
})

testWithServer('documents that were deleted long ago are purged', { env: EVERY_SECOND }, async (server) => {
  const { client } = server
  for (const db of ['db', 'kept']) {
    await client.ok('PUT', `/${db}`)
    const revs = await write(client, 5, db)
    for (const id of ['d1', 'd3']) await client.ok('DELETE', `/${db}/${id}?rev=${revs[id]}`)
  }
  await client.ok('PUT', '/db/_auto_purge', { deleted_document_ttl: '1_sec' })
  await waitFor('the purge', async () => (await client.ok('GET', '/db')).doc_del_count === 0)
  assert.deepEqual((await client.ok('GET', '/db/_purged_infos')).purged_infos.map(({ id }) => id).sort(), ['d1', 'd3'])
  assert.equal((await client.ok('GET', '/db')).doc_count, 3)
  assert.equal((await client.ok('GET', '/kept')).doc_del_count, 2)
  // The default is for all databases without settings of their own.
  await client.ok('PUT', '/_node/_local/_config/couch_auto_purge_plugin/deleted_document_ttl', '"1_sec"')
  await waitFor('the other purge', async () => (await client.ok('GET', '/kept')).doc_del_count === 0)
})

testWithServer('invalid settings of purges are refused', {}, async ({ client }) => {
  const set = (section, key, value) => client.put(`/_node/_local/_config/${section}/${key}`, JSON.stringify(value))
  for (const [section, key, value] of [
    ['couch_auto_purge_plugin', 'deleted_document_ttl', 'soon'], ['couch_auto_purge_plugin', 'repeat', 'infinity'],
    ['couch_auto_purge_plugin', 'repeat', ''], ['purge', 'max_revisions_number', 'many'], ['purge', 'max_document_id_number', '1']
  ]) {
    assert.equal((await set(section, key, value)).status, 400, `${section} ${key} ${value}`)
  }
  await client.ok('PUT', '/db')
  assert.equal((await set('purge', 'max_revisions_number', '2')).status, 200)
  const refused = await client.post('/db/_purge', { a: ['1-a', '1-b'], b: ['1-c'] })
  assert.equal(refused.status, 400)
  assert.equal(refused.json.reason, 'Exceeded maximum number of revisions.')
  await client.ok('POST', '/db/_purge', { a: ['1-a', '1-b'] })
})
