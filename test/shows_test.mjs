// Show, list and rewrite functions: many rows, hostile functions, clients that do not read, permissions.
import assert from 'node:assert/strict'
import net from 'node:net'
import { authorization } from './support/raw.mjs'
import { shareServer, testWithServer } from './support/server.mjs'
import { waitFor, within } from './support/wait.mjs'

const ENV = { DIVAN_CHTTPD_AUTH_ITERATIONS: '10', DIVAN_COUCHDB_OS_PROCESS_TIMEOUT: '1000' }
const it = shareServer({ env: ENV })

const ROWS = 30_000
const put = (server, target, body = {}) => server.client.ok('PUT', target, body)

/** Adds a view `n` with ROWS rows, {key: n, value: text}, and `groups`, which is reduced by a function. */
async function fill(server, db, lists, { rows = ROWS, text = 'x'.repeat(50) } = {}) {
  for (let n = 0; n < rows; n += 5000) {
    const docs = Array.from({ length: Math.min(5000, rows - n) }, (_, i) => ({ _id: `${n + i}`, n: n + i }))
    await server.client.ok('POST', `/${db}/_bulk_docs`, { docs })
  }
  await put(server, `/${db}/_design/d`, {
    views: {
      n: { map: `function (doc) { if ('n' in doc) emit(doc.n, '${text}'); }` },
      groups: { map: "function (doc) { if ('n' in doc) emit(Math.floor(doc.n / 5), 1); }", reduce: 'function (keys, values) { return sum(values); }' }
    },
    lists
  })
  const { total_rows: total } = await server.client.ok('GET', `/${db}/_design/d/_view/n?limit=0`)
  assert.equal(total, rows)
}

const runningLists = async (server) => {
  const { javascript } = await server.client.ok('GET', '/_ken')
  return javascript.running.filter(({ purpose }) => purpose === 'list')
}

testWithServer('a list over many rows gets all of them, in pages', {}, async (server) => {
  const db = await server.newDatabase()
  await fill(server, db, {
    csv: `function (head) {
      start({headers: {'Content-Type': 'text/csv', 'X-Total': head.total_rows}});
      for (let row; (row = getRow());) send(row.key + ',' + row.value.length + '\\n');
      return 'end';
    }`,
    sum: 'function () { let sum = 0, n = 0; for (let row; (row = getRow()); n++) sum += row.value; return n + " groups of " + sum; }',
    first: "function () { return 'first ' + [getRow(), getRow(), getRow()].map((row) => row.key); }",
    one: "function () { for (let i = 0; i < 10; i++) { send('x'); if (i === 5) send('y'.repeat(8e6)); while (i === 7 && getRow()); } }",
    none: "function (head) { return 'of ' + head.total_rows; }",
    large: "function () { for (let row; (row = getRow());) send(row.value.repeat(200)); }",
    early: "function () { send('a'); getRow(); start({code: 404}); for (let row; (row = getRow());); return 'b'; }",
    late: "function () { for (let row; (row = getRow());); start({code: 404, headers: {'X-A': 'b'}}); return 'late'; }",
    error: "function () { for (let row; (row = getRow());) if (row.key === 29000) throw {forbidden: 'no'}; }",
    sent: "function () { for (let row; (row = getRow());) { if (row.key === 29000) throw {forbidden: 'no'}; send('row\\n'); } }",
    types: "function () { provides('csv', function () { for (let row; (row = getRow());) send(row.key + '\\n'); }); }"
  })
  const get = (path, options) => server.client.get(`/${db}/_design/d/_list/${path}`, options)
  const csv = await get('csv/n')
  assert.equal(csv.status, 200)
  assert.equal(csv.headers['content-type'], 'text/csv')
  assert.equal(csv.headers['x-total'], `${ROWS}`)
  assert.equal(csv.headers['transfer-encoding'], 'chunked')
  assert.equal(csv.text, Array.from({ length: ROWS }, (_, n) => `${n},50\n`).join('') + 'end')
  const descending = await get('csv/n?descending=true&skip=10&include_docs=true')
  assert.equal(descending.text, Array.from({ length: ROWS - 10 }, (_, n) => `${ROWS - 11 - n},50\n`).join('') + 'end')
  assert.equal((await get('sum/groups?group=true')).text, `${ROWS / 5} groups of ${ROWS}`)
  assert.equal((await get('first/n')).text, 'first 0,1,2')
  assert.equal((await get('none/n')).text, `of ${ROWS}`)
  assert.equal((await get('sum/groups')).text, `1 groups of ${ROWS}`)
  const all = await get('none/_all_docs')
  assert.equal(all.text, `of ${ROWS + 1}`)
  const { headers, text } = await server.client.request('HEAD', `/${db}/_design/d/_list/csv/n`)
  assert.deepEqual([headers['content-type'], text], ['text/csv', ''])
  assert.equal((await get('one/n')).text.length, 8e6 + 10)
  // 300 MB, more than may be held for a client.
  const large = await server.client.open(`/${db}/_design/d/_list/large/n`)
  large.response.removeAllListeners('data')
  let { length } = large.text
  large.response.on('data', (piece) => (length += piece.length))
  assert.equal(await large.ended(), 'end')
  assert.equal(length, ROWS * 50 * 200)
  assert.equal((await get('early/n')).status, 200)
  const late = await get('late/n')
  assert.deepEqual([late.status, late.headers['x-a'], late.text], [404, 'b', 'late'])
  const error = await get('error/n')
  assert.deepEqual([error.status, error.json.reason], [403, 'no'])
  const sent = await server.client.open(`/${db}/_design/d/_list/sent/n`)
  assert.equal(sent.status, 200)
  assert.equal(await sent.ended(), 'cut')
  const types = await get('types/n', { headers: { Accept: 'text/csv' } })
  assert.equal(types.headers['content-type'], 'text/csv')
  assert.equal(types.text.split('\n').length, ROWS + 1)
})

