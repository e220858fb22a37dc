// PouchDB as a peer: in Node.js, with two of its stores, and in a browser that is often offline (docs/offline-first.md).
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { noBrowser, withPage } from './support/browser.mjs'
import { programs } from './support/program.mjs'
import { ADMIN, Server, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const require = createRequire(import.meta.url)
const PouchDB = require('pouchdb')
PouchDB.plugin(require('pouchdb-adapter-memory'))

const [username, password] = ADMIN.split(':')

// The leaves of all documents of a PouchDB or of a remote database.
async function leaves(db) {
  const { results } = await db.changes({ style: 'all_docs' })
  const docs = results.flatMap(({ id, changes }) => changes.map(({ rev }) => ({ id, rev })))
  const { results: found } = await db.bulkGet({ docs, revs: true, attachments: true })
  const plain = ({ docs: [{ ok }] }) => {
    const attachments = Object.entries(ok._attachments ?? {}).map(([name, { data, content_type: type }]) => [name, type, createHash('md5').update(data).digest('hex')])
    return { ...ok, _attachments: attachments }
  }
  return found.map(plain).sort((a, b) => (a._id + a._rev < b._id + b._rev ? -1 : 1))
}

for (const adapter of ['leveldb', 'memory']) {
  test(`two PouchDBs (${adapter}) and a server converge while all of them write`, async () => {
    const directory = temporaryDirectory()
    const server = await Server.start()
    await server.client.ok('PUT', '/db')
    const remote = () => new PouchDB(`${server.url}/db`, { auth: { username, password } })
    const [first, second] = ['first', 'second'].map((name) => new PouchDB(path.join(directory, `${adapter}-${name}`), { adapter }))
    const data = Buffer.from('content '.repeat(2000)).toString('base64')
    const writers = [first, second, remote()]
    const write = async (db, n) => {
      for (let i = 0; i < 40; ++i) {
        const id = `d${(i * 7 + n) % 20}`
        const old = await db.get(id).catch(() => ({ _id: id }))
        const doc = { ...old, by: n, i }
        if (i % 9 === 0) doc._attachments = { ...doc._attachments, [`a${n}`]: { content_type: 'text/plain', data } }
        const deleted = { _id: id, _rev: old._rev, _deleted: true, by: n, i }
        await db.put(i % 13 === 12 && old._rev ? deleted : doc).catch((error) => assert.equal(error.status, 409))
      }
    }
    const syncs = [first, second].map((db) => db.sync(remote(), { live: true, retry: true }))
    await Promise.all(writers.map(write))
    await waitFor('all to have the same leaves', async () => {
      const [a, b, c] = await Promise.all(writers.map(leaves))
      assert.deepEqual(a, c)
      assert.deepEqual(b, c)
      return c.length >= 20
    })
    for (const sync of syncs) sync.cancel()
    // What the server replicates further is the same, too.
    await server.client.ok('POST', '/_replicate', { source: 'db', target: 'copy', create_target: true })
    assert.deepEqual(await leaves(new PouchDB(`${server.url}/copy`, { auth: { username, password } })), await leaves(remote()))
    await Promise.all([first, second].map((db) => db.destroy()))
    await server.stop()
  })
}

test('the page of the recipe works while the server comes and goes', { skip: noBrowser }, async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  const [page] = programs('docs/offline-first.md', 'The page')
  const files = { '/': page.source, '/pouchdb.min.js': readFileSync(require.resolve('pouchdb/dist/pouchdb.min.js')) }
  const site = http.createServer((request, response) => {
    const file = files[request.url.split('?')[0]]
    response.writeHead(file ? 200 : 404, { 'Content-Type': request.url.endsWith('.js') ? 'text/javascript' : 'text/html' }).end(file)
  })
  await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${site.address().port}`
  const { client } = server
  await client.ok('PUT', '/todos')
  await client.ok('PUT', '/_users/org.couchdb.user:ann', { name: 'ann', type: 'user', roles: [], password: 'a long password' })
  await client.ok('PUT', '/todos/_security', { members: { names: ['ann'] } })
  for (const [section, key, value] of [['chttpd', 'enable_cors', 'true'], ['cors', 'origins', origin], ['cors', 'credentials', 'true']])
    await client.ok('PUT', `/_node/_local/_config/${section}/${key}`, JSON.stringify(value))
  const texts = async () => (await server.client.ok('GET', '/todos/_all_docs?include_docs=true')).rows.map(({ doc }) => doc.text).sort()
  try {
    await withPage(origin, async (tab) => {
      const url = `/?server=${server.url}`
      const add = async (text) => {
        await tab.fill('#add input', text)
        await tab.click('#add button')
      }
      const shows = (text) => tab.waitForSelector(`#list li:text-is("${text}")`)
      await tab.goto(url)
      await add('before the login')
      await shows('before the login')
      await tab.fill('[name=name]', 'ann')
      await tab.fill('[name=password]', 'wrong')
      await tab.click('#login button')
      await tab.waitForFunction(() => /incorrect/.test(document.getElementById('state').value))
      await tab.fill('[name=password]', 'a long password')
      await tab.click('#login button')
      await waitFor('the first one at the server', async () => (await texts()).includes('before the login'))
      await server.client.ok('POST', '/todos', { text: 'of the server' })
      await shows('of the server')
      for (let n = 0; n < 3; ++n) {
        await server.kill()
        await add(`offline ${n}`)
        await shows(`offline ${n}`)
        if (n === 1) {
          await tab.reload()
          await shows(`offline ${n}`)
        }
        server = await Server.start({ dataDir, port: server.client.port })
        // Without the server, the page could not know whether its session is valid.
        if (n === 1) await tab.reload()
        await waitFor(`offline ${n} at the server`, async () => (await texts()).includes(`offline ${n}`))
        await server.client.ok('POST', '/todos', { text: `server ${n}` })
        await shows(`server ${n}`)
      }
      await tab.waitForFunction(() => document.getElementById('state').value === 'up to date')
      assert.equal(await tab.locator('#list li').count(), 8)
    })
  } finally {
    site.closeAllConnections()
    site.close()
    await server.stop()
  }
})
