// Attachments: contents of all sizes, stored once and counted; limits; many writers; backups and `divan verify`.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import http from 'node:http'
import { test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import nano from 'nano'
import { backUp, restoreInto } from './support/backup.mjs'
import { beginRequest } from './support/raw.mjs'
import { onlyEmbedded, runDivan, Server, shareServer, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer()
const CHUNK = 96_000 // bytes of a row of content

const md5 = (bytes) => 'md5-' + createHash('md5').update(bytes).digest('base64')

/** The bytes of an answer, which the client of these tests decodes as text. */
async function bytesOf(server, target, headers = {}) {
  const answer = await fetch(server.url + target, {
    headers: { Authorization: 'Basic ' + Buffer.from(server.credentials).toString('base64'), ...headers }
  })
  return { status: answer.status, headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) }
}

/** The parts of a multipart body. */
function partsOf(type, body) {
  const boundary = /boundary="?([^";]+)/.exec(type)[1]
  const parts = []
  let at = body.indexOf(`--${boundary}`)
  for (;;) {
    const begin = at + boundary.length + 2
    if (body.subarray(begin, begin + 2).equals(Buffer.from('--'))) return parts
    at = body.indexOf(`\r\n--${boundary}`, begin)
    assert.ok(at >= 0, 'the body has an end')
    const blank = body.indexOf('\r\n\r\n', begin)
    const headers = {}
    for (const line of String(body.subarray(begin + 2, blank)).split('\r\n')) {
      headers[line.slice(0, line.indexOf(':')).toLowerCase()] = line.slice(line.indexOf(':') + 1).trim()
    }
    parts.push({ headers, bytes: body.subarray(blank + 4, at) })
    at += 2
  }
}

async function uploadGzip(server, target, bytes, type) {
  const answer = await fetch(server.url + target, {
    method: 'PUT',
    body: gzipSync(bytes),
    headers: {
      Authorization: 'Basic ' + Buffer.from(server.credentials).toString('base64'),
      'Content-Type': type,
      'Content-Encoding': 'gzip'
    }
  })
  assert.equal(answer.status, 201)
}

async function upload(server, target, bytes, type = 'application/octet-stream') {
  const answer = await fetch(server.url + target, {
    method: 'PUT',
    body: bytes,
    headers: { Authorization: 'Basic ' + Buffer.from(server.credentials).toString('base64'), 'Content-Type': type }
  })
  const json = await answer.json()
  assert.equal(answer.status, 201, JSON.stringify(json))
  return json.rev
}

const external = async (server, db) => (await server.client.ok('GET', db)).sizes.external

it('contents of all sizes come back as they were sent', async (server) => {
  const db = `/${await server.newDatabase()}`
  const sizes = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 4 * CHUNK, 4 * CHUNK + 1, 9 * CHUNK + 7, 5_000_000]
  const contents = sizes.map((size) => randomBytes(size))
  const _attachments = {}
  let rev
  for (const [i, bytes] of contents.entries()) {
    _attachments[`inline ${i}`] = { data: bytes.subarray(0, 800_000).toString('base64') }
    rev = await upload(server, `${db}/standalone/a${i}${rev ? `?rev=${rev}` : ''}`, bytes)
  }
  await server.client.ok('PUT', `${db}/inline`, { _attachments })
  for (const [i, bytes] of contents.entries()) {
    for (const [target, expected] of [[`standalone/a${i}`, bytes], [`inline/inline%20${i}`, bytes.subarray(0, 800_000)]]) {
      const answer = await bytesOf(server, `${db}/${target}`)
      assert.ok(answer.bytes.equals(expected), target)
      assert.equal(answer.headers.get('etag'), `"${md5(expected).slice(4)}"`)
    }
  }
  const { _attachments: stubs } = await server.client.ok('GET', `${db}/standalone`)
  assert.deepEqual(Object.values(stubs).map(({ digest, length }) => [digest, length]), contents.map((bytes) => [md5(bytes), bytes.length]))
  const { _attachments: inline } = await server.client.ok('GET', `${db}/inline?attachments=true`)
  for (const [i, bytes] of contents.entries()) {
    assert.equal(inline[`inline ${i}`].data, bytes.subarray(0, 800_000).toString('base64'))
  }
})

it('ranges at and between the rows of a content', async (server) => {
  const db = `/${await server.newDatabase()}`
  const bytes = randomBytes(10 * CHUNK + 5)
  await upload(server, `${db}/a/x`, bytes)
  const ends = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 4 * CHUNK - 1, 4 * CHUNK, 9 * CHUNK + 3, 10 * CHUNK, 10 * CHUNK + 4]
  for (const first of ends) {
    for (const last of ends.filter((end) => end >= first)) {
      const answer = await bytesOf(server, `${db}/a/x`, { Range: `bytes=${first}-${last}` })
      assert.equal(answer.status, 206)
      assert.equal(answer.headers.get('content-range'), `bytes ${first}-${last}/${bytes.length}`)
      assert.ok(answer.bytes.equals(bytes.subarray(first, last + 1)), `${first}-${last}`)
    }
  }
})

