// Invalid or malicious design documents affect only themselves. Settings make time limits short; no test
// measures time.
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { Server, shareServer, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const SETTINGS = { DIVAN_COUCHDB_OS_PROCESS_TIMEOUT: '300', DIVAN_DIVAN_JS_PROCESSES: '2' }
const it = shareServer({ env: SETTINGS })

const docs = (count) => Array.from({ length: count }, (_, n) => ({ _id: `d${String(n).padStart(4, '0')}`, n }))

async function database(server, documents = docs(3)) {
  const db = await server.newDatabase()
  await server.client.ok('POST', `/${db}/_bulk_docs`, { docs: documents })
  return db
}

const put = (server, db, views, name = 'd') => server.client.ok('PUT', `/${db}/_design/${name}`, { views })
const view = (server, db, path) => server.client.get(`/${db}/_design/${path}`)
const set = (server, name, value) => server.client.ok('PUT', `/_node/_local/_config/${name}`, `"${value}"`)
const keys = (answer) => answer.json.rows.map(({ key }) => key)
const GOOD = 'function (doc) { emit(doc._id, doc.n) }'

// Returns a function that returns the log since this call.
const logSince = (server) => {
  const start = server.log.length
  return () => server.log.slice(start)
}

// --- what design documents may be

const BROKEN = [
  ['views that are no object', { views: [] }],
  ['views that are a string', { views: 'x' }],
  ['a view that is no object', { views: { v: 'function (doc) {}' } }],
  ['a view that is null', { views: { v: null } }],
  ['a view without map', { views: { v: { reduce: '_count' } } }],
  ['an empty map', { views: { v: { map: '' } } }],
  ['a map that is a number', { views: { v: { map: 7 } } }],
  ['a map that is an object', { views: { v: { map: { a: 1 } } } }],
  ['a map that is no function', { views: { v: { map: '1 + 1' } } }],
  ['a map of blanks', { views: { v: { map: ' \n\t ' } } }],
  ['a map that is a comment', { views: { v: { map: '// later' } } }],
  ['a map with a zero byte', { views: { v: { map: 'function (doc) { \u0000 }' } } }],
  ['a map cut short', { views: { v: { map: 'function (doc) { emit(doc' } } }],
  ['a map that throws as it is compiled', { views: { v: { map: '(function () { throw 1 })()' } } }],
  ['a map that never compiles', { views: { v: { map: '(function () { for (;;); })()' } } }],
  ['a map nested too deeply', { views: { v: { map: 'function (doc) { ' + '('.repeat(200000) + ')'.repeat(200000) + ' }' } } }],
  ['a reduce that is no function', { views: { v: { map: GOOD, reduce: '{' } } }],
  ['a reduce that is unknown', { views: { v: { map: GOOD, reduce: '_nothing' } } }],
  ['a language that is no string', { language: 7, views: { v: { map: GOOD } } }]
]

for (const [what, design] of BROKEN) {
  it(`${what}: refused, and the error names it`, async (server) => {
    const db = await database(server)
    const answer = await server.client.put(`/${db}/_design/d`, design)
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.json.error, /^(compilation_error|invalid_design_doc)$/)
    assert.equal((await server.client.get(`/${db}/_design/d`)).status, 404)
    assert.equal((await server.client.get('/_up')).status, 200)
  })
}

it('an error names the view, the line and the replacement of old JavaScript', async (server) => {
  const db = await database(server)
  const map = 'function (doc) {\n  for each (var tag in doc.tags) emit(tag);\n}'
  const answer = await server.client.put(`/${db}/_design/d`, { views: { tags: { map } } })
  assert.equal(answer.json.error, 'compilation_error')
  assert.match(answer.json.reason, /'tags' view.*SyntaxError.*\(line 2\).*Object\.values/)
})

// --- what functions may do

