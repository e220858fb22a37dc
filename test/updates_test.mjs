// /_db_updates: the rows of the specification's tables and its cases 1 to 13, from a client's view. Cases of
// a single request and its response are in cases/db_updates.txt.
import assert from 'node:assert/strict'
import { Server, testWithServer } from './support/server.mjs'
import { pause, waitFor } from './support/wait.mjs'

const SETTINGS = '/_node/_local/_config/global_changes'
const put = (server, target, body = {}) => server.client.ok('PUT', target, body)
const set = (server, key, value) => server.client.put(`${SETTINGS}/${key}`, JSON.stringify(value))

const place = async (server) => (await server.client.ok('GET', '/_db_updates?since=now')).last_seq
const rows = async (client, since, more = '') =>
  (await client.ok('GET', `/_db_updates?since=${since}${more}`)).results.map(({ db_name, type }) => `${db_name} ${type}`)

/** Waits for a row of the database and kind after the sequence, and returns it. */
const row = (server, since, db_name, type, options) =>
  waitFor(`a row that ${db_name} is ${type}`, async () => {
    const { results } = await server.client.ok('GET', `/_db_updates?since=${since}`)
    return results.find((found) => found.db_name === db_name && found.type === type)
  }, options)

/**
 * With a delay of a minute: updates 32 databases in one transaction, so that they are one batch however slow the machine is,
 * and a full pause follows it.
 */
async function pauseOfAMinute(server, names, id) {
  const since = await place(server)
  const docs = Object.fromEntries(names.map((name) => [name, [{ _id: id }]]))
  await server.client.ok('POST', '/_transact', { docs })
  for (const name of names) await row(server, since, name, 'updated')
}

testWithServer('cases 1 to 4: created and updated, one row of each, and not the feed\'s own database', {}, async (server) => {
  const start = await place(server) // behind what tells of `_users`
  await put(server, '/a')
  assert.deepEqual(await rows(server.client, start), ['a created', 'a updated'])
  const before = await place(server)
  await put(server, '/b')
  await put(server, '/a/doc')
  await row(server, before, 'a', 'updated')
  assert.deepEqual(await rows(server.client, start), ['a created', 'b created', 'b updated', 'a updated'])
  for (let i = 0; i < 1000; i += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, n) => put(server, `/b/doc${i + n}`)))
  }
  const middle = await place(server)
  await put(server, '/b/last')
  await row(server, middle, 'b', 'updated')
  await put(server, '/_global_changes')
  await put(server, '/_global_changes/doc')
  await put(server, '/c')
  const all = await rows(server.client, start)
  assert.equal(all.filter((found) => found === 'b updated').length, 1)
  // Its position depends on when the last of these many updates was processed.
  assert.deepEqual(all.filter((found) => found !== 'b updated'), [
    ...['a created', 'b created', 'a updated', 'c created', 'c updated']
  ])
})

testWithServer('case 5: update_db off and on, and over a restart', {}, async (server) => {
  await put(server, '/a')
  const before = await place(server)
  assert.equal((await set(server, 'update_db', 'false')).text, '"true"\n')
  await put(server, '/a/doc')
  await put(server, '/b')
  assert.equal((await set(server, 'update_db', 'true')).status, 200)
  assert.deepEqual(await rows(server.client, before), [])
  await put(server, '/a/other')
  await row(server, before, 'a', 'updated')
  assert.deepEqual(await rows(server.client, before), ['a updated'])

  await set(server, 'update_db', 'false')
  await server.kill()
  const again = await Server.start({ dataDir: server.dataDir })
  try {
    assert.equal(await again.client.ok('GET', `${SETTINGS}/update_db`), 'false')
    const off = await place(again)
    await put(again, '/c')
    assert.deepEqual(await rows(again.client, off), [])
    // Back to the default, at once.
    await again.client.ok('DELETE', `${SETTINGS}/update_db`)
    await put(again, '/d')
    assert.deepEqual(await rows(again.client, off), ['d created', 'd updated'])
  } finally {
    await again.stop()
  }
})

