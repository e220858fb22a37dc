// What other servers answer in a replication: nonsense, errors, too much, too often.
import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import { listening, remote, replicate, withProxy, withServers } from './support/replication.mjs'
import { Server } from './support/server.mjs'
import { pause, waitFor } from './support/wait.mjs'

// A source that answers what `answer` returns.
async function withSource(answer, body) {
  const source = http.createServer((request, response) => {
    let text = ''
    request.on('data', (bytes) => (text += bytes))
    request.on('end', () => {
      const [status, json] = answer(request.method, request.url, text)
      response.writeHead(status, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify(json))
    })
  })
  await listening(source, (port) => body(`http://127.0.0.1:${port}/db`))
}

test('a source that answers nonsense is an error, and nothing is recorded as copied', () => withServers(1, async ({ client }) => {
  const changes = { results: [{ id: 'a', seq: '1', changes: [{ rev: '1-a' }] }], last_seq: '1', pending: 0 }
  const right = { 'GET /db': [200, { update_seq: '1' }], 'GET /db/_local': [404, {}], 'GET /db/_changes': [200, changes],
    'POST /db/_bulk_get': [200, { results: [{ id: 'a', docs: [{ ok: { _id: 'a', _rev: '1-a' } }] }] }], 'PUT /db/_local': [201, { rev: '0-1' }] }
  const rows = Array.from({ length: 100 }, () => changes.results[0])
  let number = 0
  const run = (wrong, puts) => withSource((method, url) => {
    const path = `${method} ${url.split('?')[0].replace(/(_local)\/.*/, '$1')}`
    if (path === 'PUT /db/_local') puts.push(url)
    return { ...right, ...wrong }[path] ?? [404, {}]
  }, async (source) => {
    const { status, json } = await client.post('/_replicate', { source, target: `target${++number}`, create_target: true })
    if (wrong['expected']) assert.equal(status, 200, JSON.stringify(json))
    else assert.match(json.reason ?? JSON.stringify(json), /bad_response|source_failed/)
  })
  const puts = []
  await run({ expected: true }, puts)
  assert.equal(puts.length, 1)
  for (const wrong of [
    { 'GET /db/_changes': [200, []] }, { 'GET /db/_changes': [200, { results: rows, last_seq: '0' }] }, { 'GET /db/_changes': [200, { results: [{ id: 1 }], last_seq: '1' }] },
    { 'POST /db/_bulk_get': [200, { results: [] }] }, { 'POST /db/_bulk_get': [200, { results: [{ id: 'a', docs: [] }] }] }, { 'POST /db/_bulk_get': [200, 5] },
    { 'POST /db/_bulk_get': [200, { results: [{ id: 'a', docs: [{ error: { error: 'internal_server_error' } }] }] }] }]) {
    const none = []
    await run(wrong, none)
    assert.deepEqual(none, [], JSON.stringify(wrong))
  }
  // Documents that are invalid are counted, as others that the target refuses.
  for (const invalid of [{ _revisions: { start: 'x' }, _attachments: { x: { stub: true, revpos: 1, length: 1 } } }, { _unknown: 1 }]) {
    const response = [200, { results: [{ id: 'a', docs: [{ ok: { _id: 'a', _rev: '1-a', ...invalid } }] }] }]
    await withSource((method, url) => ({ ...right, 'POST /db/_bulk_get': response })[`${method} ${url.split('?')[0].replace(/(_local)\/.*/, '$1')}`] ?? [404, {}], async (source) => {
      const { history: [session] } = await client.ok('POST', '/_replicate', { source, target: `target${++number}`, create_target: true })
      assert.equal(session.doc_write_failures, 1, JSON.stringify(invalid))
    })
  }
}))

test('an attachment whose length is not that of its document is an error', () => withServers(2, async (a, b) => {
  const changes = { results: [{ id: 'a', seq: '1', changes: [{ rev: '1-a' }] }], last_seq: '1', pending: 0 }
  const stub = { content_type: 'image/png', revpos: 1, digest: 'md5-1B2M2Y8AsgTpgAmy7PhCfg==', length: 300_000, stub: true }
  const doc = { _id: 'a', _rev: '1-a', _revisions: { start: 1, ids: ['a'] }, _attachments: { file: stub } }
  for (const length of [299_000, 301_000]) {
    for (const target of [`local${length}`, remote(b, `remote${length}`)]) {
      let checkpoints = 0
      await withSource((method, url) => {
        if (url.startsWith('/db/_local')) checkpoints += method === 'PUT' ? 1 : 0
        if (url.startsWith('/db/_changes')) return [200, changes]
        if (url.startsWith('/db/_bulk_get')) return [200, { results: [{ id: 'a', docs: [{ ok: doc }] }] }]
        if (url.startsWith('/db/a/file')) return [200, 'x'.repeat(length - 2)] // and two quotes
        return url === '/db' ? [200, { update_seq: '1' }] : [404, {}]
      }, async (source) => {
        const { json } = await a.client.post('/_replicate', { source, target, create_target: true })
        assert.match(json.reason ?? JSON.stringify(json), /another length/)
      })
      assert.equal(checkpoints, 0)
    }
  }
}))

