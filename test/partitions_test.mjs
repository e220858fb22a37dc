// Partitioned databases and their backups.
import assert from 'node:assert/strict'
import { backUp, restoreInto, withRestored } from './support/backup.mjs'
import { testWithServer } from './support/server.mjs'

testWithServer('restored databases are partitioned', {}, async (server) => {
  const { client } = server
  await client.ok('PUT', '/db?partitioned=true')
  await client.ok('PUT', '/db/_design/d', { views: { n: { map: 'function (doc) { emit(doc.n, doc.n); }', reduce: '_sum' } } })
  const docs = Array.from({ length: 300 }, (_, n) => ({ _id: `p${n % 3}:${n}`, n }))
  await client.ok('POST', '/db/_bulk_docs', { docs })
  const check = async (other, db) => {
    assert.deepEqual((await other.ok('GET', `/${db}`)).props, { partitioned: true })
    const { rows } = await other.ok('GET', `/${db}/_partition/p1/_design/d/_view/n`)
    assert.deepEqual(rows, [{ key: null, value: 100 + (3 * 99 * 100) / 2 }])
    assert.equal((await other.ok('GET', `/${db}/_partition/p1`)).doc_count, 100)
    assert.equal((await other.put(`/${db}/none`, {})).status, 400)
  }
  await check(client, 'db')
  const file = await backUp(server)
  await restoreInto(server, file, '--database', 'db', '--as', 'copy')
  await check(client, 'copy')
  await withRestored(file, (restored) => check(restored.client, 'db'))
})