testWithServer('case 6: delays changed live', {}, async (server) => {
  const names = Array.from({ length: 32 }, (_, i) => `db${i}`)
  for (const name of names) await put(server, `/${name}`)
  for (const key of ['max_event_delay', 'max_write_delay']) {
    assert.equal((await set(server, key, '60000')).status, 200)
    await pauseOfAMinute(server, names, key)
    const since = await place(server)
    await put(server, `/db0/after-${key}`)
    await pause(200)
    assert.deepEqual(await rows(server.client, since), []) // the feed waits
    await server.client.ok('DELETE', `${SETTINGS}/${key}`)
    await row(server, since, 'db0', 'updated', { limit: 30_000 })
    assert.equal((await server.client.get(`${SETTINGS}/${key}`)).status, 404)
  }
})

testWithServer('an invalid setting is refused and changes nothing', {}, async (server) => {
  const bad = {
    max_event_delay: ['-1', 'x', '', '60001', '1.5', 25],
    max_write_delay: ['-1', 'x', '', '60001', '1.5', null],
    update_db: ['yes', '', '1', true],
    show_account: ['yes', true],
    account_feeds: ['yes', true]
  }
  const before = await server.client.ok('GET', SETTINGS)
  assert.deepEqual(before, {
    ...{ max_event_delay: '25', max_write_delay: '25', update_db: 'true', show_account: 'false', account_feeds: 'false' }
  })
  for (const [key, values] of Object.entries(bad)) {
    for (const value of values) {
      const answer = await set(server, key, value)
      assert.deepEqual([key, value, answer.status, answer.json.error], [key, value, 400, 'bad_request'])
    }
  }
  assert.deepEqual(await server.client.ok('GET', SETTINGS), before)
  await set(server, 'max_write_delay', '7')
  await server.kill()
  const again = await Server.start({ dataDir: server.dataDir })
  try {
    assert.deepEqual(await again.client.ok('GET', SETTINGS), { ...before, max_write_delay: '7' })
  } finally {
    await again.stop()
  }
})

testWithServer('case 7: a limit that is reached ends every kind of feed at once', {}, async (server) => {
  await put(server, '/a')
  for (const feed of ['normal', 'longpoll', 'continuous', 'eventsource']) {
    for (const limit of [0, 1]) {
      const stream = await server.client.open(`/_db_updates?feed=${feed}&limit=${limit}&heartbeat=60000`)
      assert.equal(await stream.ended(), 'end')
      assert.equal(stream.text.match(/db_name/g)?.length ?? 0, limit, `${feed} ${limit}`)
    }
  }
})

testWithServer('case 8: heartbeats are true, false or a number', {}, async (server) => {
  // Without one the feed ends after its timeout; with one it does not.
  for (const heartbeat of ['', '&heartbeat=false']) {
    const feed = await server.client.open(`/_db_updates?feed=continuous&since=now&timeout=1${heartbeat}`)
    assert.equal(await feed.ended(), 'end')
    assert.deepEqual(Object.keys(JSON.parse(feed.text)), ['last_seq'])
  }
  const beating = await server.client.open('/_db_updates?feed=continuous&since=now&timeout=1&heartbeat=10')
  assert.deepEqual(await beating.lines(3), ['', '', ''])
  const slow = await server.client.open('/_db_updates?feed=continuous&since=now&timeout=1&heartbeat=true')
  await put(server, '/a')
  assert.equal((await slow.row()).db_name, 'a')
  assert.equal((await beating.row()).db_name, 'a')
  assert.equal(slow.over, undefined)
  for (const feed of [beating, slow]) feed.close()
  for (const [bad, error] of [['x', 'invalid_integer'], ['', 'invalid_integer'], ['-1', 'bad_request'], ['0', 'bad_request']]) {
    const { status, json } = await server.client.get(`/_db_updates?feed=continuous&heartbeat=${bad}`)
    assert.deepEqual([bad, status, json.error], [bad, 400, error])
  }
})

testWithServer('case 9: an event source through three heartbeats, and where it was cut off', {}, async (server) => {
  const feed = await server.client.open('/_db_updates?feed=eventsource&since=now&heartbeat=10')
  assert.equal(feed.headers['content-type'], 'text/event-stream')
  let last
  for (const name of ['a', 'b']) {
    for (let i = 0; i < 3; ++i) assert.deepEqual(await feed.event(), { event: 'heartbeat', data: '' })
    await put(server, `/${name}`)
    for (const type of ['created', 'updated']) {
      const { data, id } = await feed.eventOf(undefined)
      assert.deepEqual(JSON.parse(data), { db_name: name, type, seq: id })
      last ??= id
    }
  }
  feed.close()
  const rest = await server.client.open('/_db_updates?feed=eventsource&limit=1', { headers: { 'Last-Event-ID': last } })
  const { data } = await rest.event()
  assert.deepEqual([JSON.parse(data).db_name, JSON.parse(data).type], ['a', 'updated'])
})

