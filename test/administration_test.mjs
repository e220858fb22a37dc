// Administration of a running server: restarts, settings that are read again, statistics, requests that need a user.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { onlyEmbedded, Server, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const setting = (server, section, key, value) =>
  server.client.ok('PUT', `/_node/_local/_config/${section}/${key}`, JSON.stringify(value))
const stat = async (server, name) => (await server.client.ok('GET', `/_node/_local/_stats/${name}`)).value

testWithServer('a restart keeps the process, its data and its settings, and reads the others again', {}, async (first) => {
  const { port } = first.client
  await first.stop()
  const file = path.join(temporaryDirectory(), 'divan.ini')
  writeFileSync(file, '[chttpd]\nmax_connections = 100\n')
  const server = await Server.start({ port, args: ['--config', file] })
  try {
    await server.client.ok('PUT', '/db')
    await server.client.ok('PUT', '/db/a', { n: 1 })
    await setting(server, 'log', 'level', 'warning')
    writeFileSync(file, '[chttpd\n')
    const refused = await server.client.post('/_node/_local/_restart', {})
    assert.equal(refused.status, 400)
    assert.match(refused.json.reason, /Cannot restart: .*not a setting/)
    writeFileSync(file, '[chttpd]\nmax_connections = 200\n')
    const feed = server.client.get('/db/_changes?feed=longpoll&since=now').catch(() => null)
    assert.deepEqual(await server.client.ok('POST', '/_node/_local/_restart'), { ok: true })
    await waitFor('the server to be up again', async () => {
      // Until it says so, SIGTERM ends it at once.
      if (server.stdout.match(/listens on/g).length < 2) return false
      try {
        return (await server.client.ok('GET', '/_node/_local/_config/chttpd/max_connections')) === '200'
      } catch {
        return false
      }
    })
    await feed
    assert.equal((await server.client.ok('GET', '/db/a')).n, 1)
    assert.equal(await server.client.ok('GET', '/_node/_local/_config/log/level'), 'warning')
  } finally {
    await server.stop() // fails unless the process that was started first ends in order
  }
})

const config = path.join(temporaryDirectory(), 'divan.ini')
writeFileSync(config, '[log]\nlevel = warning\n[couchdb]\nmax_document_size = 1000\n[chttpd]\nmax_connections = 100\n')
testWithServer('settings that are read again take effect, or all stay as they were', { args: ['--config', config] }, async (server) => {
  const read = (name) => server.client.ok('GET', `/_node/_local/_config/${name}`)
  const reload = (text) => {
    writeFileSync(config, text)
    return server.client.post('/_node/_local/_config/_reload', {})
  }
  await setting(server, 'mango', 'default_limit', '7')
  const next = '[log]\nlevel = error\n[couchdb]\nmax_document_size = 10\n[chttpd]\nmax_connections = 200\n'
  assert.equal(await read('log/level'), 'warning')
  assert.equal((await reload(next)).status, 200)
  assert.equal(await read('log/level'), 'error')
  assert.equal(await read('mango/default_limit'), '7') // is in local.ini
  assert.equal(await read('chttpd/max_connections'), '100') // is only read at the start
  await server.client.ok('PUT', '/db')
  const long = { text: 'longer than ten bytes' }
  assert.equal((await server.client.put('/db/a', long)).status, 413)

  for (const [text, reason] of [
    ['[log]\nlevel = loud\n', /loud/],
    ['[log]\nlevel = info\n[nonsense]\nkey = 1\n', /Unknown setting \[nonsense\] key/],
    ['[log\n', /line 1/]
  ]) {
    const { status, json } = await reload(text)
    assert.deepEqual([status, json.error], [400, 'bad_request'])
    assert.match(json.reason, reason)
    assert.equal(await read('log/level'), 'error')
    assert.equal(await read('couchdb/max_document_size'), '10')
  }
  assert.equal((await reload('')).status, 200)
  assert.equal(await read('log/level'), 'info')
  assert.equal((await server.client.put('/db/a', long)).status, 201)
})

testWithServer('requests are counted by their methods and statuses', {}, async (server) => {
  const names = ['httpd/requests', 'httpd_request_methods/PUT', 'httpd_status_codes/404', 'httpd_status_codes/201', 'commits']
  const before = await Promise.all(names.map((name) => stat(server, `couchdb/${name}`)))
  await server.client.ok('PUT', '/db')
  await server.client.ok('PUT', '/db/a', {})
  await server.client.get('/db/missing')
  const after = await Promise.all(names.map((name) => stat(server, `couchdb/${name}`)))
  const difference = after.map((value, i) => value - before[i])
  assert.ok(difference[0] >= 4, `${difference}`)
  assert.deepEqual(difference.slice(1, 4), [2, 1, 2])
  assert.ok(difference[4] >= 2, `${difference}`)
  const { n, arithmetic_mean, max } = await stat(server, 'couchdb/request_time')
  assert.ok(n > 0 && arithmetic_mean > 0 && arithmetic_mean <= max, `${n} ${arithmetic_mean} ${max}`)
})