const changesOf = (sequence, ...ids) => ({ results: ids.map((id) => ({ id, seq: sequence, changes: [{ rev: '1-a' }] })), last_seq: sequence, pending: 0 })
const isLongpoll = (url) => url.includes('feed=longpoll')

test('one error of another server does not end a continuous replication', () => withServers(1, async ({ client }) => {
  for (const status of [400, 407, 410, 414, 422]) {
    let answers = 0
    await withSource((method, url) => {
      if (url.startsWith('/db/_changes')) return answers++ === 0 ? [status, '<html>'] : [200, changesOf('1')]
      return url === '/db' ? [200, { update_seq: '1' }] : [404, {}]
    }, async (source) => {
      const body = { source, target: `target${status}`, create_target: true, continuous: true }
      const { _local_id: id } = await replicate({ client }, body)
      const job = () => client.ok('GET', `/_scheduler/jobs/${encodeURIComponent(id)}`)
      await waitFor('the failure', async () => (await job()).state === 'crashing')
      assert.match(JSON.stringify(await job()), new RegExp(`\\(${status}\\)`))
      await replicate({ client }, { ...body, cancel: true })
    })
  }
}))

test('a source that ends each wait at once is not asked again and again', () => withServers(1, async ({ client }) => {
  for (const kind of ['same', 'other', 'unauthorized']) {
    let waits = 0, sequence = 1
    await withSource((method, url) => {
      if (isLongpoll(url)) {
        ++waits
        return kind === 'unauthorized' ? [401, {}] : [200, changesOf(`${sequence}`)]
      }
      if (url.startsWith('/db/_changes')) return [200, changesOf(`${kind === 'other' ? ++sequence : sequence}`)]
      return url === '/db' ? [200, { update_seq: '1' }] : [404, {}]
    }, async (source) => {
      const body = { source, target: kind, create_target: true, continuous: true, use_checkpoints: false }
      await replicate({ client }, body)
      await waitFor('several waits', () => waits >= 4)
      // After pauses of 50, 100, 200 ... ms, up to 5 s.
      await pause(2000)
      assert.ok(waits <= 15, `${waits} waits`)
      await replicate({ client }, { ...body, cancel: true })
    })
  }
}))

test('a wait whose response does not end is ended', () => withServers(1, async ({ client }) => {
  let sent = 0, ended = 0
  const source = http.createServer((request, response) => {
    response.writeHead(request.url.includes('_local') ? 404 : 200, { 'Content-Type': 'application/json' })
    if (!isLongpoll(request.url)) return void response.end(JSON.stringify(request.url.startsWith('/db/_changes') ? changesOf('1') : { update_seq: '1' }))
    const more = () => {
      while (!response.destroyed) {
        sent += 65536
        if (!response.write(' '.repeat(65536))) return
      }
    }
    response.on('drain', more).on('error', () => {}).on('close', () => { ++ended })
    more()
  })
  await listening(source, async (port) => {
    const body = { source: `http://127.0.0.1:${port}/db`, target: 'target', create_target: true, continuous: true, use_checkpoints: false }
    await replicate({ client }, body)
    await waitFor('the end of two waits', () => ended >= 2)
    assert.ok(sent / ended < 20_000_000, `${sent} bytes in ${ended} responses`)
    await replicate({ client }, { ...body, cancel: true })
  })
}))