testWithServer('case 11: the ETag changes when a database is created again', {}, async (server) => {
  const known = async () => (await server.client.get('/_db_updates')).headers.etag
  const unchanged = async (etag) => {
    const { status, text } = await server.client.get('/_db_updates', { headers: { 'If-None-Match': etag } })
    return status === 304 && text === ''
  }
  const etags = []
  for (let i = 0; i < 2; ++i) {
    await put(server, '/a')
    etags.push(await known())
    assert.ok(await unchanged(etags.at(-1)))
    await server.client.ok('DELETE', '/a')
    etags.push(await known())
    assert.ok(await unchanged(etags.at(-1)))
  }
  assert.equal(new Set(etags).size, 4)
  for (const old of etags.slice(0, 3)) assert.ok(!(await unchanged(old)))
  // Rows that are shown count, too.
  await set(server, 'show_account', 'true')
  assert.ok(!(await unchanged(etags[3])))
})

testWithServer('case 12: killed right after the commit, the row is there after the restart', {}, async (server) => {
  const names = Array.from({ length: 32 }, (_, i) => `db${i}`)
  for (const name of names) await put(server, `/${name}`)
  await set(server, 'max_event_delay', '60000')
  await pauseOfAMinute(server, names, 'a')
  const since = await place(server)
  await put(server, '/db0/b')
  assert.deepEqual(await rows(server.client, since), [])
  await server.kill()
  const again = await Server.start({ dataDir: server.dataDir })
  try {
    await row(again, since, 'db0', 'updated')
  } finally {
    await again.stop()
  }
})