testWithServer('a user with the role _metrics reads statistics and metrics, and nothing else', {}, async (server) => {
  await setting(server, 'chttpd_auth', 'iterations', '10')
  const user = (roles) => ({ name: 'meter', type: 'user', password: 'm', roles })
  const id = '/_users/org.couchdb.user:meter'
  assert.equal((await server.client.put(id, user(['_admin']))).status, 403)
  await server.client.ok('PUT', id, user(['_metrics']))
  const meter = server.as('meter:m')
  for (const name of ['_stats', '_stats/couchdb/request_time', '_system', '_prometheus'])
    assert.equal((await meter.get(`/_node/_local/${name}`)).status, 200, name)
  for (const name of ['_config', '_versions', '', '_smoosh/status'])
    assert.equal((await meter.get(`/_node/_local/${name}`)).status, 401, name)
  assert.equal((await meter.get('/_all_dbs')).status, 401)
})

testWithServer('JavaScript processes are replaced', {}, async (server) => {
  await server.client.ok('PUT', '/db')
  await server.client.ok('PUT', '/db/_design/d', { views: { v: { map: 'function (doc) { emit(doc._id); }' } } })
  await server.client.ok('PUT', '/db/a', {})
  assert.equal((await server.client.ok('GET', '/db/_design/d/_view/v')).total_rows, 1)
  const exits = () => stat(server, 'couchdb/query_server/process_exits')
  const count = await stat(server, 'couchdb/query_server/process_count')
  assert.ok(count > 0)
  const before = await exits()
  await server.client.ok('POST', '/_reload_query_servers', {})
  await waitFor('the processes to end', async () => (await exits()) - before >= count)
  await server.client.ok('PUT', '/db/b', {})
  assert.equal((await server.client.ok('GET', '/db/_design/d/_view/v')).total_rows, 2)
})

testWithServer('if every request needs a user, only a login needs none', {}, async (server) => {
  const anonymous = server.as(null)
  const status = async (target) => (await anonymous.get(target)).status
  assert.equal(await status('/'), 200)
  await setting(server, 'chttpd', 'require_valid_user', 'true')
  for (const target of ['/', '/_up', '/_session', '/_utils/', '/_uuids', '/db']) {
    const { status, json, headers } = await anonymous.get(target)
    assert.deepEqual([status, json], [401, { error: 'unauthorized', reason: 'Authentication required.' }], target)
    assert.equal(headers['www-authenticate'], 'Basic realm="server"')
  }
  assert.equal((await anonymous.post('/_session', { name: 'admin', password: 'secret' })).status, 200)
  assert.equal((await server.client.get('/')).status, 200)
  await setting(server, 'chttpd', 'require_valid_user', 'false')
  await setting(server, 'chttpd', 'require_valid_user_except_for_up', 'true')
  assert.deepEqual([await status('/'), await status('/_up'), await status('/_up/x')], [401, 200, 401])
  await setting(server, 'chttpd', 'require_valid_user_except_for_up', 'false')
  assert.equal(await status('/'), 200)
})

onlyEmbedded(testWithServer)('a new node is set up by an installer, with the settings that it has', {}, async (server) => {
  const state = async () => (await server.client.ok('GET', '/_cluster_setup')).state
  const refusal = async (more) => {
    const { status, json } = await server.client.post('/_cluster_setup', { action: 'enable_single_node', ...more })
    return [status, json.reason]
  }
  assert.equal(await state(), 'single_node_disabled')
  const [status, reason] = await refusal({ bind_address: '0.0.0.0' })
  assert.equal(status, 400)
  assert.match(reason, /^`bind_address` is 127\.0\.0\.1, not 0\.0\.0\.0: .* --bind /)
  assert.match((await refusal({ port: 5 }))[1], /^`port` is 0, not 5: .* --port /)
  const wrong = '`username` and `password` are not those of an administrator.'
  for (const [username, password] of [['admin', 'wrong'], ['nobody', 'secret'], ['', '']])
    assert.ok((await refusal({ username, password }))[1].startsWith(wrong), username)
  assert.deepEqual(await refusal({ username: 'admin' }), [400, '`username` and `password` must be strings.'])
  assert.equal(await state(), 'single_node_disabled')

  const all = { username: 'admin', password: 'secret', bind_address: '127.0.0.1', port: '0' }
  for (const more of [{}, all, { ...all, port: 0 }, { bind_address: null }])
    assert.deepEqual(await server.client.ok('POST', '/_cluster_setup', { action: 'enable_single_node', ...more }), { ok: true })
  assert.equal(await state(), 'single_node_enabled')
  assert.deepEqual(await server.client.ok('GET', '/_all_dbs'), ['_replicator', '_users'])
})