// Name, body, and the log line; none if it does not fail.
const HOSTILE = [
  ['throws', "throw new Error('no')", /Error: no \(line 1\)/],
  ['throws nothing', 'throw undefined', /failed on document/],
  ['never returns', 'for (;;);', /exceeded the time limit of one call/],
  ['never returns and catches', 'for (;;) { try { for (;;); } catch (e) {} }', /exceeded the time limit of one call/],
  ['recurses', '(function f() { f() })()', /too much recursion/],
  ['emits what is circular', 'var a = {}; a.a = a; emit(a)', /cyclic/],
  ['emits a 20 MB value', "emit('k', 'x'.repeat(2e7))", /more than the limit of one call/],
  ['emits without end', 'for (;;) emit(1)', /failed on document/],
  ['allocates', 'var a = []; for (;;) a.push(new Array(1e5).fill(1))', /failed on document/],
  ['allocates strings', "var a = []; for (;;) a.push('x'.repeat(1e6) + a.length)", /failed on document/],
  ['cannot be stopped', "'a'.repeat(4e7).indexOf('a'.repeat(2e7) + 'b')", /failed on document/],
  ['asks for files', "require('fs').readFileSync('/etc/passwd')", /invalid_require_path: Object has no property "fs"/],
  ['asks for the process', "new Function('return this')().process.exit()", /TypeError/],
  ['loads a script', "load('/etc/passwd')", /load is not defined/],
  ['opens a socket', "new WebSocket('ws://127.0.0.1')", /WebSocket is not defined/],
  ['fetches', "fetch('http://127.0.0.1:5984/')", /fetch is not defined/],
  ['waits for ever', 'await0 = (async () => { await 1 })(); Atomics.wait(new Int32Array(4), 0, 0)', /Atomics is not defined/],
  ['changes the document', "Object.defineProperty(doc, 'n', { value: 7 })", /TypeError/],
  ['redefines what is built in',
    "JSON.stringify = Array.prototype.push = function () { return 'x' }; Object.prototype.toJSON = function () { return 1 };" +
    "emit = log = sum = null; throw 'done'", /done/]
]

for (const [what, body, logged] of HOSTILE) {
  it(`a function that ${what} affects only itself`, async (server) => {
    const db = await database(server)
    const log = logSince(server)
    // It fails for one document of three; another view of the same design document, and a design document of
    // another database, are complete.
    await put(server, db, {
      bad: { map: `function (doc) { if (doc.n === 1) { ${body} } emit(doc._id) }` },
      good: { map: GOOD }
    })
    const answer = await view(server, db, 'd/_view/bad')
    assert.equal(answer.status, 200, answer.text)
    const others = keys(await view(server, db, 'd/_view/good'))
    assert.ok(keys(answer).includes('d0000'), answer.text)
    assert.ok(!keys(answer).includes('d0001'), answer.text)
    assert.ok(others.includes('d0000') && others.includes('d0002') || /emit = log/.test(body), others)
    await waitFor('the log to tell', () => logged.test(log()))
    assert.match(log(), new RegExp(`Map function \`bad\` of \`_design/d\` in \`${db}\` failed on document \`d0001\``))
    const innocent = await database(server)
    await put(server, innocent, { good: { map: GOOD } })
    assert.deepEqual(keys(await view(server, innocent, 'd/_view/good')), ['d0000', 'd0001', 'd0002'])
  })
}

it('failures are counted', async (server) => {
  const db = await database(server, docs(20))
  const before = await server.metric('divan_js_failures_total')
  await put(server, db, { v: { map: 'function (doc) { if (doc.n % 2) doc.a.b.c; emit(doc.n) }' } })
  assert.equal(keys(await view(server, db, 'd/_view/v')).length, 10)
  assert.equal(await server.metric('divan_js_failures_total'), before + 10)
})

it('a value that is not JSON is null, 10,000 rows of a document are stored, a value of 9 MB is left out', async (server) => {
  const db = await database(server, [{ _id: 'a' }])
  await put(server, db, {
    odd: { map: 'function (doc) { emit([undefined, NaN, Infinity, function () {}], undefined) }' },
    many: { map: 'function (doc) { for (var i = 0; i < 10000; i++) emit(i) }' },
    large: { map: "function (doc) { emit('small', 1); emit('large', new Array(9e6).join('x')) }" }
  })
  assert.deepEqual((await view(server, db, 'd/_view/odd')).json.rows,
    [{ id: 'a', key: [null, null, null, null], value: null }])
  assert.equal((await view(server, db, 'd/_view/many?limit=1')).json.total_rows, 10_000)
  const large = await view(server, db, 'd/_view/large')
  assert.equal(large.status, 200)
  assert.ok(!keys(large).includes('large'))
})