it('a list ends when its client disconnects', async (server) => {
  const db = await server.newDatabase()
  // Each page of rows takes a tenth of a second.
  await fill(server, db, {
    slow: "function () { for (let row, n = 0; (row = getRow()); n++) { send(row.key + '\\n'); if (n % 1000 === 0) for (const end = Date.now() + 100; Date.now() < end;); } }"
  })
  const stream = await server.client.open(`/${db}/_design/d/_list/slow/n`)
  assert.equal(await stream.line(), '0')
  assert.equal((await runningLists(server)).length, 1)
  stream.close()
  await waitFor('the end of the list', async () => (await runningLists(server)).length === 0)
  assert.equal((await server.client.get(`/${db}/_design/d/_list/slow/n?limit=1`)).text, '0\n')
})

it('a client that does not read holds no process', async (server) => {
  const db = await server.newDatabase()
  await fill(server, db, {
    // Less than may be held, and more.
    some: "function () { for (let row, n = 0; (row = getRow()); n++) if (n % 10 === 0) send(row.value.repeat(100)); }",
    much: "function () { for (let row; (row = getRow());) send(row.value.repeat(100)); }"
  })
  const begin = async (list) => {
    const socket = net.connect(server.client.port, server.client.hostname)
    socket.pause()
    socket.write(`GET /${db}/_design/d/_list/${list}/n HTTP/1.1\r\nHost: h\r\nConnection: close\r\n${authorization(server)}\r\n`)
    await waitFor('the list', async () => socket.readableLength > 0 || (await runningLists(server)).length > 0)
    await waitFor('the end of the list', async () => (await runningLists(server)).length === 0)
    return socket
  }
  const read = (socket) => {
    let length = 0
    const end = new Promise((resolve) => {
      socket.on('data', (bytes) => (length += bytes.length))
      socket.on('close', () => resolve(length))
    })
    socket.on('error', () => {})
    socket.resume()
    return within('the end of the response', end)
  }
  const some = await begin('some')
  assert.ok((await read(some)) > (ROWS / 10) * 50 * 100)
  const much = await begin('much')
  assert.ok((await read(much)) < ROWS * 50 * 100)
})

