// The clients that applications follow feeds with, against the server: cloudant-follow, nano's changesReader
// and PouchDB. Each sees the changes in order, misses none when the server is killed, and closes its
// connections when it stops.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { afterEach } from 'node:test'
import { startProxy } from './support/proxy.mjs'
import { Server, testWithServer } from './support/server.mjs'
import { waitFor, within } from './support/wait.mjs'

const require = createRequire(import.meta.url)
const { Feed } = require('cloudant-follow')
const Nano = require('nano')
const PouchDB = require('pouchdb-core').default ?? require('pouchdb-core')
PouchDB.plugin(require('pouchdb-adapter-http').default ?? require('pouchdb-adapter-http'))

const kDocuments = 40

const withCredentials = (url) => url.replace('http://', 'http://admin:secret@')

/** What a client gave, in its order; wait() until it is what a test wants. */
class Seen {
  items = []
  failure = null
  #wake = () => {}

  add(item) {
    this.items.push(item)
    this.#wake()
  }
  fail(error) {
    this.failure ??= error
    this.#wake()
  }
  async wait(what, condition) {
    while (!condition(this.items)) {
      if (this.failure) throw this.failure
      await within(what, new Promise((resolve) => (this.#wake = resolve)))
    }
    return this.items
  }
}

// Stops the clients of a failed test, which would retry for ever.
const stops = new Set()
afterEach(() => {
  for (const stop of stops) stop()
  stops.clear()
})
function stoppable(stop) {
  stops.add(stop)
  return stop
}

const ids = (rows) => rows.map(({ id }) => id)
const put = (server, target, body = {}) => server.client.ok('PUT', target, body)

function assertAscending(rows) {
  const numbers = rows.map(({ seq }) => parseInt(seq))
  assert.deepEqual(numbers, [...numbers].sort((a, b) => a - b), 'rows come in the order of their sequences')
}

// The clients, each as start(server's url, database, seen, options) → stop(). Rows go to `seen` as {seq, id, doc}.

function followUpdates(url, _, seen, options = {}) {
  const feed = new Feed({ db: `${withCredentials(url)}/_db_updates`, initial_retry_delay: 20, ...options })
  feed.on('change', (row) => seen.add(row))
  feed.on('heartbeat', () => seen.add({ heartbeat: true }))
  feed.on('error', (error) => seen.fail(error))
  feed.follow()
  return stoppable(() => feed.stop())
}

function followChanges(url, database, seen, options = {}) {
  const feed = new Feed({ db: `${withCredentials(url)}/${database}`, initial_retry_delay: 20, include_docs: true, ...options })
  feed.on('change', (row) => seen.add(row))
  feed.on('error', (error) => seen.fail(error))
  feed.follow()
  return stoppable(() => feed.stop())
}

function readWithNano(url, database, seen, options = {}) {
  const { changesReader } = Nano(withCredentials(url)).db.use(database)
  const reader = changesReader.start({ since: '0', includeDocs: true, batchSize: 7, ...options })
  reader.on('change', (row) => seen.add(row))
  reader.on('batch', (rows) => rows.length > 7 && seen.fail(new Error(`a batch has ${rows.length} rows`)))
  reader.on('error', (error) => error.statusCode && error.statusCode < 500 && seen.fail(error))
  return stoppable(() => changesReader.stop())
}

// PouchDB ends a live feed when a request fails: an application restarts it from the last sequence.
function liveInPouch(url, database, seen, options = {}) {
  const db = new PouchDB(`${withCredentials(url)}/${database}`, { skip_setup: true })
  let since = 0
  let stopped = false
  let changes
  const begin = () => {
    changes = db.changes({ live: true, since, include_docs: true, batch_size: 7, ...options })
    changes.on('change', (row) => {
      since = row.seq
      seen.add(row)
    })
    changes.on('error', (error) => {
      if (error.status === 404) return seen.fail(error)
      if (!stopped) setTimeout(begin, 20)
    })
  }
  begin()
  return stoppable(() => {
    stopped = true
    changes.cancel()
  })
}

const CLIENTS = {
  'cloudant-follow': followChanges,
  "nano's changesReader": readWithNano,
  'PouchDB, live,': liveInPouch
}

for (const [name, start] of Object.entries(CLIENTS)) {
  testWithServer(`${name} sees creations, updates and deletions in order, with documents, and disconnects`, {}, async (server) => {
    const db = await server.newDatabase()
    await put(server, `/${db}/before`, { n: 0 })
    const connections = await server.metric('divan_http_connections')
    const seen = new Seen()
    const stop = start(server.url, db, seen)
    await seen.wait('the row that was there before', (rows) => rows.length === 1)

    const { rev } = await put(server, `/${db}/a`, { n: 1 })
    await seen.wait('a creation', (rows) => rows.length === 2)
    const updated = await put(server, `/${db}/a`, { _rev: rev, n: 2 })
    await seen.wait('an update', (rows) => rows.length === 3)
    await server.client.ok('DELETE', `/${db}/a?rev=${updated.rev}`)
    await seen.wait('a deletion', (rows) => rows.length === 4)
    assert.deepEqual(
      seen.items.map(({ id, deleted, doc }) => [id, deleted ?? false, doc.n]),
      [['before', false, 0], ['a', false, 1], ['a', false, 2], ['a', true, undefined]]
    )
    assertAscending(seen.items)

    await waitFor('the connection of the client', async () =>
      (await server.metric('divan_http_connections')) > connections
    )
    stop()
    await waitFor('the connection of a client that stopped to end', async () =>
      (await server.metric('divan_http_connections')) === connections
    )
  })

  testWithServer(`${name} misses nothing when the server is killed and restarted`, {}, async (server) => {
    const db = await server.newDatabase()
    const seen = new Seen()
    const stop = start(server.url, db, seen)
    const written = []
    const write = async (now) => {
      for (let i = 0; i < kDocuments; ++i) {
        const id = `doc-${written.length}`
        await put(now, `/${db}/${id}`, { n: written.length })
        written.push(id)
      }
    }
    await write(server)
    await seen.wait('a row before the end', (rows) => rows.length > 0)
    await write(server)
    await server.kill()
    const again = await Server.start({ dataDir: server.dataDir, port: server.client.port })
    try {
      await write(again)
      await seen.wait('the last document', (rows) => rows.some(({ id }) => id === written.at(-1)))
      // Each document was written once: resuming from a stored sequence repeats no row either.
      assert.deepEqual(ids(seen.items), written)
      assert.deepEqual(seen.items.map(({ doc }) => doc.n), written.map((_, n) => n))
      assertAscending(seen.items)
    } finally {
      stop()
      await again.stop()
    }
  })
}

testWithServer('cloudant-follow sees database events in order, and disconnects', {}, async (server) => {
  const connections = await server.metric('divan_http_connections')
  const seen = new Seen()
  const stop = followUpdates(server.url, null, seen)
  const seesEvent = (name, type) =>
    seen.wait(`${name} ${type}`, (rows) => rows.some((row) => row.db_name === name && row.type === type))
  await put(server, '/first')
  await seesEvent('first', 'created')
  await put(server, '/second')
  await seesEvent('second', 'created')
  await put(server, '/first/a')
  await seesEvent('first', 'updated')
  await server.client.ok('DELETE', '/second')
  await seesEvent('second', 'deleted')
  assertAscending(seen.items)
  stop()
  await waitFor('the connection of a client that stopped to end', async () =>
    (await server.metric('divan_http_connections')) === connections
  )
})

testWithServer('cloudant-follow misses no database when the server is killed and restarted', {}, async (server) => {
  const seen = new Seen()
  const stop = followUpdates(server.url, null, seen)
  const change = async (now, from, to) => {
    for (let i = from; i < to; ++i) {
      await put(now, `/many-${i}`)
      await put(now, `/many-${i}/a`)
    }
  }
  await change(server, 0, 20)
  await seen.wait('a row before the end', (rows) => rows.length > 0)
  await change(server, 20, 40)
  await put(server, '/many-0/b')
  await server.kill()
  const again = await Server.start({ dataDir: server.dataDir, port: server.client.port })
  try {
    await change(again, 40, 60)
    // The last row that the client saw of each database and kind is the current one.
    await waitFor('the client to have seen all rows', async () => {
      const last = new Map(seen.items.map(({ db_name, type, seq }) => [`${db_name} ${type}`, seq]))
      const all = (await again.client.ok('GET', '/_db_updates')).results
      const results = all.filter(({ db_name }) => db_name !== '_users')
      assert.equal(results.length, 120)
      for (const { db_name, type, seq } of results) assert.equal(last.get(`${db_name} ${type}`), seq)
      return true
    })
    assertAscending(seen.items)
  } finally {
    stop()
    await again.stop()
  }
})

testWithServer('heartbeats alone keep a feed of cloudant-follow open', {}, async (server) => {
  const seen = new Seen()
  const stop = followUpdates(server.url, null, seen, { since: 'now', heartbeat: 500 })
  await seen.wait('heartbeats', (items) => items.filter(({ heartbeat }) => heartbeat).length >= 4)
  await put(server, '/after')
  await seen.wait('a row after heartbeats', (items) => items.some(({ db_name }) => db_name === 'after'))
  stop()
})

testWithServer('cloudant-follow gets an error when its database is deleted', {}, async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/a`)
  const feed = new Feed({ db: `${withCredentials(server.url)}/${db}`, initial_retry_delay: 20 })
  const caughtUp = once(feed, 'catchup')
  const error = new Promise((resolve) => feed.on('error', resolve))
  // Missing heartbeats would also end it.
  feed.on('timeout', () => feed.emit('error', new Error('the feed did not end with its database')))
  stoppable(() => feed.stop())
  feed.follow()
  await within('the feed to catch up', caughtUp)
  await server.client.ok('DELETE', `/${db}`)
  const { deleted, message } = await within('the end of the feed', error)
  assert.ok(deleted, message)
})

// Heartbeats in the response to a long poll: the client keeps waiting, and reads the row after them.
for (const [name, start, options] of [
  ["nano's changesReader", readWithNano, { since: 'now', qs: { heartbeat: 10 } }],
  ['PouchDB, live,', liveInPouch, { since: 'now', heartbeat: 10 }]
]) {
  testWithServer(`a long poll of ${name} waits through heartbeats`, {}, async (server) => {
    const db = await server.newDatabase()
    const polls = []
    const proxy = await startProxy(server, {
      onRequest: (text) => {
        const poll = /^\S+ \S+_changes\?(\S*feed=longpoll\S*)/.exec(text)
        if (poll) polls.push({ query: new URLSearchParams(poll[1]), answered: 0 })
      },
      onAnswer: (bytes) => {
        if (polls.length > 0) polls.at(-1).answered = bytes
      }
    })
    stoppable(() => proxy.close())
    const seen = new Seen()
    start(proxy.url, db, seen, options)
    await waitFor('an answer of heartbeats', () => polls.length === 1 && polls[0].answered > 600)
    assert.equal(polls[0].query.get('heartbeat'), '10')
    await put(server, `/${db}/after`, { n: 1 })
    await seen.wait('a row after heartbeats', (rows) => rows.length === 1)
    assert.deepEqual(ids(seen.items), ['after'])
  })
}

testWithServer("nano's changesReader gets and spools all changes, in batches", {}, async (server) => {
  const db = await server.newDatabase()
  const docs = Array.from({ length: 1005 }, (_, n) => ({ _id: `doc-${String(n).padStart(4, '0')}`, n }))
  await server.client.ok('POST', `/${db}/_bulk_docs`, { docs })
  const { last_seq } = await server.client.ok('GET', `/${db}/_changes`)
  const { changesReader } = Nano(withCredentials(server.url)).db.use(db)
  for (const method of ['get', 'spool']) {
    const batches = []
    const reader = changesReader[method]({ since: '0', batchSize: 100, includeDocs: true, timeout: 1 })
    reader.on('batch', (rows) => batches.push(rows))
    reader.on('error', assert.fail)
    const [end] = await within(`the end of ${method}()`, once(reader, 'end'))
    assert.deepEqual(batches.map((rows) => rows.length), [...Array(10).fill(100), 5], method)
    assert.deepEqual(batches.flat().map(({ id, doc }) => [id, doc.n]), docs.map(({ _id, n }) => [_id, n]), method)
    assert.equal(end, last_seq, method)
  }
})

testWithServer('PouchDB reads all changes in batches, and those of some documents', {}, async (server) => {
  const db = await server.newDatabase()
  const docs = Array.from({ length: 60 }, (_, n) => ({ _id: `doc-${String(n).padStart(2, '0')}`, n }))
  await server.client.ok('POST', `/${db}/_bulk_docs`, { docs })
  const limits = []
  const proxy = await startProxy(server, {
    onRequest: (text) => {
      const poll = /^GET \S+_changes\?(\S*)/.exec(text)
      if (poll) limits.push(new URLSearchParams(poll[1]).get('limit'))
    }
  })
  stoppable(() => proxy.close())
  const pouch = new PouchDB(`${withCredentials(proxy.url)}/${db}`, { skip_setup: true })
  const all = await within('all changes', pouch.changes({ since: 0, batch_size: 25, include_docs: true }))
  assert.deepEqual(limits, ['25', '25', '25'])
  assert.deepEqual(all.results.map(({ id, doc }) => [id, doc.n]), docs.map(({ _id, n }) => [_id, n]))
  assert.equal(all.last_seq, all.results.at(-1).seq)
  const some = await within('some changes', pouch.changes({ since: 0, doc_ids: ['doc-07', 'doc-31', 'nobody'] }))
  assert.deepEqual(ids(some.results), ['doc-07', 'doc-31'])
})