/** The bytes of an answer as they were sent, with `Accept-Encoding`. */
function rawBytesOf(server, target, accepted, headers = {}) {
  return new Promise((resolve, reject) => {
    const options = { auth: server.credentials, headers: { 'Accept-Encoding': accepted, ...headers } }
    http.get(server.url + target, options, async (answer) => {
      const parts = []
      for await (const part of answer) parts.push(part)
      resolve({ status: answer.statusCode, headers: answer.headers, bytes: Buffer.concat(parts) })
    }).on('error', reject)
  })
}

it('a compressed content is sent as gzip to those who take it', async (server) => {
  const db = `/${await server.newDatabase()}`
  for (const length of [100, CHUNK, 4 * CHUNK + 1, 10 * CHUNK + 17]) {
    const text = Buffer.from('a line of text, and another\n'.repeat(length / 20)).subarray(0, length)
    const digest = createHash('md5').update(text).digest('base64')
    const target = `${db}/doc${length}/x`
    await upload(server, target, text, 'text/plain; charset=utf-8')
    for (const accepted of ['gzip', 'br, gzip;q=0.5', '*', ['br', 'gzip']]) {
      const { status, headers, bytes } = await rawBytesOf(server, target, accepted)
      assert.equal(status, 200)
      assert.equal(headers['content-encoding'], 'gzip')
      assert.equal(headers['content-length'], String(bytes.length))
      assert.equal(headers.etag, `"${digest}-gzip"`)
      assert.equal(headers.vary, 'Accept-Encoding')
      assert.ok(bytes.length < text.length && gunzipSync(bytes).equals(text))
    }
    for (const accepted of ['', 'identity', 'gzip;q=0, *', 'gzip;q=0.000', 'br']) {
      const { headers, bytes } = await rawBytesOf(server, target, accepted)
      assert.equal(headers['content-encoding'], undefined)
      assert.equal(headers.etag, `"${digest}"`)
      assert.equal(headers.vary, 'Accept-Encoding')
      assert.ok(bytes.equals(text))
    }
    // A range is one of the content.
    const { status, headers, bytes } = await rawBytesOf(server, target, 'gzip', { Range: `bytes=7-${length - 2}` })
    assert.equal(status, 206)
    assert.equal(headers['content-encoding'], undefined)
    assert.ok(bytes.equals(text.subarray(7, length - 1)))
    // Not of what was begun as gzip.
    const whole = await rawBytesOf(server, target, 'gzip', { Range: 'bytes=7-', 'If-Range': `"${digest}-gzip"` })
    assert.equal(whole.status, 200)
    assert.ok(gunzipSync(whole.bytes).equals(text))
    const known = await rawBytesOf(server, target, 'gzip', { 'If-None-Match': `"${digest}-gzip"` })
    assert.equal(known.status, 304)
    assert.equal(known.bytes.length, 0)
    assert.equal(known.headers.vary, 'Accept-Encoding')
    // A client that has the content itself needs nothing either.
    const other = await rawBytesOf(server, target, 'gzip', { 'If-None-Match': `"${digest}"` })
    assert.equal(other.status, 304)
    assert.equal(other.headers.etag, `"${digest}"`)
    const never = await rawBytesOf(server, target, 'identity', { 'If-None-Match': `"${digest}-gzip"` })
    assert.equal(never.status, 200)
  }
})

it('what a client compresses stays compressed, and what does not become smaller does not', async (server) => {
  const db = `/${await server.newDatabase()}`
  const picture = Buffer.from('<svg>'.repeat(1000))
  await uploadGzip(server, `${db}/doc/picture`, picture, 'image/svg+xml')
  const sent = await rawBytesOf(server, `${db}/doc/picture`, 'gzip')
  assert.equal(sent.headers['content-encoding'], 'gzip')
  assert.ok(gunzipSync(sent.bytes).equals(picture))
  // In a transaction over several documents, too.
  const lines = Buffer.from('a line\n'.repeat(2000))
  const attachment = { content_type: 'text/plain', data: lines.toString('base64') }
  await server.client.ok('POST', '/_transact', { docs: { [db.slice(1)]: [{ _id: 'transact', _attachments: { x: attachment } }] } })
  const written = await rawBytesOf(server, `${db}/transact/x`, 'gzip')
  assert.equal(written.headers['content-encoding'], 'gzip')
  assert.ok(gunzipSync(written.bytes).equals(lines))
  const noise = randomBytes(300_000)
  await upload(server, `${db}/noise/x`, noise, 'text/plain')
  const raw = await rawBytesOf(server, `${db}/noise/x`, 'gzip')
  assert.equal(raw.headers['content-encoding'], undefined)
  assert.ok(raw.bytes.equals(noise))
})