it('functions that fail harm nobody else', async (server) => {
  const db = await server.newDatabase()
  const lists = {
    endless: 'function () { while (true) {} }',
    later: 'function () { for (let row, n = 0; (row = getRow()); n++) if (n > 25000) while (true) {} }',
    send: "function () { while (true) send('x'.repeat(100000)); }",
    memory: 'function () { const all = []; while (getRow()) all.push(new Array(1e6).fill(all.length)); }',
    rows: 'function () { Array.prototype.push = getRow = null; return "done"; }',
    driver: 'function () { getRow = () => null; JSON = Object = null; while (getRow()); return "done"; }'
  }
  await fill(server, db, lists)
  const shows = {
    endless: lists.endless,
    large: "function () { return 'x'.repeat(20e6); }",
    memory: 'function () { const all = []; for (;;) all.push(new Array(1e6).fill(all.length)); }',
    recursive: 'function f() { f(); }',
    cyclic: 'function () { const a = {}; a.a = a; return {json: a}; }',
    throws: 'function () { throw {get forbidden() { throw 1; }}; }',
    good: "function () { return 'good'; }"
  }
  await put(server, `/${db}/_design/s`, { shows, rewrites: lists.endless })
  const of = async (path) => {
    const { status, json } = await server.client.get(`/${db}/_design/${path}`)
    return `${status} ${json.error}: ${json.reason}`
  }
  const failed = (reason) => new RegExp(`^500 render_error: function raised error: ${reason}`)
  // Which limit is exceeded first depends on the machine; builds with a sanitizer have none of memory.
  const limited = failed('.*(memory|killed|ended|time limit|emitted, returned or logged more)')
  assert.match(await of('s/_show/endless'), failed('exceeded the time limit'))
  assert.match(await of('s/_show/large'), limited)
  assert.match(await of('s/_show/memory'), limited)
  assert.match(await of('s/_show/recursive'), failed('InternalError: too much recursion'))
  assert.match(await of('s/_show/cyclic'), failed('TypeError: cyclic'))
  assert.match(await of('s/_show/throws'), failed('1'))
  assert.match(await of('s/_rewrite/x'), /^500 rewrite_error: function raised error: exceeded the time limit/)
  assert.match(await of('d/_list/endless/n'), failed('exceeded the time limit'))
  assert.match(await of('d/_list/endless/n?limit=1'), failed('exceeded the time limit'))
  assert.match(await of('d/_list/later/n'), failed('exceeded the time limit'))
  assert.match(await of('d/_list/memory/n'), limited)
  assert.match(await of('d/_list/send/n?limit=1'), limited)
  for (const list of ['rows', 'driver']) {
    for (const query of ['', '?limit=1']) {
      const { status, text } = await server.client.get(`/${db}/_design/d/_list/${list}/n${query}`)
      assert.ok(status === 200 ? text === 'done' : status === 500, `${status} ${text}`)
    }
  }
  assert.equal((await server.client.get(`/${db}/_design/s/_show/good`)).text, 'good')
})

testWithServer('a list has a maximum time', { env: { ...ENV, DIVAN_COUCHDB_OS_PROCESS_TIMEOUT: '300' } }, async (server) => {
  await put(server, '/db')
  await fill(server, 'db', { send: "function () { while (true) send('x'.repeat(1000000)); }" })
  const stream = await server.client.open('/db/_design/d/_list/send/n')
  stream.response.removeAllListeners('data')
  stream.response.resume()
  assert.equal(await stream.ended(), 'cut')
  assert.deepEqual(await runningLists(server), [])
})

testWithServer('slow lists delay neither quick lists nor index builds', {
  env: { ...ENV, DIVAN_COUCHDB_OS_PROCESS_TIMEOUT: '3000' }
}, async (server) => {
  const work = 'for (const end = Date.now() + 1000; Date.now() < end;);'
  const slow = ['slow0', 'slow1', 'slow2']
  for (const db of slow) {
    await put(server, `/${db}`)
    await fill(server, db, { slow: `function () { for (let row, n = 0; (row = getRow()); n++) if (n % 5000 === 0) { ${work} send('x'); } }` }, { rows: 15_000 })
  }
  const lists = slow.map((db) => server.client.get(`/${db}/_design/d/_list/slow/n`))
  let over = 0
  for (const list of lists) list.then(() => ++over)
  await waitFor('the lists', async () => (await runningLists(server)).length > 0)
  await put(server, '/quick')
  await put(server, '/quick/a', { n: 1 })
  await put(server, '/quick/_design/d', {
    views: { n: { map: 'function (doc) { if (doc.n) emit(doc.n); }' } },
    lists: { l: 'function () { return "key " + getRow().key; }' }
  })
  assert.equal((await server.client.get('/quick/_design/d/_list/l/n')).text, 'key 1')
  assert.ok(over < slow.length, 'the slow lists were not slow')
  for (const { status, text } of await Promise.all(lists)) assert.deepEqual([status, text], [200, 'xxx'])
})