testWithServer('case 13: only for administrators, unless account_feeds is set', {}, async (server) => {
  await put(server, '/_node/_local/_config/chttpd_auth/iterations', '"10"')
  for (const name of ['ann', 'bob']) {
    await put(server, `/_users/org.couchdb.user:${name}`, { name, type: 'user', roles: [], password: 'x' })
  }
  const [ann, bob, nobody] = [server.as('ann:x'), server.as('bob:x'), server.as()]
  const refused = { status: 401, error: 'unauthorized', reason: 'You are not a server admin.' }
  const refusal = async (client) => {
    const { status, json } = await client.get('/_db_updates')
    return { status, ...json }
  }
  for (const client of [ann, bob, nobody]) assert.deepEqual(await refusal(client), refused)

  await set(server, 'account_feeds', 'true')
  assert.deepEqual(await refusal(nobody), refused)
  const since = await place(server)
  const feed = await ann.open(`/_db_updates?feed=continuous&since=${since}&heartbeat=10`)
  const poll = await ann.open(`/_db_updates?feed=longpoll&since=${since}&heartbeat=10`)
  for (const name of ['ann', 'annex%2Fx', 'bob%2Fone', 'ann%2Fone', 'ann%2Ftwo']) await put(server, `/${name}`)
  assert.deepEqual(await rows(ann, since), [
    ...['ann/one created', 'ann/one updated', 'ann/two created', 'ann/two updated']
  ])
  assert.deepEqual(await rows(bob, since), ['bob/one created', 'bob/one updated'])
  // The limit counts visible rows, and rows that are not visible do not end the poll.
  assert.deepEqual(await rows(ann, since, '&limit=3'), ['ann/one created', 'ann/one updated', 'ann/two created'])
  assert.deepEqual(await rows(ann, since, '&limit=1&descending=true'), ['ann/two updated'])
  assert.equal(await poll.ended(), 'end')
  assert.equal(JSON.parse(poll.text).results[0].db_name, 'ann/one')
  for (let i = 0; i < 4; ++i) assert.match((await feed.row()).db_name, /^ann\//)

  // The account is shown to administrators that request it.
  const shown = async (client) => (await client.ok('GET', `/_db_updates?since=${since}`)).results
  assert.ok((await shown(server.client)).every((found) => !('account' in found)))
  await set(server, 'show_account', 'true')
  // The row that the writes of ann's and bob's own documents caused may come after `since`.
  const accounts = (await shown(server.client))
    .filter(({ db_name }) => db_name !== '_users')
    .map(({ db_name, account }) => [db_name, account])
  assert.deepEqual(new Map(accounts), new Map([
    ...[['ann', '_admin'], ['annex/x', 'annex'], ['bob/one', 'bob'], ['ann/one', 'ann'], ['ann/two', 'ann']]
  ]))
  assert.ok((await shown(ann)).every((found) => !('account' in found)))

  // When it is switched off, open feeds end with the next row.
  await set(server, 'account_feeds', 'false')
  await put(server, '/ann%2Fthree')
  assert.equal(await feed.ended(), 'end')
  assert.ok(!feed.text.includes('ann/three'))
  assert.deepEqual(await refusal(ann), refused)
})

testWithServer('a consumer that repeatedly disconnects misses nothing', {}, async (server) => {
  const names = Array.from({ length: 8 }, (_, i) => `db${i}`)
  for (const name of names) await put(server, `/${name}`)
  const since = await place(server)
  let writing = true
  const written = new Map()
  const writer = (async () => {
    for (let i = 0; i < 300; ++i) {
      const name = names[(i * 5) % names.length]
      await put(server, `/${name}/doc${i}`)
      if (i % 7 === 0) await pause(3)
    }
    for (const name of names) written.set(name, (await server.client.ok('GET', `/${name}`)).update_seq)
    writing = false
  })()
  // A consumer stores only the sequence of the last row that it has seen.
  const consumer = () => {
    const state = { seq: since, last: new Map() }
    state.take = ({ db_name, seq }) => {
      assert.ok(parseInt(seq) >= parseInt(state.seq) && seq !== state.seq, `${seq} after ${state.seq}`)
      state.seq = seq
      state.last.set(db_name, seq)
    }
    state.complete = () =>
      !writing && names.every((name) => parseInt(state.last.get(name) ?? '0') > parseInt(written.get(name)))
    return state
  }
  const polling = (async () => {
    const state = consumer()
    while (!state.complete()) {
      const { results } = await server.client.ok(
        'GET',
        `/_db_updates?feed=longpoll&since=${state.seq}&timeout=100&limit=2`
      )
      results.forEach(state.take)
    }
  })()
  const cut = (async () => {
    const state = consumer()
    let random = 1
    while (!state.complete()) {
      const feed = await server.client.open(`/_db_updates?feed=continuous&since=${state.seq}&timeout=100`)
      random = (random * 48271) % 2147483647
      for (let left = random % 4; left >= 0; --left) {
        const found = await feed.row()
        if (!found?.db_name) break
        state.take(found)
      }
      feed.close()
    }
  })()
  await Promise.all([writer, polling, cut])
})

testWithServer('metrics count the work', {}, async (server) => {
  const metric = (name) => server.metric(`divan_global_changes_${name}`)
  const before = await metric('db_writes_total')
  const transactions = await metric('rpcs_total')
  await put(server, '/a')
  assert.equal(await metric('db_writes_total'), before + 2)
  await put(server, '/a/doc')
  await waitFor('the row of the update', async () => (await metric('db_writes_total')) === before + 3)
  assert.ok((await metric('rpcs_total')) > transactions)
  const names = Array.from({ length: 32 }, (_, i) => `db${i}`)
  for (const name of names) await put(server, `/${name}`)
  await set(server, 'max_event_delay', '60000')
  await pauseOfAMinute(server, names, 'b')
  // Some may have been counted after the batch had found them.
  const counted = await metric('listener_pending_updates')
  for (let i = 0; i < 3; ++i) await put(server, `/db0/doc${i}`)
  assert.equal(await metric('listener_pending_updates'), counted + 3)
  await set(server, 'max_event_delay', '0')
  await waitFor('all marks to be scanned', async () => (await metric('listener_pending_updates')) === 0)
  await waitFor('all to be written', async () => (await metric('server_pending_updates')) === 0)
  for (const name of ['event_doc_conflict_total', 'failures_total']) assert.equal(await metric(name), 0)
  assert.ok((await metric('conflicts_total')) >= 0)
})