it('settings say which contents are compressed', async (server) => {
  const db = `/${await server.newDatabase()}`
  const config = '/_node/_local/_config/attachments'
  const text = (n) => Buffer.from(`${n} a line of text `.repeat(1000))
  const encodingOf = async (target) => (await rawBytesOf(server, target, 'gzip')).headers['content-encoding']
  try {
    await server.client.ok('PUT', `${config}/compressible_types`, JSON.stringify('image/*, application/json'))
    await upload(server, `${db}/a/x`, text(1), 'text/plain')
    await upload(server, `${db}/b/x`, text(2), 'image/svg+xml')
    assert.equal(await encodingOf(`${db}/a/x`), undefined)
    assert.equal(await encodingOf(`${db}/b/x`), 'gzip')
    await server.client.ok('PUT', `${config}/compression_level`, '"0"')
    await upload(server, `${db}/c/x`, text(3), 'image/svg+xml')
    assert.equal(await encodingOf(`${db}/c/x`), undefined)
    await uploadGzip(server, `${db}/d/x`, text(4), 'image/svg+xml')
    assert.equal(await encodingOf(`${db}/d/x`), undefined)
    for (const value of ['10', 'x', '-1']) {
      const refused = await server.client.request('PUT', `${config}/compression_level`, JSON.stringify(value))
      assert.equal(refused.status, 400, value)
    }
  } finally {
    await server.client.ok('DELETE', `${config}/compressible_types`)
    await server.client.ok('DELETE', `${config}/compression_level`)
  }
})

it('_bulk_get sends documents and attachments as parts', async (server) => {
  const db = `/${await server.newDatabase()}`
  const large = randomBytes(5 * CHUNK + 3)
  const rev = await upload(server, `${db}/large/x`, large, 'text/plain')
  await server.client.ok('PUT', `${db}/plain`, { n: 1 })
  await server.client.ok('PUT', `${db}/two`, { _attachments: { a: { data: 'YQ==' }, b: { data: 'Yg==' } } })
  const wanted = [{ id: 'large' }, { id: 'none' }, { id: 'plain' }, { id: 'two' }, { id: 'large', atts_since: [rev] }]
  for (const type of ['multipart/mixed', 'multipart/related']) {
    const answer = await fetch(`${server.url}${db}/_bulk_get?revs=true`, {
      method: 'POST',
      body: JSON.stringify({ docs: wanted }),
      headers: {
        Authorization: 'Basic ' + Buffer.from(server.credentials).toString('base64'),
        'Content-Type': 'application/json',
        Accept: type
      }
    })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('content-type').split(';')[0], type)
    const parts = partsOf(answer.headers.get('content-type'), Buffer.from(await answer.arrayBuffer()))
    assert.equal(parts.length, 5)
    assert.deepEqual(parts.map((part) => part.headers['x-doc-id']), ['large', undefined, 'plain', 'two', 'large'])
    const [json, content] = partsOf(parts[0].headers['content-type'], parts[0].bytes)
    assert.equal(parts[0].headers['x-rev-id'], rev)
    assert.equal(JSON.parse(json.bytes)._attachments.x.follows, true)
    assert.equal(JSON.parse(json.bytes)._revisions.start, 1)
    assert.ok(content.bytes.equals(large))
    assert.equal(parts[1].headers['content-type'], 'application/json; error="true"')
    assert.deepEqual(JSON.parse(parts[1].bytes), { id: 'none', rev: 'undefined', error: 'not_found', reason: 'missing' })
    assert.equal(JSON.parse(parts[2].bytes).n, 1)
    const two = partsOf(parts[3].headers['content-type'], parts[3].bytes)
    assert.deepEqual(two.slice(1).map((part) => String(part.bytes)), ['a', 'b'])
    assert.equal(JSON.parse(parts[4].bytes)._attachments.x.stub, true)
  }
  // Without documents there is no part; and JSON comes first.
  const request = (docs, accepted) => fetch(`${server.url}${db}/_bulk_get`, {
    method: 'POST',
    body: JSON.stringify({ docs }),
    headers: {
      Authorization: 'Basic ' + Buffer.from(server.credentials).toString('base64'),
      'Content-Type': 'application/json',
      Accept: accepted
    }
  })
  const empty = await request([], 'multipart/mixed')
  assert.equal(partsOf(empty.headers.get('content-type'), Buffer.from(await empty.arrayBuffer())).length, 0)
  for (const accepted of ['application/json, multipart/mixed', '*/*', 'multipart/related, */*;q=0.1', 'multipart/mixed;q=0', 'text/plain']) {
    const json = await request([{ id: 'plain' }], accepted)
    assert.equal((await json.json()).results[0].docs[0].ok.n, 1, accepted)
  }
  for (const accepted of ['multipart/*', 'application/json;q=0, multipart/mixed']) {
    const parts = await request([{ id: 'plain' }], accepted)
    assert.equal(partsOf(parts.headers.get('content-type'), Buffer.from(await parts.arrayBuffer())).length, 1, accepted)
  }
  // Ids that no header field can have are in the documents only.
  for (const id of [' blank', 'line\r\nX: y', 'ü']) await server.client.ok('PUT', `${db}/${encodeURIComponent(id)}`, {})
  const odd = await request([' blank', 'line\r\nX: y', 'ü'].map((id) => ({ id })), 'multipart/mixed')
  const shown = partsOf(odd.headers.get('content-type'), Buffer.from(await odd.arrayBuffer()))
  assert.deepEqual(shown.map((part) => part.headers['x-doc-id']), [undefined, undefined, 'ü'])
  assert.deepEqual(shown.map((part) => JSON.parse(part.bytes)._id), [' blank', 'line\r\nX: y', 'ü'])
})