it('members use shows, lists and rewrites, and others do not', async (server) => {
  const [db, other] = [await server.newDatabase(), await server.newDatabase()]
  await put(server, `/${db}/_security`, { members: { names: ['eve'], roles: [] } })
  await put(server, `/${db}/_design/d`, {
    shows: { s: 'function (doc, req) { return req.userCtx.name + " " + JSON.stringify(req.headers).toLowerCase(); }' },
    lists: { l: 'function (head, req) { return req.userCtx.name; }' },
    views: { v: { map: 'function (doc) { emit(1); }' } },
    rewrites: 'function (req) { return {path: req.query.path, method: req.query.method, query: {}}; }'
  })
  for (const name of ['eve', 'frank'])
    await put(server, `/_users/org.couchdb.user:${name}`, { name, type: 'user', roles: [], password: 'pw' })
  const [eve, frank] = [server.as('eve:pw'), server.as('frank:pw')]
  const paths = ['_show/s', '_list/l/v', '_list/l/_all_docs', '_rewrite/x?path=_show/s']
  for (const path of paths) {
    const target = `/${db}/_design/d/${path}`
    const shown = await eve.get(target)
    assert.equal(shown.status, 200)
    assert.match(shown.text, /^eve/)
    assert.doesNotMatch(shown.text, /authorization|cookie/)
    assert.equal((await frank.get(target)).status, 403)
    assert.equal((await server.as(null).get(target)).status, 401)
  }
  // A rewritten request has the rights of its user.
  await put(server, `/${other}/_security`, { members: { names: ['frank'], roles: [] } })
  const rewritten = (client, path, method = 'GET') => client.get(`/${db}/_design/d/_rewrite/x?path=${path}&method=${method}`)
  assert.equal((await rewritten(eve, `../../../${other}`)).status, 403)
  assert.equal((await rewritten(server.client, `../../../${other}`)).json.db_name, other)
  assert.equal((await rewritten(eve, '../../../_all_dbs')).status, 401)
  assert.equal((await rewritten(eve, '../../_security', 'PUT')).status, 403)
  // Nor does a function use the rights of an administrator outside of its database.
  for (const path of [`../../../${other}`, '../..'])
    assert.equal((await rewritten(server.client, path, 'DELETE')).json.error, 'insecure_rewrite_rule')
  assert.equal((await server.client.ok('GET', `/${other}`)).db_name, other)
  await server.client.ok('PUT', '/_node/_local/_config/httpd/secure_rewrites', '"false"')
  assert.equal((await rewritten(server.client, `../../../${other}`, 'DELETE')).status, 200)
  await put(server, `/${db}/_design/rules`, { rewrites: [{ from: 'uuids', to: '../../../_uuids' }] })
  assert.equal((await eve.get(`/${db}/_design/rules/_rewrite/uuids`)).json.uuids.length, 1)
  await server.client.ok('PUT', '/_node/_local/_config/chttpd/secure_rewrites', '"true"')
  assert.equal((await eve.get(`/${db}/_design/rules/_rewrite/uuids`)).json.error, 'insecure_rewrite_rule')
  await server.client.ok('DELETE', '/_node/_local/_config/chttpd/secure_rewrites')
  await server.client.ok('DELETE', '/_node/_local/_config/httpd/secure_rewrites')
})

