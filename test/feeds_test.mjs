// Live feeds: waiting, waking, heartbeats and ends.
import assert from 'node:assert/strict'
import net from 'node:net'
import { Server, shareServer, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer()

const put = (server, target, body = {}) => server.client.ok('PUT', target, body)

it('a long poll waits for a change', async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/before`)
  const poll = await server.client.open(`/${db}/_changes?feed=longpoll&since=now&heartbeat=10`)
  await poll.lines(5) // several heartbeats: the feed waits
  assert.ok(!poll.over)
  await put(server, `/${db}/a`)
  assert.equal(await poll.ended(), 'end')
  const { results, last_seq, pending } = JSON.parse(poll.text)
  assert.deepEqual([results.map(({ id }) => id), pending], [['a'], 0])
  assert.equal(last_seq, results[0].seq)
})

it('a long poll with a filter is not answered by rows that the filter excludes', async (server) => {
  const db = await server.newDatabase()
  const poll = await server.client.open(`/${db}/_changes?feed=longpoll&since=now&filter=_doc_ids`, {
    method: 'POST',
    body: { doc_ids: ['wanted'] }
  })
  await put(server, `/${db}/other`)
  await put(server, `/${db}/wanted`)
  assert.equal(await poll.ended(), 'end')
  assert.deepEqual(JSON.parse(poll.text).results.map(({ id }) => id), ['wanted'])
})

it('a continuous feed sends heartbeats while it waits, and then rows', async (server) => {
  const db = await server.newDatabase()
  const feed = await server.client.open(`/${db}/_changes?feed=continuous&since=now&heartbeat=10&include_docs=true`)
  assert.equal(feed.headers['content-type'], 'application/json')
  for (const n of [1, 2, 3]) {
    assert.deepEqual(await feed.lines(3), ['', '', ''])
    await put(server, `/${db}/doc${n}`, { n })
    const { id, doc } = await feed.row()
    assert.deepEqual([id, doc.n], [`doc${n}`, n])
  }
  feed.close()
})

it('an event source stays well formed through its heartbeats', async (server) => {
  const db = await server.newDatabase()
  const feed = await server.client.open(`/${db}/_changes?feed=eventsource&since=now&heartbeat=10`)
  assert.equal(feed.headers['content-type'], 'text/event-stream')
  for (const id of ['a', 'b']) {
    for (let i = 0; i < 3; ++i) assert.deepEqual(await feed.event(), { event: 'heartbeat', data: '' })
    await put(server, `/${db}/${id}`)
    const event = await feed.eventOf(undefined)
    const change = JSON.parse(event.data)
    assert.deepEqual([change.id, event.id], [id, change.seq])
  }
  feed.close()
})

it('feeds end with their database, and do not continue with a new one of the same name', async (server) => {
  const db = await server.newDatabase()
  const open = (feed) => server.client.open(`/${db}/_changes?feed=${feed}&since=now&heartbeat=10`)
  const [poll, continuous, events] = await Promise.all(['longpoll', 'continuous', 'eventsource'].map(open))
  await Promise.all([poll, continuous, events].map((feed) => feed.lines(2)))
  await server.client.ok('DELETE', `/${db}`)
  await put(server, `/${db}`)
  await put(server, `/${db}/a`)
  assert.deepEqual(await Promise.all([poll, continuous, events].map((feed) => feed.ended())), ['end', 'end', 'end'])
  assert.deepEqual(JSON.parse(poll.text).results, [])
  assert.equal(typeof JSON.parse(continuous.text.trim()).last_seq, 'string')
  assert.ok(!events.text.includes('"id":"a"'))
})

testWithServer('many feeds see one change by one read of the store', {}, async (server) => {
  const db = await server.newDatabase()
  const feeds = await Promise.all(
    Array.from({ length: 200 }, () => server.client.open(`/${db}/_changes?feed=continuous&since=now&heartbeat=10`))
  )
  await Promise.all(feeds.map((feed) => feed.lines(3))) // the feeds wait
  const reads = await server.metric('divan_feed_store_reads_total')
  await put(server, `/${db}/a`)
  const rows = await Promise.all(feeds.map((feed) => feed.row()))
  assert.equal(new Set(rows.map(({ id, seq }) => `${id} ${seq}`)).size, 1)
  assert.equal(await server.metric('divan_feed_store_reads_total'), reads + 1)
  for (const feed of feeds) feed.close()
})

it('each feed of a database has its own parameters', async (server) => {
  const db = await server.newDatabase()
  const open = (query) => server.client.open(`/${db}/_changes?feed=continuous&since=now&heartbeat=10&${query}`)
  const feeds = await Promise.all(['', 'include_docs=true', 'style=all_docs', 'filter=_doc_ids&doc_ids=["b"]'].map(open))
  await Promise.all(feeds.map((feed) => feed.lines(2)))
  await put(server, `/${db}/a`, { n: 1 })
  await put(server, `/${db}/b`, { n: 2 })
  const [plain, docs, leaves, filtered] = feeds
  for (const feed of [plain, docs, leaves]) {
    const row = await feed.row()
    assert.deepEqual([row.id, row.doc?.n], ['a', feed === docs ? 1 : undefined])
  }
  for (const feed of feeds) assert.equal((await feed.row()).id, 'b')
  assert.deepEqual(await filtered.lines(1), [''])
  for (const feed of feeds) feed.close()
})

it('a feed can contain the largest document', async (server) => {
  const db = await server.newDatabase()
  const feed = await server.client.open(`/${db}/_changes?feed=continuous&since=now&heartbeat=60000&include_docs=true`)
  const text = 'x'.repeat(7_900_000)
  const docs = [{ _id: 'small', text: text.slice(0, 900_000) }, { _id: 'large', text }]
  await server.client.ok('POST', `/${db}/_bulk_docs`, { docs })
  for (const { _id, text } of docs) {
    const { id, doc } = await feed.row()
    assert.deepEqual([id, doc.text.length], [_id, text.length])
  }
  feed.close()
})

it('a feed neither misses nor repeats concurrent writes of several clients', async (server) => {
  const db = await server.newDatabase()
  const feed = await server.client.open(`/${db}/_changes?feed=continuous&heartbeat=60000`)
  const writers = Array.from({ length: 8 }, async (_, w) => {
    for (let i = 0; i < 25; ++i) await put(server, `/${db}/${w}-${i}`)
  })
  const ids = new Set()
  let last = 0
  while (ids.size < 200) {
    const { id, seq } = await feed.row()
    assert.ok(!ids.has(id), `${id} comes twice`)
    ids.add(id)
    const number = parseInt(seq)
    assert.ok(number >= last, `${number} comes after ${last}`)
    last = number
  }
  feed.close()
  await Promise.all(writers)
})

it('polls that continue from the last sequence miss nothing', async (server) => {
  const db = await server.newDatabase()
  const writer = (async () => {
    for (let i = 0; i < 100; ++i) await put(server, `/${db}/doc${i}`)
  })()
  const ids = []
  for (let since = 0; ids.length < 100; ) {
    const { results, last_seq } = await server.client.ok('GET', `/${db}/_changes?feed=longpoll&since=${since}&limit=7`)
    ids.push(...results.map(({ id }) => id))
    since = last_seq
  }
  await writer
  assert.deepEqual(ids.sort(), Array.from({ length: 100 }, (_, i) => `doc${i}`).sort())
})

testWithServer('the feed of all databases waits and continues', {}, async (server) => {
  const updates = (feed) => server.client.open(`/_db_updates?feed=${feed}&since=now&heartbeat=10`)
  const poll = await updates('longpoll')
  const continuous = await updates('continuous')
  const events = await updates('eventsource')
  await Promise.all([poll, continuous, events].map((feed) => feed.lines(6)))
  await put(server, '/fresh')
  assert.equal(await poll.ended(), 'end')
  assert.equal(JSON.parse(poll.text).results[0].db_name, 'fresh')
  const upTo = async (wanted) => {
    for (;;) {
      const { db_name, type } = await continuous.row()
      if (db_name === 'fresh' && type === wanted) return
    }
  }
  await upTo('created')
  await put(server, '/fresh/a')
  await upTo('updated')
  await server.client.ok('DELETE', '/fresh')
  await upTo('deleted')
  const { data, id } = await events.eventOf(undefined)
  assert.deepEqual([JSON.parse(data).db_name, JSON.parse(data).seq], ['fresh', id])
  continuous.close()
  events.close()
})

testWithServer(
  'a client that stops reading is disconnected, and others are served',
  { env: { DIVAN_CHTTPD_SEND_TIMEOUT: '2000' } },
  async (server) => {
    const db = await server.newDatabase()
    const text = 'x'.repeat(1_000_000)
    const stalled = net.connect(server.client.port, server.client.hostname)
    let lost = false
    stalled.on('error', () => (lost = true)).on('close', () => (lost = true))
    const basic = Buffer.from(server.credentials).toString('base64')
    stalled.write(
      `GET /${db}/_changes?feed=continuous&include_docs=true&heartbeat=60000 HTTP/1.1\r\nHost: x\r\n` +
        `Authorization: Basic ${basic}\r\n\r\n`
    )
    stalled.pause() // the client stops reading here
    const reader = await server.client.open(`/${db}/_changes?feed=continuous&heartbeat=60000`)
    // This test's own client, the reader, and the one that does not read.
    const connections = await server.metric('divan_http_connections')
    for (let i = 0; i < 20; ++i) {
      await put(server, `/${db}/doc${i}`, { text })
      assert.equal((await reader.row()).id, `doc${i}`)
    }
    await waitFor('the stalled client to be dropped', async () => {
      return (await server.metric('divan_http_connections')) < connections
    })
    stalled.resume()
    await waitFor('the stalled client to notice', () => lost)
    await put(server, `/${db}/after`)
    assert.equal((await reader.row()).id, 'after')
    reader.close()
  }
)

testWithServer('feeds end as complete when the server stops', {}, async (server) => {
  const db = await server.newDatabase()
  const kinds = ['longpoll', 'continuous', 'eventsource']
  const feeds = await Promise.all([
    ...kinds.map((feed) => server.client.open(`/${db}/_changes?feed=${feed}&heartbeat=60000`)),
    ...kinds.map((feed) => server.client.open(`/_db_updates?feed=${feed}&since=now&heartbeat=60000`))
  ])
  await server.stop()
  for (const feed of feeds) assert.equal(await feed.ended(), 'end')
  assert.deepEqual(JSON.parse(feeds[0].text).results, [])
  assert.deepEqual(Object.keys(JSON.parse(feeds[1].text)), ['last_seq', 'pending'])
})

testWithServer('a sequence of a feed is valid after a restart', {}, async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/a`)
  const { last_seq } = await server.client.ok('GET', `/${db}/_changes`)
  const updates = await server.client.ok('GET', '/_db_updates?since=now')
  await server.kill()
  const again = await Server.start({ dataDir: server.dataDir })
  try {
    await put(again, `/${db}/b`)
    await put(again, '/other')
    const changes = await again.client.ok('GET', `/${db}/_changes?since=${last_seq}`)
    assert.deepEqual(changes.results.map(({ id }) => id), ['b'])
    const found = await again.client.ok('GET', `/_db_updates?since=${updates.last_seq}`)
    assert.ok(found.results.some(({ db_name, type }) => db_name === 'other' && type === 'created'))
  } finally {
    await again.stop()
  }
})