it('a content is stored once in a database, as long as a revision has it', async (server) => {
  const db = `/${await server.newDatabase()}`
  const empty = await external(server, db)
  const bytes = randomBytes(200_000)
  const data = bytes.toString('base64')
  const docs = Array.from({ length: 20 }, (_, i) => ({ _id: `d${i}`, _attachments: { a: { data }, b: { data } } }))
  let results = await server.client.ok('POST', `${db}/_bulk_docs`, { docs })
  const written = await external(server, db)
  assert.ok(written > empty + 200_000 && written < empty + 210_000, `${written}`)
  // An edit that keeps them; one that replaces one of them; copies and conflicts.
  for (const [i, { rev }] of results.entries()) {
    const { _attachments } = await server.client.ok('GET', `${db}/d${i}`)
    await server.client.ok('PUT', `${db}/d${i}`, { _rev: rev, _attachments: i % 2 ? _attachments : { ..._attachments, b: { data: 'MQ==' } } })
  }
  await server.client.ok('POST', `${db}/_bulk_docs`, { new_edits: false, docs: [{ _id: 'd0', _rev: '1-other', _attachments: { a: { data } } }] })
  assert.ok((await bytesOf(server, `${db}/d0/a?rev=1-other`)).bytes.equals(bytes))
  const rows = (await server.client.ok('GET', `${db}/_changes?style=all_docs`)).results
  results = rows.flatMap(({ id, changes }) => changes.map(({ rev }) => ({ _id: id, _rev: rev, _deleted: true })))
  const last = results.pop()
  await server.client.ok('POST', `${db}/_bulk_docs`, { docs: results })
  assert.ok((await bytesOf(server, `${db}/${last._id}/a?rev=${last._rev}`)).bytes.equals(bytes))
  await server.client.ok('DELETE', `${db}/${last._id}?rev=${last._rev}`)
  assert.equal(await external(server, db), empty + 21 * "{}".length) // the tombstones
})

it('many writers of one content, some of which remove it', async (server) => {
  const db = `/${await server.newDatabase()}`
  const data = randomBytes(1000).toString('base64')
  const writer = async (n) => {
    let rev
    for (let i = 0; i < 20; i++) {
      const body = i % 2 ? { _rev: rev } : { _rev: rev, _attachments: { x: { data } } }
      ;({ rev } = await server.client.ok('PUT', `${db}/d${n}`, body))
      if (i % 2 === 0) assert.equal((await server.client.ok('GET', `${db}/d${n}?attachments=true`))._attachments.x.data, data)
    }
    return rev
  }
  await Promise.all(Array.from({ length: 16 }, (_, n) => writer(n)))
  await server.client.ok('PUT', `${db}/last`, { _attachments: { x: { data } } })
  assert.equal((await server.client.ok('GET', `${db}/last?attachments=true`))._attachments.x.data, data)
})

/** Runs `fn` while [couchdb] max_attachment_size has another value. */
async function withMaxAttachmentSize(server, bytes, fn) {
  const setting = '/_node/_local/_config/couchdb/max_attachment_size'
  const before = await server.client.ok('PUT', setting, JSON.stringify(`${bytes}`))
  try {
    await fn()
  } finally {
    await server.client.ok('PUT', setting, JSON.stringify(before))
  }
}

it('what is too large is refused, without affecting other documents', async (server) => {
  const db = `/${await server.newDatabase()}`
  await withMaxAttachmentSize(server, 1_000_000, async () => {
    const data = Buffer.alloc(1_000_001).toString('base64')
    const docs = [{ _id: 'a' }, { _id: 'b', _attachments: { small: { data: 'MQ==' }, large: { data } } }, { _id: 'c' }]
    const results = await server.client.ok('POST', `${db}/_bulk_docs`, { docs })
    assert.deepEqual(results.map(({ ok, error }) => ok ?? error), [true, 'attachment_too_large', true])
    const stream = async function * () { for (let i = 0; i < 11; i++) yield Buffer.alloc(100_000) }
    for (const [body, headers] of [[Buffer.alloc(1_000_001), {}], [stream(), {}], [gzipSync(Buffer.alloc(1_000_001)), { 'Content-Encoding': 'gzip' }]]) {
      const answer = await fetch(`${server.url}${db}/d/x`, {
        method: 'PUT',
        duplex: 'half',
        body,
        headers: { Authorization: 'Basic ' + Buffer.from(server.credentials).toString('base64'), ...headers }
      })
      assert.deepEqual([answer.status, (await answer.json()).error], [413, 'attachment_too_large'])
    }
    await upload(server, `${db}/d/x`, Buffer.alloc(1_000_000))
    const bomb = gzipSync(Buffer.alloc(900_000))
    const bombs = Object.fromEntries(['b', 'c'].map((name) => [name, { follows: true, encoding: 'gzip' }]))
    assert.match(await putRelated(server, `${db}/bad`, related({ _attachments: bombs }, ['b', 'c'].map(() => ['X: 1', bomb]))), /^413/)
  })
  // The setting holds for new attachments.
  assert.equal((await bytesOf(server, `${db}/d/x`)).bytes.length, 1_000_000)
})