// A browser sends the cookie with a GET of any page.
it('a session does not let a GET become a write', async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/_design/d`, { rewrites: "function (req) { return {path: '../../' + req.query.id, method: 'PUT', body: '{}', query: {}}; }" })
  const login = await server.as(null).post('/_session', { name: 'admin', password: 'secret' })
  const Cookie = login.headers['set-cookie'][0].split(';')[0]
  const rewrite = (method, id, headers) =>
    server.as(null).request(method, `/${db}/_design/d/_rewrite/x?id=${id}`, { headers, body: method === 'GET' ? undefined : {} })
  assert.equal((await rewrite('GET', 'a', { Cookie })).status, 403)
  assert.equal((await rewrite('POST', 'b', { Cookie })).status, 201)
  assert.equal((await server.client.get(`/${db}/_design/d/_rewrite/x?id=c`)).status, 201)
  const { rows } = await server.client.ok('GET', `/${db}/_all_docs`)
  assert.deepEqual(rows.map(({ id }) => id), ['_design/d', 'b', 'c'])
})

it('bodies, attachments and feeds go through rewrites', async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/_design/d`, { rewrites: [{ from: 'db/*', to: '../../*' }] })
  const base = `/${db}/_design/d/_rewrite/db`
  const large = Buffer.alloc(300_000, 'abc')
  const { rev } = (await server.client.put(`${base}/a/file.txt`, large, { headers: { 'Content-Type': 'text/plain' } })).json
  const file = await server.client.get(`${base}/a/file.txt`)
  assert.deepEqual([file.headers['content-type'], file.text], ['text/plain', large.toString()])
  const head = await server.client.request('HEAD', `${base}/a/file.txt`)
  assert.deepEqual([head.status, head.headers['content-length'], head.text], [200, '300000', ''])
  const docs = Array.from({ length: 3000 }, (_, n) => ({ _id: `d${n}`, text: 'x'.repeat(50) }))
  const written = await server.client.ok('POST', `${base}/_bulk_docs`, { docs })
  assert.ok(written.length === 3000 && written.every(({ ok }) => ok))
  const feed = await server.client.open(`${base}/_changes?feed=continuous&since=now&heartbeat=1000`)
  await put(server, `${base}/later`)
  assert.equal((await feed.row()).id, 'later')
  feed.close()
  assert.equal((await server.client.delete(`${base}/a?rev=${rev}`)).status, 200)
  const small = await server.client.post(base, { _id: 'posted' })
  assert.equal(small.status, 201)
})

it('a list that removes its head is still kept from the server’s origin', async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/a`)
  await put(server, `/${db}/_design/d`, {
    views: { v: { map: 'function (doc) { emit(doc._id, 1); }' } },
    lists: {
      setter: "function () { Object.defineProperty(Object.prototype, 'start', {set: function () {}}); return '<script>'; }",
      json: "function () { Object.prototype.toJSON = function () { return this.start ? {body: '<script>'} : this; }; return 'x'; }"
    }
  })
  for (const name of ['setter', 'json']) {
    const { headers, text } = await server.client.get(`/${db}/_design/d/_list/${name}/v`)
    assert.deepEqual([headers['content-security-policy'], text], ['sandbox', '<script>'], name)
  }
})

it('what rules make of a request is limited', async (server) => {
  const db = await server.newDatabase()
  const rewrites = [
    { from: 'path/:a', to: `../../${Array(100).fill(':a').join('/')}` },
    { from: 'query/:a', to: 'x', query: { v: Array(100).fill(':a') } },
    { from: 'keys', to: '_rewrite/keys', query: { keys: [':keys', ':keys'] } }
  ]
  await put(server, `/${db}/_design/d`, { rewrites })
  await put(server, `/${db}/_design/large`, { rewrites: Array(4000).fill({ from: 'a', to: 'b', method: 'GET' }) })
  for (const path of [`path/${'y'.repeat(3000)}`, `query/${'y'.repeat(3000)}`, 'keys?keys=%5B1%5D']) {
    const { status, json } = await server.client.get(`/${db}/_design/d/_rewrite/${path}`)
    assert.deepEqual([status, json.error], [500, 'rewrite_error'], path)
    assert.match(json.reason, /exceed 65536 bytes/)
  }
  assert.match((await server.client.get(`/${db}/_design/large/_rewrite/a`)).json.reason, /rules exceed 65536 bytes/)
})

it('an empty Accept allows any type, and halves of surrogate pairs are replaced', async (server) => {
  const db = await server.newDatabase()
  await put(server, `/${db}/_design/d`, {
    shows: {
      f: "function () { provides('json', function () { return 'json'; }); provides('html', function () { return 'html'; }); }",
      half: "function () { return {body: 'a\\ud83db', headers: {'X-A': 'fine'}}; }",
      thrown: "function () { throw {forbidden: 'a\\ude00b'}; }"
    }
  })
  for (const accept of ['', ' ']) assert.equal((await server.client.get(`/${db}/_design/d/_show/f`, { headers: { Accept: accept } })).text, 'json')
  assert.equal((await server.client.get(`/${db}/_design/d/_show/half`)).text, 'a\ufffdb')
  assert.equal((await server.client.get(`/${db}/_design/d/_show/thrown`)).json.reason, 'a\ufffdb')
})