it('state of functions is not visible to the same functions of another database', async (server) => {
  const map = '(function () { var seen = []; return function (doc) { seen.push(doc._id); emit(doc._id, seen.slice()) } })()'
  // The second database may also be one created under the name of a deleted one.
  for (const other of [true, false]) {
    const first = await database(server, [{ _id: 'secret' }])
    await put(server, first, { v: { map } })
    assert.deepEqual((await view(server, first, 'd/_view/v')).json.rows[0].value, ['secret'])
    let second = first
    if (other) {
      second = await database(server, [{ _id: 'mine' }])
    } else {
      await server.client.ok('DELETE', `/${first}`)
      await server.client.ok('PUT', `/${first}`)
      await server.client.ok('PUT', `/${first}/mine`, {})
    }
    await put(server, second, { v: { map } })
    assert.deepEqual((await view(server, second, 'd/_view/v')).json.rows[0].value, ['mine'])
  }
})

it('a failing reduce function concerns its own queries only', async (server) => {
  const db = await database(server)
  await put(server, db, {
    throws: { map: GOOD, reduce: "function (k, v) {\n throw new Error('no') }" },
    loops: { map: GOOD, reduce: 'function (k, v) { for (;;); }' },
    good: { map: GOOD, reduce: 'function (k, v) { return sum(v) }' }
  })
  const log = logSince(server)
  assert.deepEqual((await view(server, db, 'd/_view/throws')).json.rows, [{ key: null, value: null }])
  await waitFor('the log to tell', () => /`throws` of `_design\/d`: Error: no \(line 2\)/.test(log()))
  assert.match((await view(server, db, 'd/_view/loops')).text, /exceeded the time limit of one call/)
  assert.equal((await view(server, db, 'd/_view/good')).json.rows[0].value, 3)
})

// --- modules

it('map functions can require the modules of views.lib, and indexes are rebuilt when these change', async (server) => {
  const db = await database(server)
  const design = (factor) => ({
    views: {
      lib: { times: `exports.factor = ${factor}; exports.times = require('./deep/er').times`,
        deep: { er: "var top = require('../times'); exports.times = function (n) { return n * top.factor }" } },
      v: { map: "function (doc) { emit(require('views/lib/times').times(doc.n)) }" }
    }
  })
  const { rev } = await server.client.ok('PUT', `/${db}/_design/d`, design(10))
  assert.deepEqual(keys(await view(server, db, 'd/_view/v')), [0, 10, 20])
  await server.client.ok('PUT', `/${db}/_design/d`, { ...design(100), _rev: rev })
  assert.deepEqual(keys(await view(server, db, 'd/_view/v')), [0, 100, 200])
})

it('a module that is missing is CouchDB\'s error in the log', async (server) => {
  const db = await database(server)
  const log = logSince(server)
  await put(server, db, {
    lib: { a: 'exports.a = 1' },
    v: { map: "function (doc) { if (doc.n === 1) require('views/lib/b'); emit(require('views/lib/a').a) }" }
  })
  assert.deepEqual(keys(await view(server, db, 'd/_view/v')), [1, 1])
  await waitFor('the log to tell', () =>
    /document `d0001`: invalid_require_path: Object has no property "b"\. \{"a":"exports\.a = 1"\} \(line 1\)/.test(log()))
})

// --- the log