it('contents that are larger than a transaction, in every way', async (server) => {
  const name = await server.newDatabase()
  const db = `/${name}`
  const large = randomBytes(13_000_007)
  const small = randomBytes(1000)
  const data = (bytes) => ({ data: bytes.toString('base64') })
  const rev = await upload(server, `${db}/put/a`, large, 'image/png')
  await server.client.ok('PUT', `${db}/inline`, { _attachments: { a: data(large), b: data(small), c: data(large) } })
  const results = await server.client.ok('POST', `${db}/_bulk_docs`, {
    docs: [{ _id: 'bulk', _attachments: { a: data(large) } }, { _id: 'put' }, { _id: 'bulk2', _attachments: { a: data(small) } }]
  })
  assert.deepEqual(results.map(({ ok, error }) => ok ?? error), [true, 'conflict', true])
  await server.client.ok('POST', `${db}/_bulk_docs`, { new_edits: false, docs: [{ _id: 'replicated', _rev: '1-a', _attachments: { a: data(large) } }] })
  const follows = Object.fromEntries(['a', 'b', 'c'].map((attachment) => [attachment, { follows: true }]))
  const parts = [['X: 1', large], ['X: 2', small], ['Content-Encoding: gzip', gzipSync(large)]]
  assert.equal(await putRelated(server, `${db}/related`, related({ _attachments: follows }, parts)), 201)
  // The whole body compressed, with a small part of the data in memory at a time.
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`m${i}`, { follows: true }]))
  const zipped = gzipSync(related({ _attachments: many }, Object.keys(many).map(() => ['X: 1', large.subarray(0, 300_000)])))
  const compressed = await fetch(`${server.url}${db}/zipped`, {
    method: 'PUT',
    body: zipped,
    headers: {
      Authorization: 'Basic ' + Buffer.from(server.credentials).toString('base64'),
      'Content-Type': 'multipart/related; boundary="bound"', 'Content-Encoding': 'gzip'
    }
  })
  assert.equal(compressed.status, 201)
  assert.ok((await bytesOf(server, `${db}/zipped/m29`)).bytes.equals(large.subarray(0, 300_000)))
  // A stream without a length.
  const chunked = await fetch(`${server.url}${db}/chunked/a`, {
    method: 'PUT', duplex: 'half', headers: { Authorization: 'Basic ' + Buffer.from(server.credentials).toString('base64') },
    body: (async function * () { for (let at = 0; at < large.length; at += 100_000) yield large.subarray(at, at + 100_000) })()
  })
  assert.equal(chunked.status, 201)
  for (const id of ['put', 'inline', 'bulk', 'replicated', 'related', 'chunked']) {
    const { headers, bytes } = await bytesOf(server, `${db}/${id}/a`)
    assert.ok(bytes.equals(large), id)
    assert.equal(headers.get('content-length'), `${large.length}`)
    const doc = JSON.parse((await bytesOf(server, `${db}/${id}?attachments=true`)).bytes)
    assert.equal(doc._attachments.a.digest, md5(large))
    assert.ok(Buffer.from(doc._attachments.a.data, 'base64').equals(large), id)
  }
  for (const target of [`${db}/related?attachments=true`, `${db}/related?open_revs=all`]) {
    const accept = target.endsWith('all') ? 'multipart/mixed' : 'multipart/related'
    const { bytes } = await bytesOf(server, target, { Accept: accept })
    const at = [large, small, large].map((content) => bytes.indexOf(content))
    assert.ok(at.every((index) => index > 0), target)
    assert.ok(bytes.indexOf(large, at[0] + 1) > at[1] && bytes.lastIndexOf('--') === bytes.length - 2)
  }
  const { results: got } = JSON.parse((await (await fetch(`${server.url}${db}/_bulk_get?attachments=true`, {
    method: 'POST',
    body: JSON.stringify({ docs: ['inline', 'absent', 'bulk2', 'put'].map((id) => ({ id })) }),
    headers: { Authorization: 'Basic ' + Buffer.from(server.credentials).toString('base64'), 'Content-Type': 'application/json' }
  })).text()))
  assert.deepEqual(got.map(({ id, docs: [{ ok, error }] }) => [id, error?.error ?? Object.keys(ok._attachments).join()]),
    [['inline', 'a,b,c'], ['absent', 'not_found'], ['bulk2', 'a'], ['put', 'a']])
  assert.ok(Buffer.from(got[3].docs[0].ok._attachments.a.data, 'base64').equals(large))
  // Elsewhere such a document ends the response.
  assert.equal((await server.client.get(`${db}/_all_docs?include_docs=true&attachments=true&key="put"`)).status, 413)
  const [{ ok }] = JSON.parse((await bytesOf(server, `${db}/inline?open_revs=all&attachments=true`)).bytes)
  assert.ok(Buffer.from(ok._attachments.c.data, 'base64').equals(large))
  const range = await bytesOf(server, `${db}/put/a`, { Range: 'bytes=12999999-' })
  assert.ok(range.bytes.equals(large.subarray(12_999_999)))
  // One content, however it came.
  const { sizes } = await server.client.ok('GET', db)
  assert.ok(sizes.external > large.length + 300_000 && sizes.external < large.length + 320_000, `${sizes.external}`)
  const { rev: next } = await server.client.ok('PUT', `${db}/put/b?rev=${rev}`, small)
  const kept = await server.client.ok('GET', `${db}/put`)
  assert.deepEqual([kept._rev, kept._attachments.a.length], [next, large.length])
})