test('large responses of many sources are not in memory at the same time', () => withServers(1, async ({ client }) => {
  await client.ok('PUT', '/_node/_local/_config/replicator/retries_per_request', '"0"')
  // Most of a response, whose end does not come. Memory suffices for those of two.
  const bytes = Buffer.alloc(50_000_000, ' ')
  const source = http.createServer((request, response) => {
    if (!request.url.startsWith('/db/_changes')) return void response.writeHead(request.url === '/db' ? 200 : 404, { 'Content-Type': 'application/json' }).end('{"update_seq":"1"}')
    response.on('error', () => {}).write(bytes)
  })
  await listening(source, async (port) => {
    const body = (n) => ({ source: `http://127.0.0.1:${port}/db`, target: `target${n}`, create_target: true, continuous: true })
    for (let n = 0; n < 5; ++n) await replicate({ client }, body(n))
    const refused = async () => (await client.ok('GET', '/_scheduler/jobs')).jobs.filter((job) => /too much memory/.test(job.last_error)).length
    await waitFor('three to be refused', async () => (await refused()) >= 3)
    for (let n = 0; n < 5; ++n) await replicate({ client }, { ...body(n), cancel: true })
  })
}))

test('what a source does not let read is counted, and what a function of the target refuses', () => withServers(2, async (a, b) => {
  const content = { content_type: 'text/plain', data: Buffer.alloc(400_000, 'text').toString('base64') }
  for (const [db, ids] of [['source', ['good', 'hidden']], ['refused', ['good', 'bad', 'worse']]]) {
    await a.client.ok('PUT', `/${db}`)
    for (const _id of ids) await a.client.ok('PUT', `/${db}/${_id}`, { _attachments: { a: content } })
  }
  for (const status of [403, 404, 410]) {
    await withProxy(a, async (proxied) => {
      const { history: [session] } = await replicate(b, { source: remote(proxied, 'source'), target: `t${status}`, create_target: true })
      assert.equal(session.docs_written, 1)
      assert.equal(session.doc_write_failures, 1)
    }, undefined, ({ path }) => (path === '/source/hidden/a' ? status : undefined))
  }
  await b.client.ok('PUT', '/target')
  await b.client.ok('PUT', '/target/_design/d', { validate_doc_update: 'function (doc) { if (doc._id === "bad") throw { forbidden: "no" }; if (doc._id === "worse") throw { unauthorized: "no" } }' })
  const { history: [session] } = await replicate(a, { source: 'refused', target: remote(b, 'target') })
  assert.equal(session.docs_written, 1)
  assert.equal(session.doc_write_failures, 2)
}))

test('sequences that are too long for a URL are refused', () => withServers(1, async ({ client }) => {
  await withSource((method, url) => {
    if (url.startsWith('/db/_changes')) return [200, changesOf('s'.repeat(100_000))]
    return url === '/db' ? [200, { update_seq: '1' }] : [404, {}]
  }, async (source) => {
    const { json } = await client.post('/_replicate', { source, target: 'target', create_target: true })
    assert.match(json.reason, /too long/)
  })
}))

test('a page of changes that is too large is read in smaller ones', () => withServers(1, async ({ client }) => {
  const rows = Array.from({ length: 100 }, (_, n) => ({ id: `d${n}`, seq: n + 1, changes: [{ rev: '1-a' }] }))
  const filler = 'x'.repeat(1_000_000)
  await withSource((method, url, text) => {
    const path = url.split('?')[0]
    const query = new URLSearchParams(url.split('?')[1])
    if (path === '/db/_changes') {
      const from = Number(query.get('since'))
      const page = rows.slice(from, from + Number(query.get('limit')))
      return [200, { results: page.map((row) => ({ ...row, filler })), last_seq: from + page.length, pending: rows.length - from - page.length }]
    }
    if (path === '/db/_bulk_get') return [200, { results: JSON.parse(text).docs.map(({ id }) => ({ id, docs: [{ ok: { _id: id, _rev: '1-a' } }] })) }]
    return path === '/db' ? [200, { update_seq: '1' }] : [404, {}]
  }, async (source) => {
    const { history: [session] } = await replicate({ client }, { source, target: 'target', create_target: true, use_checkpoints: false })
    assert.equal(session.docs_written, 100)
  })
}))

test('a source that sends a byte now and then is not taken for unreachable', async () => {
  const server = await Server.start({ env: { DIVAN_REPLICATOR_CONNECTION_TIMEOUT: '4000' } })
  const source = http.createServer(async (request, response) => {
    response.writeHead(request.url.includes('_local') ? 404 : 200, { 'Content-Type': 'application/json' })
    const isPage = request.url.startsWith('/db/_changes')
    // Less than a byte a second.
    for (let n = 0; isPage && n < 6; ++n) {
      response.write(' ')
      await pause(1500)
    }
    response.end(JSON.stringify(isPage ? changesOf('1') : { update_seq: '1' }))
  })
  await listening(source, (port) => replicate(server, { source: `http://127.0.0.1:${port}/db`, target: 'target', create_target: true, use_checkpoints: false }))
  await server.stop()
})