testWithServer('log() writes single lines that name the function, up to a limit',
  { env: { ...SETTINGS, DIVAN_DIVAN_JS_LOG_LINES: '0' } }, async (server) => {
    const db = await database(server, docs(1000))
    await put(server, db, { v: { map: "function (doc) { log('at ' + doc._id + '\\n[forged] line'); emit(1) }" } }, 'noisy')
    await put(server, db, { v: { map: "function (doc) { doc.a.b }" } }, 'failing')
    for (const name of ['noisy', 'failing']) await view(server, db, `${name}/_view/v?limit=1`)
    const lines = server.log.split('\n')
    const noisy = lines.filter((line) => line.includes(`Function \`v\` of \`_design/noisy\` in \`${db}\` logs: at d`))
    assert.equal(noisy.length, 100)
    assert.ok(noisy[0].endsWith('at d0000\\n[forged] line'), noisy[0])
    assert.ok(!lines.some((line) => line.startsWith('[forged]')))
    assert.equal(lines.filter((line) => line.includes('Map function `v` of `_design/failing`')).length, 100)
    // Beyond the rate, lines are counted.
    await set(server, 'divan/js_log_lines', 1000)
    await waitFor('a line to be written again', async () => {
      await server.client.ok('POST', `/${db}`, {})
      await view(server, db, 'noisy/_view/v?limit=1')
      return /_design\/noisy` in `\w+` logs: \.\.\. \(\d+ lines dropped\)/.test(server.log)
    })
  })

// --- processes

const childrenOf = (pid) =>
  readdirSync('/proc').filter((name) => /^\d+$/.test(name)).filter((name) => {
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8')
      return status.includes(`\nPPid:\t${pid}\n`) && status.startsWith('Name:\tdivan-js')
    } catch {
      return false
    }
  }).map(Number)

it('a build loses no document when its processes are killed', async (server) => {
  const db = await database(server, docs(4000))
  const died = await server.metric('divan_js_processes_died_total')
  await put(server, db, { v: { map: 'function (doc) { var end = Date.now() + 2; while (Date.now() < end); emit(doc._id) }' } })
  let done = false
  const answer = view(server, db, 'd/_view/v').finally(() => (done = true))
  for (let kills = 0; kills < 3 && !done; ++kills) {
    const mapped = await server.metric('divan_js_documents_total')
    await waitFor('processes to be killed', () => {
      const found = childrenOf(server.pid)
      for (const child of found) process.kill(child, 'SIGKILL')
      return found.length > 0
    })
    await waitFor('the build to continue', async () => done || (await server.metric('divan_js_documents_total')) > mapped)
  }
  assert.deepEqual(keys(await answer), docs(4000).map(({ _id }) => _id))
  assert.ok((await server.metric('divan_js_processes_died_total')) > died)
})

it('slow functions of some databases delay another by a batch, not by their whole builds', async (server) => {
  // Each would take minutes, at once, on two processes.
  const slow = 'function (doc) { var end = Date.now() + 200; while (Date.now() < end); emit(1) }'
  const hostile = await Promise.all([0, 1].map(() => database(server, docs(2000))))
  for (const db of hostile) await put(server, db, { v: { map: slow } })
  await waitFor('the slow ones to have all processes', async () =>
    (await server.client.ok('GET', '/_active_tasks')).filter(({ database }) => hostile.includes(database)).length === 2 &&
    childrenOf(server.pid).length >= 2)
  const innocent = await database(server)
  // Neither writing a design document nor its index waits for them.
  await put(server, innocent, { good: { map: GOOD, reduce: 'function (k, v) { return sum(v) }' } })
  assert.equal((await view(server, innocent, 'd/_view/good')).json.rows[0].value, 3)
  for (const db of hostile) {
    // Between two runs a build is not an active task.
    const { changes_done, total_changes } = await waitFor('its task', async () =>
      (await server.client.ok('GET', '/_active_tasks')).find(({ database }) => database === db))
    assert.ok(changes_done < total_changes)
    await server.client.ok('DELETE', `/${db}`)
  }
})

testWithServer('a server that stops does not wait for functions, and the builds continue later', {}, async (server) => {
  const db = await database(server)
  const { _rev } = await server.client.ok('GET', `/${db}/d0001`)
  // While this document exists, each function runs for an hour.
  await server.client.ok('PUT', '/_node/_local/_config/couchdb/os_process_timeout', '"3600000"')
  await put(server, db, { v: { map: "function (doc) { while (doc._rev === '" + _rev + "'); emit(doc._id) }" } })
  await put(server, db, { r: { map: GOOD, reduce: 'function (k, v) { for (;;); }' } }, 'r')
  await waitFor('the functions to run', async () => childrenOf(server.pid).length > 0)
  const query = view(server, db, 'd/_view/v').catch(() => {})
  const reduce = view(server, db, 'r/_view/r').catch(() => {})
  server.ownsDirectory = false
  await server.stop()
  await Promise.all([query, reduce])
  const again = await Server.start({ dataDir: server.dataDir, env: SETTINGS })
  await again.client.ok('PUT', `/${db}/d0001`, { _rev, n: 1 })
  assert.deepEqual(keys(await view(again, db, 'd/_view/v')).sort(), ['d0000', 'd0001', 'd0002'])
  await again.stop()
})

testWithServer('limits change while the server runs', { env: SETTINGS }, async (server) => {
  const db = await database(server)
  // Takes seconds of processor time.
  const map = (count) => `function (doc) { for (var i = 0; i < ${count}; i++); emit(doc._id) }`
  await put(server, db, { v: { map: map(2e9) } }, 'slow')
  assert.match((await view(server, db, 'slow/_view/v')).text, /exceeded the time limit of one call/)
  await set(server, 'couchdb/os_process_timeout', 60000)
  await put(server, db, { v: { map: map(2e9 + 1) } }, 'slow2')
  assert.equal(keys(await view(server, db, 'slow2/_view/v')).length, 3)
  const before = childrenOf(server.pid)
  await set(server, 'divan/js_memory_bytes', 160 << 20)
  await put(server, db, { v: { map: GOOD } }, 'good')
  await view(server, db, 'good/_view/v')
  // Busy ones end when they are free.
  await waitFor('other processes', () => {
    const after = childrenOf(server.pid)
    return after.length > 0 && after.every((child) => !before.includes(child))
  })
  const refused = await server.client.put('/_node/_local/_config/divan/js_memory_bytes', '"1000"')
  assert.equal(refused.status, 400, refused.text)
})

// --- reductions that do not shrink

testWithServer('a reduction that does not shrink is an error in its row, depending on the setting', {}, async (server) => {
  const db = await database(server, docs(200))
  const map = 'function (doc) { emit([doc.n % 2, doc._id], doc.n % 2 ? "x".repeat(100) : "y") }'
  const reduce = 'function (keys, values, rereduce) { return values.join("") }'
  await put(server, db, { v: { map, reduce } })
  const read = async (query = '') => (await view(server, db, `d/_view/v${query}`)).json.rows
  const overflow = /^Reduce output must shrink more rapidly: input size: \d+ output size: \d+ context: (.*)$/
  const [whole] = await read()
  assert.deepEqual({ ...whole, reason: '' }, { key: null, error: 'reduce_overflow_error', reason: '' })
  assert.equal(overflow.exec(whole.reason)[1], `${db}/_design/d/_view/v`)
  // Reductions that shrink or are small, and the rows themselves, are not affected.
  const [even, odd] = await read('?group_level=1')
  assert.equal(even.value, 'y'.repeat(100))
  assert.match(odd.reason, overflow)
  assert.equal((await read('?reduce=false')).length, 200)
  assert.equal((await read('?start_key=[1]&end_key=[1,"d0011"]'))[0].value.length, 600)

  const logged = logSince(server)
  await set(server, 'query_server_config/reduce_limit', 'log')
  assert.equal((await read())[0].value.length, 10100)
  await waitFor('a line in the log', async () =>
    logged().includes('reduce_overflow_error: Reduce output must shrink more rapidly: '))
  await set(server, 'query_server_config/reduce_limit', 'false')
  assert.equal((await read())[0].value.length, 10100)
  await set(server, 'query_server_config/reduce_limit', 'true')
  await set(server, 'query_server_config/reduce_limit_threshold', 10102)
  assert.equal((await read())[0].value.length, 10100)
  await set(server, 'query_server_config/reduce_limit_threshold', 10101)
  assert.match((await read())[0].reason, overflow)
  await set(server, 'query_server_config/reduce_limit_ratio', 0.5)
  assert.equal((await read())[0].value.length, 10100)

  for (const [key, value] of [['', 'maybe'], ['_threshold', 'many'], ['_threshold', '-1'], ['_ratio', 'x']]) {
    const answer = await server.client.put(`/_node/_local/_config/query_server_config/reduce_limit${key}`, `"${value}"`)
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.json.reason, new RegExp(`\\[query_server_config\\] reduce_limit${key} = ${value} is`))
  }
})