it('an upload that cannot succeed is refused before it is sent', async (server) => {
  const db = `/${await server.newDatabase()}`
  await upload(server, `${db}/doc/a`, 'x')
  const open = `/${await server.newDatabase()}`
  await server.client.ok('PUT', `${open}/_security`, {})
  await server.client.ok('PUT', '/_users/org.couchdb.user:uploader', { name: 'uploader', type: 'user', roles: [], password: 'p' })
  for (const [target, credentials, status] of [
    [`${db}/doc/a`, server.credentials, 409], [`${db}/doc/a?rev=1-0`, server.credentials, 409], ['/absent/doc/a', server.credentials, 404],
    [`${db}/doc/a`, 'uploader:p', 403], [`${db}/doc/_a`, server.credentials, 400],
    ['/_users/joe/a', server.credentials, 403], [`${open}/_design/doc/a`, 'uploader:p', 403]
  ]) {
    const { request, response } = beginRequest(server, 'PUT', target, 1_000_000_000, credentials)
    assert.equal((await response()).status, status, target)
    request.destroy()
  }
  // A small body does not cost the connection.
  const { request, response } = beginRequest(server, 'PUT', `${db}/doc/a`, 3)
  request.write('ab')
  request.end('c')
  const { status, headers } = await response()
  assert.equal(status, 409)
  assert.notEqual(headers.connection, 'close')
})

it('an upload is refused if its user has lost the access meanwhile', async (server) => {
  const db = `/${await server.newDatabase()}`
  await server.client.ok('PUT', `${db}/_security`, { members: { names: ['late'] } })
  await server.client.ok('PUT', '/_users/org.couchdb.user:late', { name: 'late', type: 'user', roles: [], password: 'p' })
  const { request, response } = beginRequest(server, 'PUT', `${db}/doc/a`, 2_000_001, 'late:p')
  const backupSize = async () => (await bytesOf(server, '/_backup')).bytes.length
  const before = await backupSize()
  request.write(randomBytes(2_000_000))
  await waitFor('a part of the upload in the store', async () => (await backupSize()) > before + 900_000)
  await server.client.ok('PUT', `${db}/_security`, { members: { names: ['other'] } })
  request.end('x')
  assert.equal((await response()).status, 403)
})

it('uploads that end early leave nothing', async (server) => {
  const name = await server.newDatabase()
  const backupSize = async () => (await bytesOf(server, '/_backup')).bytes.length
  const before = await backupSize()
  const requests = Array.from({ length: 5 }, (_, i) => beginRequest(server, 'PUT', `/${name}/doc${i}/a`, 9_000_000).request)
  for (const request of requests) request.write(randomBytes(3_000_000))
  await waitFor('parts of the uploads in the store', async () => (await backupSize()) > before + 5 * 1_900_000)
  for (const request of requests) request.destroy()
  await waitFor('their removal', async () => (await backupSize()) < before + 100_000)
  assert.equal((await server.client.ok('GET', `/${name}`)).doc_count, 0)
})

it('a small attachment is read whole, although it is replaced all the time', async (server) => {
  const db = `/${await server.newDatabase()}`
  const contents = [randomBytes(1000), randomBytes(200_000)]
  let rev = await upload(server, `${db}/a/x`, contents[0])
  let writing = true
  const reader = async () => {
    let reads = 0
    while (writing || reads < 20) {
      const { status, bytes } = await bytesOf(server, `${db}/a/x`)
      assert.equal(status, 200)
      assert.ok(contents.some((content) => content.equals(bytes)))
      reads++
    }
  }
  const readers = [reader(), reader()]
  for (let i = 1; i < 100; i++) rev = await upload(server, `${db}/a/x?rev=${rev}`, contents[i % 2])
  writing = false
  await Promise.all(readers)
})

