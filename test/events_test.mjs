// Channels of the event bus over HTTP.
import assert from 'node:assert/strict'
import net from 'node:net'
import { shareServer, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer()

let channels = 0
const newChannel = () => `channel${++channels}`
const publish = (client, channel, data) => client.ok('POST', `/_events/${channel}`, JSON.stringify(data))
const listen = (client, channel, query = 'heartbeat=60000') => client.open(`/_events/${channel}?${query}`)
const subscribers = async (client, channel) => {
  const { channels } = await client.ok('GET', '/_events')
  return channels.find(({ name }) => name === channel)?.subscribers
}

it('subscribers get every event, of any JSON type, in the order of publication', async ({ client }) => {
  const channel = newChannel()
  const events = [{ n: 1 }, [1, { a: null }], 'täxt\n"\u2028', 2.5, true, null, {}]
  const feeds = await Promise.all([listen(client, channel), listen(client, channel, 'feed=live'), listen(client, channel, '')])
  const other = await listen(client, newChannel())
  assert.equal(feeds[0].headers['content-type'], 'application/json')
  for (const event of events) assert.deepEqual(await publish(client, channel, event), { ok: true, reached: 3 })
  for (const feed of feeds) {
    for (const data of events) assert.deepEqual(await feed.row(), { channel, data })
    feed.close()
  }
  assert.equal(other.text, '')
  other.close()
})

it('an event keeps its JSON text', async ({ client }) => {
  const channel = newChannel()
  const feed = await listen(client, channel)
  await client.ok('POST', `/_events/${channel}`, '{ "b" : 1.500, "a":12345678901234567890,\n "b":2 }')
  assert.equal(await feed.line(), `{"channel":"${channel}","data":{"b":1.500,"a":12345678901234567890,"b":2}}`)
  feed.close()
})

it('many publishers: all subscribers see the same order, which keeps that of each publisher', async ({ client }) => {
  const channel = newChannel()
  const feeds = await Promise.all([listen(client, channel), listen(client, channel, 'feed=eventsource&heartbeat=60000')])
  const publishers = Array.from({ length: 8 }, async (_, p) => {
    for (let n = 0; n < 30; ++n) await publish(client, channel, [p, n])
  })
  const seen = [[], []]
  for (let i = 0; i < 240; ++i) {
    seen[0].push((await feeds[0].row()).data)
    seen[1].push(JSON.parse((await feeds[1].eventOf(undefined)).data).data)
  }
  await Promise.all(publishers)
  assert.deepEqual(seen[0], seen[1])
  for (let p = 0; p < 8; ++p) {
    assert.deepEqual(seen[0].filter(([of]) => of === p).map(([, n]) => n), Array.from({ length: 30 }, (_, n) => n))
  }
  for (const feed of feeds) feed.close()
})

it('a client that has received the head of the response misses nothing from then on', async ({ client }) => {
  for (let i = 0; i < 100; ++i) {
    const channel = newChannel()
    const feed = await listen(client, channel, i % 2 ? 'feed=eventsource' : '')
    assert.deepEqual(await publish(client, channel, i), { ok: true, reached: 1 })
    feed.close()
  }
})

it('a continuous feed sends heartbeats while it waits, and then rows', async ({ client }) => {
  const channel = newChannel()
  const feed = await listen(client, channel, 'heartbeat=10')
  for (const n of [1, 2, 3]) {
    assert.deepEqual(await feed.lines(3), ['', '', ''])
    await publish(client, channel, n)
    assert.equal((await feed.row()).data, n)
  }
  feed.close()
})

it('an event source stays well formed through its heartbeats', async ({ client }) => {
  const channel = newChannel()
  const feed = await listen(client, channel, 'feed=eventsource&heartbeat=10')
  assert.equal(feed.headers['content-type'], 'text/event-stream')
  for (const n of [1, 2]) {
    for (let i = 0; i < 3; ++i) assert.deepEqual(await feed.event(), { event: 'heartbeat', data: '' })
    await publish(client, channel, { n })
    const event = await feed.eventOf(undefined)
    assert.deepEqual([Object.keys(event), JSON.parse(event.data)], [['data'], { channel, data: { n } }])
  }
  feed.close()
})

it('a feed ends after its limit or its timeout, without a last_seq', async ({ client }) => {
  const channel = newChannel()
  const limited = await listen(client, channel, 'limit=2&heartbeat=60000')
  for (const n of [1, 2, 3]) await publish(client, channel, n)
  assert.equal(await limited.ended(), 'end')
  assert.deepEqual(limited.text.trimEnd().split('\n').map((line) => JSON.parse(line).data), [1, 2])
  const timed = await listen(client, channel, 'timeout=10')
  assert.equal(await timed.ended(), 'end')
  assert.equal(timed.text, '')
  await waitFor('both to be gone', async () => (await subscribers(client, channel)) === undefined)
})

it('a client that disconnects is unsubscribed at once, and a channel ends with its last subscriber', async ({ client }) => {
  const channel = newChannel()
  const [first, second] = await Promise.all([listen(client, channel), listen(client, channel, 'feed=eventsource')])
  const all = await client.ok('GET', '/_events')
  assert.deepEqual(all.channels.find(({ name }) => name === channel), { name: channel, subscribers: 2 })
  assert.equal(all.subscribers, all.channels.reduce((sum, one) => sum + one.subscribers, 0))
  first.close()
  await waitFor('the first to be gone', async () => (await subscribers(client, channel)) === 1)
  assert.deepEqual(await publish(client, channel, 'still'), { ok: true, reached: 1 })
  assert.equal(JSON.parse((await second.eventOf(undefined)).data).data, 'still')
  second.close()
  await waitFor('the channel to be gone', async () => (await subscribers(client, channel)) === undefined)
  assert.deepEqual(await publish(client, channel, 'nobody'), { ok: true, reached: 0 })
})

it('a name consists of its parts, whatever characters these contain', async ({ client }) => {
  const base = newChannel()
  const names = [`${base}/a/b`, `${base}/a%2Fb`, `${base}%2Fa/b`, `${base}/a~1b`, `${base}/%C3%A4%20%00`, `${base}/_dbs`, base]
  const feeds = await Promise.all(names.map((name) => listen(client, name)))
  const { channels } = await client.ok('GET', '/_events')
  for (const name of names) {
    assert.ok(channels.some((channel) => channel.name === name && channel.subscribers === 1), name)
    assert.deepEqual(await publish(client, name, name), { ok: true, reached: 1 })
  }
  for (const [i, feed] of feeds.entries()) {
    assert.deepEqual(await feed.row(), { channel: names[i], data: names[i] })
    feed.close()
  }
})

it('an event of the largest size is delivered, a larger one is refused', async ({ client }) => {
  const channel = newChannel()
  const feed = await listen(client, channel)
  const largest = 'x'.repeat((1 << 20) - 2)
  assert.deepEqual(await publish(client, channel, largest), { ok: true, reached: 1 })
  const refused = await client.post(`/_events/${channel}`, JSON.stringify(largest + 'x'))
  assert.deepEqual([refused.status, refused.json], [
    413, { error: 'event_too_large', reason: 'The event is too large; at most 1048576 bytes are allowed.' }
  ])
  await publish(client, channel, 'after')
  assert.equal((await feed.row()).data, largest)
  assert.equal((await feed.row()).data, 'after')
  feed.close()
})

testWithServer('events of databases', {}, async ({ client }) => {
  const one = await listen(client, '_db/a%2Fb')
  const all = await listen(client, '_dbs', 'feed=eventsource&heartbeat=60000')
  const both = async () => {
    const row = await one.row()
    assert.deepEqual(JSON.parse((await all.eventOf(undefined)).data), row)
    return row
  }
  const event = (type, id) => ({ db_name: 'a/b', type, ...(id ? { id } : {}) })
  await client.ok('PUT', '/a%2Fb')
  assert.deepEqual(await both(), event('created'))
  await client.ok('PUT', '/a%2Fb/x', {})
  assert.deepEqual(await both(), event('updated'))
  await client.ok('POST', '/a%2Fb/_bulk_docs', { docs: [{}, {}, {}] })
  assert.deepEqual(await both(), event('updated')) // once per batch
  await client.ok('PUT', '/a%2Fb/_local/l', {})
  assert.deepEqual(await both(), event('local_updated', '_local/l'))
  await client.ok('PUT', '/other')
  assert.deepEqual(JSON.parse((await all.eventOf(undefined)).data), { db_name: 'other', type: 'created' })
  await client.ok('PUT', '/a%2Fb/_design/d', { views: { v: { map: 'function (doc) { emit(1) }' } } })
  assert.deepEqual(await both(), event('updated'))
  assert.deepEqual(await both(), event('ddoc_updated', '_design/d'))
  await client.ok('GET', '/a%2Fb/_design/d/_view/v')
  const commit = await both()
  assert.deepEqual([commit.type, commit.db_name, typeof commit.id], ['index_commit', 'a/b', 'string'])
  await client.ok('DELETE', '/a%2Fb')
  for (let row = commit; row.type !== 'deleted'; ) {
    row = await both()
    assert.ok(['index_commit', 'deleted'].includes(row.type), row.type)
  }
  one.close()
  all.close()
})

testWithServer('the role `events` may use every channel except the server\'s own', {}, async (server) => {
  const { client } = server
  await client.ok('PUT', '/_node/_local/_config/chttpd_auth/iterations', '"10"')
  const add = (name, roles) =>
    client.ok('PUT', `/_users/org.couchdb.user:${name}`, { name, type: 'user', roles, password: 'pw' })
  await add('ann', ['other', 'events'])
  await add('bob', ['other', 'event', '\u0065vents '])
  const [ann, bob] = [server.as('ann:pw'), server.as('bob:pw')]
  const own = await listen(client, '_dbs')
  const feed = await listen(ann, 'orders')
  assert.deepEqual(await publish(ann, 'orders', 1), { ok: true, reached: 1 })
  assert.deepEqual(await publish(client, 'orders', 2), { ok: true, reached: 1 })
  assert.deepEqual([(await feed.row()).data, (await feed.row()).data], [1, 2])

  const seen = await ann.ok('GET', '/_events')
  assert.deepEqual([seen.channels, seen.subscribers], [[{ name: 'orders', subscribers: 1 }], 1])
  const names = (await client.ok('GET', '/_events')).channels.map(({ name }) => name)
  for (const name of ['_dbs', '_stop', 'orders']) assert.ok(names.includes(name), name)
  assert.deepEqual(names, [...names].sort())

  for (const target of ['/_events/_dbs', '/_events/_db/a', '/_events/_updates', '/_events/%5Fdbs']) {
    for (const method of ['GET', 'POST']) {
      const { status, json } = await ann.request(method, target, { body: method === 'POST' ? '{}' : undefined })
      assert.deepEqual([status, json.error], [403, 'forbidden'], target)
    }
  }
  const why = 'Events are for server admins and users with the role `events`.'
  for (const [method, target] of [['GET', '/_events'], ['GET', '/_events/orders'], ['POST', '/_events/orders']]) {
    const { status, json } = await bob.request(method, target, { body: method === 'POST' ? '1' : undefined })
    assert.deepEqual([status, json], [401, { error: 'unauthorized', reason: why }], target)
  }
  feed.close()
  own.close()
})

testWithServer(
  'a client that stops reading gets the number of events that it missed, and delays no other',
  { env: { DIVAN_CHTTPD_SEND_TIMEOUT: '3600000' } },
  async (server) => {
    const { client } = server
    const kEvents = 400
    const stalled = net.connect(client.port, client.hostname)
    stalled.setEncoding('latin1')
    const basic = Buffer.from(server.credentials).toString('base64')
    stalled.write(
      `GET /_events/big?heartbeat=3600000 HTTP/1.0\r\nHost: x\r\nAuthorization: Basic ${basic}\r\n\r\n`
    )
    let text = ''
    stalled.on('data', (part) => (text += part))
    await waitFor('the answer to begin', () => text.includes('\r\n\r\n'))
    stalled.pause()
    const reader = await listen(client, 'big')
    const filler = 'x'.repeat(100_000)
    for (let n = 0; n < kEvents; ++n) {
      assert.deepEqual(await publish(client, 'big', { n, filler }), { ok: true, reached: 2 })
      assert.equal((await reader.row()).data.n, n)
    }
    assert.ok((await client.ok('GET', '/_events')).lagged > 0)
    assert.ok((await server.metric('divan_events_lagged_total')) > 0)
    stalled.resume()
    await publish(client, 'big', { n: kEvents })
    await waitFor('the last event', () => text.includes(`{"n":${kEvents}}`))
    const rows = text.slice(text.indexOf('\r\n\r\n') + 4).split('\n').filter((line) => line.trim() !== '')
    let next = 0
    let missed = 0
    for (const row of rows.map((line) => JSON.parse(line))) {
      if (row.lagged !== undefined) {
        missed += row.lagged
        next += row.lagged
      } else {
        assert.equal(row.data.n, next++)
      }
    }
    assert.equal(next, kEvents + 1)
    assert.ok(missed > 0 && missed < kEvents)
    assert.equal(missed, (await client.ok('GET', '/_events')).lagged)
    // Pending events of a client are limited: in its mailbox and in its connection.
    stalled.destroy()
    reader.close()
  }
)

testWithServer('the work of the bus is counted', {}, async (server) => {
  const { client } = server
  const metric = (name) => server.metric(`divan_events_${name}`)
  const names = ['published_total', 'delivered_total', 'lagged_total', 'channels', 'subscribers']
  const read = async () => Promise.all(names.map(metric))
  // A feed that is only woken misses no change.
  await client.ok('PUT', '/db')
  const idle = await metric('subscribers')
  const changes = await client.open('/db/_changes?feed=continuous&heartbeat=60000')
  for (const id of ['a', 'b']) await client.ok('PUT', `/db/${id}`, {})
  for (const id of ['a', 'b']) assert.equal((await changes.row()).id, id)
  changes.close()
  await waitFor('the feed to be gone', async () => (await metric('subscribers')) === idle)
  const before = await read()
  const feeds = await Promise.all(['a', 'a', 'b'].map((channel) => listen(client, channel)))
  await publish(client, 'a', 1)
  await publish(client, 'b', 1)
  await publish(client, 'nobody', 1)
  const after = await read()
  // A feed also subscribes to the server's stop.
  assert.deepEqual(after.map((value, i) => value - before[i]), [2, 3, 0, 3, 6])
  const { published, delivered, lagged } = await client.ok('GET', '/_events')
  assert.deepEqual([published, delivered, lagged], after.slice(0, 3))
  assert.equal(lagged, 0)
  for (const feed of feeds) feed.close()
})

testWithServer('feeds of events end as complete when the server stops', {}, async (server) => {
  const feeds = await Promise.all(
    ['a?heartbeat=60000', 'a?feed=eventsource', '_dbs', '_db/x?feed=eventsource&heartbeat=60000'].map((target) =>
      server.client.open(`/_events/${target}`)
    )
  )
  await publish(server.client, 'a', 'last')
  await server.stop()
  for (const feed of feeds) assert.equal(await feed.ended(), 'end')
  assert.equal(feeds[0].text, '{"channel":"a","data":"last"}\n')
  assert.equal(feeds[1].text, 'data: {"channel":"a","data":"last"}\n\n')
  assert.equal(feeds[2].text, '')
})