testWithServer('the last hour is kept for charts', {}, async (server) => {
  const history = (query = '') => server.client.ok('GET', `/_node/_local/_history${query}`)
  const { interval, series } = await history()
  assert.equal(interval, 5)
  assert.deepEqual(Object.keys(series), ['requests', 'documents_written', 'cpu_cores', 'javascript_processes', 'memory_bytes'])
  await server.client.ok('PUT', '/db')
  await server.client.ok('POST', '/db/_bulk_docs', { docs: Array.from({ length: 20 }, (_, n) => ({ n })) })
  await server.client.ok('PUT', '/_jobs/mail', {})
  await server.client.ok('PUT', '/_jobs/mail/a', {})
  const { jobs: [job] } = await server.client.ok('POST', '/_jobs/mail/_accept', {})
  await server.client.ok('POST', '/_jobs/mail/a/_finish', { lock: job.lock })
  const sum = (values) => values.reduce((a, b) => a + b, 0)
  await waitFor('samples of what was done', async () => {
    const { series, jobs, times } = await history('?type=mail')
    assert.ok(times.every((time, i) => i === 0 || time > times[i - 1]))
    return sum(series.documents_written) > 0 && sum(series.requests) > 0 && sum(jobs.started) === 1 && sum(jobs.ended) === 1
  })
  assert.equal(sum((await history('?type=other')).jobs.started), 0)
  assert.equal((await history('?samples=1')).times.length, 1)
  assert.ok((await stat(server, 'couchdb/document_writes')) >= 20)
  assert.equal((await server.as(null).get('/_node/_local/_history')).status, 401)
})

testWithServer('settings are described, and the last lines of the log can be read', {}, async (server) => {
  const settings = await server.client.ok('GET', '/_node/_local/_settings')
  const level = settings.find(({ section, key }) => section === 'log' && key === 'level')
  assert.deepEqual([level.default, level.live], ['info', true])
  assert.ok(settings.every(({ description }) => description.length > 0))
  await server.client.ok('PUT', '/db')
  // Indexes that are invalid, which only replication can write.
  await server.client.ok('POST', '/db/_bulk_docs', { new_edits: false, docs: [{ _id: '_design/bad', _rev: '1-a', views: 1 }] })
  const log = (query = '') => server.client.ok('GET', `/_node/_local/_log${query}`)
  await waitFor('a line', async () => (await log()).lines.some(({ level, text }) => level === 'warning' && text.includes('_design/bad')))
  const { lines } = await log()
  assert.match(lines[0].level, /^(info|warning|error)$/)
  assert.equal((await log('?limit=1')).lines.length, 1)
  assert.ok((await log(`?after=${lines[0].time}`)).lines.every(({ time }) => time > lines[0].time))
  for (const path of ['_settings', '_log']) assert.equal((await server.as(null).get(`/_node/_local/${path}`)).status, 401, path)
})

testWithServer('the dashboard is sent to everyone, compressed, with validators and a policy', {}, async (server) => {
  const get = (target, headers = {}) => server.as(null).get(target, { headers })
  const plain = await get('/_utils/')
  assert.deepEqual([plain.status, plain.headers['content-type'], plain.headers['content-encoding']], [200, 'text/html; charset=utf-8', undefined])
  assert.match(plain.text, /<title>Divan<\/title>/)
  assert.match(plain.headers['content-security-policy'], /^default-src 'none'; script-src 'self'; style-src 'self'; /)
  assert.equal(plain.headers['cache-control'], 'private, must-revalidate')
  const gzip = { 'Accept-Encoding': 'gzip' }
  const index = await get('/_utils/', gzip)
  assert.deepEqual([index.headers['content-encoding'], index.headers.vary], ['gzip', 'Accept-Encoding'])
  assert.ok(index.headers.etag)
  assert.equal((await get('/_utils/', { ...gzip, 'If-None-Match': index.headers.etag })).status, 304)
  const [script] = /assets\/[^"]+\.js/.exec(plain.text)
  const code = await get(`/_utils/${script}`)
  assert.deepEqual([code.status, code.headers['content-type'], code.headers['cache-control']], [200, 'text/javascript; charset=utf-8', 'private, max-age=31536000, immutable'])
  assert.match((await get('/_utils/licenses.txt')).text, /^==== preact \d.*\n\nThe MIT License/m)
  for (const target of ['/_utils/assets/', '/_utils/nothing.js', '/_utils/../welcome']) assert.equal((await get(target)).status, 404, target)
  await setting(server, 'csp', 'utils_header_value', "default-src 'none'")
  assert.equal((await get('/_utils/')).headers['content-security-policy'], "default-src 'none'")
})