it('pages of documents with large attachments', async (server) => {
  const db = `/${await server.newDatabase()}`
  const data = randomBytes(5_000_000).toString('base64')
  await server.client.ok('PUT', `${db}/d0`, { _attachments: { x: { data } } })
  for (let i = 1; i < 6; i++) assert.equal((await server.client.request('COPY', `${db}/d0`, { headers: { Destination: `d${i}` } })).status, 201)
  const docs = async (target, options) => {
    const { json } = await server.client.request(options ? 'POST' : 'GET', db + target, { body: options })
    return json.rows?.map(({ doc }) => doc) ?? json.results.map(({ doc, docs }) => doc ?? docs[0].ok)
  }
  const ids = Array.from({ length: 6 }, (_, i) => `d${i}`)
  for (const [target, options] of [
    ['/_changes?include_docs=true&attachments=true'], ['/_all_docs?include_docs=true&attachments=true'],
    ['/_all_docs?include_docs=true&attachments=true', { keys: ids }], ['/_bulk_get?attachments=true', { docs: ids.map((id) => ({ id })) }]
  ]) {
    const found = await docs(target, options)
    assert.deepEqual(found.map(({ _id, _attachments }) => [_id, _attachments.x.data === data]), ids.map((id) => [id, true]), target)
  }
})

it('a type must be text', async (server) => {
  const db = `/${await server.newDatabase()}`
  const answer = await fetch(`${server.url}${db}/a/x`, {
    method: 'PUT', body: 'x', headers: { Authorization: 'Basic ' + Buffer.from(server.credentials).toString('base64'), 'Content-Type': 'text/\xff' }
  })
  assert.equal(answer.status, 400)
})

it('nano reads and writes attachments', async (server) => {
  const { protocol, host } = new URL(server.url)
  const db = nano(`${protocol}//${server.credentials}@${host}`).use(await server.newDatabase())
  const bytes = randomBytes(300_000)
  const { rev } = await db.attachment.insert('doc', 'image.png', bytes, 'image/png')
  assert.ok((await db.attachment.get('doc', 'image.png')).equals(bytes))
  const streamed = []
  for await (const piece of db.attachment.getAsStream('doc', 'image.png')) streamed.push(piece)
  assert.ok(Buffer.concat(streamed).equals(bytes))
  const { rev: next } = await db.attachment.destroy('doc', 'image.png', { rev })
  assert.deepEqual(await db.get('doc'), { _id: 'doc', _rev: next })
})

/** A body of multipart/related: the document, and then these parts, as [fields, content]. */
function related(doc, parts, boundary = 'bound') {
  const pieces = [`--${boundary}\r\nContent-Type: application/json\r\n\r\n${JSON.stringify(doc)}`]
  for (const [fields, content] of parts) pieces.push(`\r\n--${boundary}\r\n${fields}\r\n\r\n`, content)
  return Buffer.concat([...pieces, `\r\n--${boundary}--`].map((piece) => Buffer.from(piece)))
}

async function putRelated(server, target, body, type = 'multipart/related; boundary="bound"') {
  const answer = await fetch(server.url + target, {
    method: 'PUT',
    body,
    headers: { Authorization: 'Basic ' + Buffer.from(server.credentials).toString('base64'), 'Content-Type': type }
  })
  const json = await answer.json()
  return answer.status === 201 ? 201 : `${answer.status} ${json.reason}`
}

it('nano writes and reads documents with attachments in one request', async (server) => {
  const { protocol, host } = new URL(server.url)
  const name = await server.newDatabase()
  const db = nano(`${protocol}//${server.credentials}@${host}`).use(name)
  const files = [
    { name: 'a.txt', data: Buffer.from('one'), content_type: 'text/plain' },
    { name: 'b \u00e4.bin', data: randomBytes(300_000), content_type: 'application/octet-stream' },
    { name: 'empty', data: Buffer.alloc(0), content_type: 'text/plain' }
  ]
  await db.multipart.insert({ n: 1 }, files, 'doc')
  for (const file of files) {
    const { bytes } = await bytesOf(server, `/${name}/doc/${encodeURIComponent(file.name)}`)
    assert.ok(bytes.equals(file.data), file.name)
  }
  const { _attachments } = await db.get('doc')
  assert.deepEqual(Object.values(_attachments).map(({ length }) => length), files.map(({ data }) => data.length))
  assert.match((await db.multipart.get('doc')).toString(), /"n":1[^]+filename="a.txt"[^]+one/)
  const { headers, bytes } = await bytesOf(server, `/${name}/doc?attachments=true`, { Accept: 'multipart/related' })
  assert.match(headers.get('content-type'), /^multipart\/related; boundary="\w+"$/)
  const body = bytes.toString('latin1')
  for (const { data } of files) assert.ok(body.includes(`\r\n\r\n${data.toString('latin1')}\r\n--`))
})

