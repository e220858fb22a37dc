// docs/migration.md: the commands of the move from CouchDB, with another server in CouchDB's place, and Divan's programs.
import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { programs, run } from './support/program.mjs'
import { fill, leaves, withServers } from './support/replication.mjs'
import { testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const FILE = 'docs/migration.md'
const tools = path.join(path.dirname(fileURLToPath(import.meta.url)), 'node_modules/.bin')

test('migration: databases, users and permissions are copied, compared, and switched', () => withServers(2, async (old, divan) => {
  const { client } = old
  await fill(client, 'shop')
  await client.ok('PUT', '/shop/_security', { admins: { names: ['ann'], roles: [] }, members: { names: [], roles: ['staff'] } })
  await client.ok('PUT', '/shop/_revs_limit', 77)
  await client.ok('PUT', '/a%2Fb%2Bc')
  await client.ok('PUT', '/a%2Fb%2Bc/x', { n: 1 })
  await client.ok('PUT', '/parts?partitioned=true')
  await client.ok('PUT', '/parts/p:x', { n: 1 })
  await client.ok('PUT', '/_replicator')
  await client.ok('PUT', '/_users/org.couchdb.user:ann', { name: 'ann', password: 'pencil', roles: ['staff'], type: 'user' })

  const [copy, state, compare, end, couchbackup] = programs(FILE, 'From CouchDB').map(({ source }) => source.replaceAll('couchdb.example:5984', new URL(old.url).host))
  const shell = (...blocks) => run({ language: 'sh', source: blocks.join('\n'), env: { PATH: `${tools}:${process.env.PATH}` } }, divan)
  const functions = copy.slice(0, copy.indexOf('\n\n'))
  const output = async (...blocks) => (await shell(...blocks).output()).trim().split('\n')

  assert.deepEqual(await output(copy), Array(4).fill('{"ok":true}'))
  const equal = ['_users: equal', 'a/b+c: equal', 'parts: equal', 'shop: equal']
  await waitFor('the copies', async () => {
    assert.deepEqual(await output(functions, compare), equal)
    return true
  })
  const rows = (await output(functions, state)).map((row) => JSON.parse(row))
  assert.equal(rows.length, 4)
  for (const { state, refused } of rows) assert.ok(['running', 'pending'].includes(state) && refused === 0, JSON.stringify(rows))
  for (const db of ['shop', 'a%2Fb%2Bc', 'parts']) assert.deepEqual(await leaves(divan.client, db), await leaves(client, db))
  for (const what of ['_security', '_revs_limit']) {
    assert.deepEqual(await divan.client.ok('GET', `/shop/${what}`), await client.ok('GET', `/shop/${what}`))
  }
  assert.equal((await divan.client.ok('GET', '/parts')).props.partitioned, true)
  assert.equal((await divan.as('ann:pencil').ok('GET', '/_session')).userCtx.name, 'ann')

  // What is written meanwhile follows, and the comparison finds what differs.
  await client.ok('PUT', '/shop/later', {})
  await waitFor('a later document', async () => (await divan.client.get('/shop/later')).status === 200)
  await divan.client.ok('PUT', '/parts/p:y', {})
  assert.deepEqual(await output(functions, compare), equal.map((line) => line.replace('parts: equal', 'parts: differs')))

  assert.deepEqual(await output(functions, end), Array(4).fill('{"ok":true}'))
  assert.deepEqual((await divan.client.ok('GET', '/_scheduler/jobs')).jobs, [])

  // couchbackup: the documents with attachments need its experimental option.
  if (parseInt(process.versions.node) < 20) return
  await client.ok('DELETE', '/shop')
  await client.ok('PUT', '/shop')
  await client.ok('POST', '/shop/_bulk_docs', { docs: Array.from({ length: 50 }, (_, n) => ({ _id: `doc-${n}`, n })) })
  await client.ok('POST', '/shop/_bulk_docs', { docs: [{ _id: 'doc-1', _rev: '1-abc', other: true }], new_edits: false })
  assert.equal((await output(functions, compare.slice(0, compare.indexOf('databases |')), couchbackup)).at(-1), 'shop-copy: equal')
}))

for (const [heading, printed] of [
  ['From BullMQ', ['to ann', 'to bob', 'failed: no address']],
  ['From graphile-worker', ['to ann']],
  ['From pg-boss', ['to ann']],
  ['From Celery', ['to ann']]
]) {
  testWithServer(`"${heading}": Divan's program runs its jobs`, {}, async (server) => {
    const [other, divan] = programs(FILE, heading)
    assert.ok(!/divan/i.test(other.source) && /divan/i.test(divan.source))
    const program = run(divan, server)
    try {
      for (const line of printed) await program.says(`${line}\n`)
      const { counts } = await server.client.ok('GET', '/_jobs/mail')
      assert.equal(counts.pending, heading === 'From Celery' ? 0 : 1, 'the job of the schedule')
    } finally {
      await program.end()
    }
  })
}