it('what follows a document is matched by name, or by its place', async (server) => {
  const db = `/${await server.newDatabase()}`
  const _attachments = Object.fromEntries(['a', 'b', 'c'].map((name) => [name, { follows: true, content_type: 'text/plain' }]))
  const named = (name) => `Content-Disposition: attachment; filename="${name}"`
  assert.equal(await putRelated(server, `${db}/x`, related({ _attachments }, [['X: 1', 'A'], ['X: 2', 'B'], ['X: 3', 'C']])), 201)
  assert.equal(await putRelated(server, `${db}/y`, related({ _attachments }, [[named('c'), 'C'], ['X: 1', 'A'], [named('b'), 'B']])), 201)
  const zipped = gzipSync('C')
  const encoded = { ..._attachments, c: { follows: true, encoding: 'gzip', length: 1, encoded_length: zipped.length } }
  assert.equal(await putRelated(server, `${db}/z`, related({ _attachments: encoded }, [['X: 1', 'A'], ['X: 2', 'B'], ['X: 3', zipped]])), 201)
  // CouchDB writes names without escapes: then the order counts.
  assert.equal(await putRelated(server, `${db}/u`, related({ _attachments }, [[named('?'), 'A'], [named('!'), 'B'], ['X: 3', 'C']])), 201)
  for (const id of ['x', 'y', 'z', 'u']) {
    for (const name of ['a', 'b', 'c']) assert.equal((await bytesOf(server, `${db}/${id}/${name}`)).bytes.toString(), name.toUpperCase(), id)
  }
  const put = (doc, parts, type) => putRelated(server, `${db}/bad`, related(doc, parts), type)
  const digested = (content) => ({ _attachments: { a: { follows: true, digest: md5(content) } } })
  assert.equal(await put(digested('B'), [['X: 1', 'A']]), '400 Possible message corruption.')
  assert.equal(await putRelated(server, `${db}/digest`, related(digested('A'), [['X: 1', 'A']])), 201)
  assert.equal(await put({ _attachments }, [['X: 1', 'A'], ['X: 2', 'B']]), '400 Attachment c does not follow the document.')
  assert.equal(await put({}, [['X: 1', 'A']]), '400 More parts follow the document than attachments that it names.')
  assert.equal(await put({}, [], 'multipart/related'), '400 The Content-Type of a multipart body must have a boundary.')
  assert.match(await put({}, [], 'multipart/related; boundary=other'), /^400 The multipart body is malformed/)
  assert.match(await putRelated(server, `${db}/bad`, related({}, []).subarray(0, -1)), /^400 .*end is missing/)
  assert.equal((await server.client.get(`${db}/bad`)).status, 404)
})

it('all open revisions with their attachments', async (server) => {
  const db = `/${await server.newDatabase()}`
  const docs = ['a', 'b'].map((rev) => ({ _id: 'x', _rev: `1-${rev}`, _attachments: { [rev]: { data: Buffer.from(rev).toString('base64') } } }))
  docs.push({ _id: 'x', _rev: '1-c' })
  await server.client.ok('POST', `${db}/_bulk_docs`, { docs, new_edits: false })
  const answer = await bytesOf(server, `${db}/x?open_revs=["1-a","1-c","1-d"]&revs=true`, { Accept: 'multipart/mixed' })
  const boundary = /^multipart\/mixed; boundary="(.+)"$/.exec(answer.headers.get('content-type'))[1]
  const parts = answer.bytes.toString().split(new RegExp(`(?:\r\n)?--${boundary}(?:\r\n|--)`)).slice(1, -1)
  assert.equal(parts.length, 3)
  assert.match(parts[0], /^Content-Type: multipart\/related; boundary="[^]+"_rev":"1-a"[^]+"follows":true[^]+filename="a"[^]+\r\n\r\na\r\n--/)
  assert.match(parts[1], /^Content-Type: application\/json\r\n\r\n\{"_id":"x","_rev":"1-c","_revisions"/)
  assert.equal(parts[2], 'Content-Type: application/json; error="true"\r\n\r\n{"missing":"1-d"}')
  const json = await bytesOf(server, `${db}/x?attachments=true&rev=1-a`, { Accept: '*/*' })
  assert.equal(JSON.parse(json.bytes)._attachments.a.data, 'YQ==')
})

onlyEmbedded(test)('backups have attachments, and `divan verify` finds nothing wrong with them', async () => {
  const servers = [await Server.start({ dataDir: temporaryDirectory() }), await Server.start({ dataDir: temporaryDirectory() })]
  const [server, copy] = servers
  await server.client.ok('PUT', '/db')
  const bytes = randomBytes(250_000)
  for (const id of ['a', 'b', 'c']) await upload(server, `/db/${id}/x`, bytes)
  await server.client.ok('PUT', '/db/d', { _attachments: { y: { data: '' }, z: { data: 'MQ==' } } })
  await restoreInto(copy, await backUp(server))
  for (const id of ['a', 'b', 'c']) assert.ok((await bytesOf(copy, `/db/${id}/x`)).bytes.equals(bytes))
  for (const id of ['a', 'd']) await copy.client.ok('DELETE', `/db/${id}?rev=${(await copy.client.ok('GET', `/db/${id}`))._rev}`)
  for (const one of servers) {
    await one.stop()
    const verified = await runDivan(['verify', one.dataDir])
    assert.equal(verified.code, 0, verified.stdout + verified.stderr)
  }
})
