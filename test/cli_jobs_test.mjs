// The command line of the job queue: divan jobs and divan workers, with the real server.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { runDivan, shareServer, startDivan, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor, within } from './support/wait.mjs'

const it = shareServer()
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/
const STATES = ['PENDING', 'RUNNING', 'FINISHED', 'FAILED', 'CANCELLED']
const COLUMNS = ['ID', 'STATE', 'ATTEMPT', 'FAILURES', 'DUE', 'STARTED', 'WORKER', 'LAST ERROR']

const environment = (server) => ({ DIVAN_URL: server.url, DIVAN_USER: server.credentials })
const run = (server, args, options) => runDivan(args, { ...options, env: environment(server) })
const start = (server, args, options) => startDivan(args, { ...options, env: environment(server) })

// What a tool printed. Throws if it fails.
async function tool(server, args, options) {
  const { code, stdout, stderr } = await run(server, args, options)
  assert.equal(code, 0, stderr)
  return stdout
}
const json = async (server, args) => JSON.parse(await tool(server, [...args, '--json']))

// Runs a tool that must fail, with one line of words like these.
async function refused(server, args, words, options) {
  const { code, stdout, stderr } = await run(server, args, options)
  assert.deepEqual([code, stdout], [1, ''], stderr)
  assert.match(stderr, /^divan: .*\n$/) // `.` is no line end
  assert.match(stderr, words)
}

// The rows of a table as objects.
function table(text) {
  const [head, ...rows] = text.trimEnd().split('\n').map((line) => line.split(/\s{2,}/))
  return rows.map((row) => Object.fromEntries(head.map((name, i) => [name, row[i]])))
}

let types = 0
async function newType(server, settings = {}) {
  const type = `type${++types}`
  await server.client.ok('PUT', `/_jobs/${type}`, settings)
  return type
}

const add = (server, type, id, body = {}) => server.client.ok('PUT', `/_jobs/${type}/${encodeURIComponent(id)}`, body)
const get = (server, type, id) => server.client.ok('GET', `/_jobs/${type}/${encodeURIComponent(id)}`)
const accept = async (server, type, options = {}) =>
  (await server.client.ok('POST', `/_jobs/${type}/_accept`, { timeout: 60_000, ...options })).jobs
async function fail(server, type, error) {
  const [{ id, lock }] = await accept(server, type)
  await server.client.ok('POST', `/_jobs/${type}/${encodeURIComponent(id)}/_fail`, { lock, error })
}
async function finish(server, type) {
  const [{ id, lock }] = await accept(server, type)
  await server.client.ok('POST', `/_jobs/${type}/${encodeURIComponent(id)}/_finish`, { lock })
}

async function interrupt(process_) {
  process_.child.kill('SIGINT')
  await within('the end after SIGINT', process_.exit)
}
const lines = (process_) => process_.stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line))

it('types with their counts, and settings that are not the defaults', async (server) => {
  const type = await newType(server, { paused: true, max_running: 4, retention: 5_400_000, timeout: 30_000 })
  await add(server, type, 'a')
  const plain = await newType(server)
  for (const args of [['jobs'], ['jobs', 'types']]) {
    const text = await tool(server, args)
    assert.deepEqual(text.split('\n')[0].split(/\s+/), ['TYPE', ...STATES, 'SETTINGS'])
    const rows = table(text)
    const settings = 'max_running=4 retention=1h30m paused=true'
    const counts = { RUNNING: '0', FINISHED: '0', FAILED: '0', CANCELLED: '0' }
    assert.deepEqual(rows.find(({ TYPE }) => TYPE === type), { TYPE: type, PENDING: '1', ...counts, SETTINGS: settings })
    assert.equal(rows.find(({ TYPE }) => TYPE === plain).SETTINGS, '-')
    assert.deepEqual(await json(server, args), await server.client.ok('GET', '/_jobs'))
  }
})

it('a list has a line for each job', async (server) => {
  const type = await newType(server, { max_attempts: 1 })
  await server.client.ok('PUT', '/_workers/lister/host', { timeout: 600_000 })
  await add(server, type, 'failed')
  await fail(server, type, 'out of paper')
  await add(server, type, 'running', { scheduled_at: 1 })
  await accept(server, type, { worker: { role: 'lister', id: 'host' } })
  await add(server, type, 'later', { scheduled_at: Date.UTC(2099, 0, 31, 8, 5, 9) })
  await add(server, type, 'now')
  const rows = table(await tool(server, ['jobs', 'list', type]))
  assert.deepEqual(Object.keys(rows[0]), COLUMNS)
  const [failed, later, now, running] = rows.map((row) => Object.values(row))
  assert.match(failed[5], TIME)
  assert.match(running[5], TIME)
  assert.deepEqual(failed, ['failed', 'failed', '1', '1', '-', failed[5], failed[6], 'out of paper'])
  assert.deepEqual(later, ['later', 'pending', '0', '0', '2099-01-31T08:05:09Z', '-', '-', '-'])
  assert.deepEqual(now.slice(0, 4), ['now', 'pending', '0', '0'])
  assert.deepEqual(running, ['running', 'running', '1', '0', '-', running[5], 'lister/host', '-'])

  const ids = async (...args) => table(await tool(server, ['jobs', 'list', type, ...args])).map(({ ID }) => ID)
  assert.deepEqual(await ids('--state', 'failed'), ['failed'])
  assert.deepEqual(await ids('--start-id', 'later'), ['later', 'now', 'running'])
  assert.deepEqual(await ids('--start-id', 'lz'), ['now', 'running'])
  assert.deepEqual(await ids('--state', 'finished'), [])
  assert.deepEqual(await json(server, ['jobs', 'list', type]), await server.client.ok('GET', `/_jobs/${type}/_list`))
  assert.deepEqual(await json(server, ['jobs', 'list', type, '--state', 'finished']), { jobs: [] })
})

it('a list goes through as many pages as its limit takes, and says when there is more', async (server) => {
  const type = await newType(server)
  const all = Array.from({ length: 2200 }, (_, i) => `job${String(i).padStart(4, '0')}`)
  await server.client.ok('POST', `/_jobs/${type}/_bulk`, { jobs: all.map((id) => ({ id })) })
  const list = async (...args) => {
    const { code, stdout, stderr } = await run(server, ['jobs', 'list', type, '--json', ...args])
    assert.equal(code, 0, stderr)
    return { ids: JSON.parse(stdout).jobs.map(({ id }) => id), stderr }
  }
  assert.deepEqual(await list(), { ids: all.slice(0, 100), stderr: 'There are more; the next id is job0100\n' })
  for (const limit of [999, 1000, 1001, 2199]) {
    const { ids, stderr } = await list('--limit', `${limit}`)
    assert.deepEqual(ids, all.slice(0, limit))
    assert.match(stderr, new RegExp(`${all[limit]}\n$`))
  }
  for (const limit of [2200, 5000]) assert.deepEqual(await list('--limit', `${limit}`), { ids: all, stderr: '' })
  assert.deepEqual(await list('--limit', '1500', '--start-id', 'job1000'), { ids: all.slice(1000), stderr: '' })
})

it('everything of a job is shown, with its data as they are written', async (server) => {
  const type = await newType(server)
  const data = '{"to":["ann",{}],"n":1.10,"text":"a\\nb"}'
  await server.client.ok('PUT', `/_jobs/${type}/a`, `{"priority":-2,"data":${data}}`)
  const text = await tool(server, ['jobs', 'show', type, 'a'])
  const [fields, shown] = text.split(/^data\n/m)
  const values = Object.fromEntries(fields.trimEnd().split('\n').map((line) => line.split(/\s{2,}/)))
  assert.match(values.added_at, TIME)
  assert.deepEqual([values.type, values.id, values.state], [type, 'a', 'pending'])
  assert.deepEqual([values.priority, values.scheduled_at, values.attempt], ['-2', 'at once', '0'])
  const laid = '{\n  "to": [\n    "ann",\n    {}\n  ],\n  "n": 1.10,\n  "text": "a\\nb"\n}\n'
  assert.equal(shown, laid)
  assert.deepEqual(await json(server, ['jobs', 'show', type, 'a']), await get(server, type, 'a'))

  await server.client.ok('PUT', '/_workers/shower/host', { timeout: 600_000 })
  const [{ lock }] = await accept(server, type, { worker: { role: 'shower', id: 'host' } })
  await server.client.ok('POST', `/_jobs/${type}/a/_update`, { lock, progress: { done: 4 } })
  const running = await tool(server, ['jobs', 'show', type, 'a'])
  assert.match(running, /^worker +shower\/host$/m)
  assert.match(running, /^progress +\{"done":4\}$/m)

  await refused(server, ['jobs', 'show', type, 'b'], /not_found: No such job/)
  await refused(server, ['jobs', 'show', 'nonsense', 'b'], /not_found|no_such_job_type/)
})

it('jobs are added', async (server) => {
  const type = await newType(server)
  assert.equal(await tool(server, ['jobs', 'add', type, 'a', '--data', '{"n": 1}', '--priority', '-3']), 'added a\n')
  const a = await get(server, type, 'a')
  assert.deepEqual([a.data, a.priority, a.scheduled_at], [{ n: 1 }, -3, 0])
  assert.equal(await tool(server, ['jobs', 'add', type, 'a', '--data', '[2]']), 'changed a\n')
  assert.deepEqual((await get(server, type, 'a')).data, [2])

  const id = /^added (\S+)\n$/.exec(await tool(server, ['jobs', 'add', type]))[1]
  assert.deepEqual((await get(server, type, id)).data, {})
  const answer = await json(server, ['jobs', 'add', type])
  assert.deepEqual(answer, { ok: true, id: answer.id, created: true })

  await tool(server, ['jobs', 'add', type, 'at', '--at', '2099-01-31T09:05:09+01:00'])
  assert.equal((await get(server, type, 'at')).scheduled_at, Date.UTC(2099, 0, 31, 8, 5, 9))
  const before = Date.now()
  await tool(server, ['jobs', 'add', type, 'in', '--in', '1h30m'])
  const { scheduled_at } = await get(server, type, 'in')
  assert.ok(scheduled_at >= before + 5_400_000 && scheduled_at <= Date.now() + 5_400_000, `${scheduled_at - before}`)

  const file = path.join(temporaryDirectory(), 'data.json')
  writeFileSync(file, '{\n  "from": "a file"\n}\n')
  await tool(server, ['jobs', 'add', type, 'file', '--data', `@${file}`])
  assert.deepEqual((await get(server, type, 'file')).data, { from: 'a file' })
  await tool(server, ['jobs', 'add', type, 'input', '--data', '-'], { input: '"from standard input"' })
  assert.equal((await get(server, type, 'input')).data, 'from standard input')
  for (const data of ['-5', '[1,2]', '"@x"', 'null', '{}']) {
    await tool(server, ['jobs', 'add', type, 'data', '--data', data])
    assert.deepEqual((await get(server, type, 'data')).data, JSON.parse(data))
  }
})

it('what cannot be added is refused, and nothing is added', async (server) => {
  const type = await newType(server)
  const empty = path.join(temporaryDirectory(), 'empty')
  writeFileSync(empty, '')
  await refused(server, ['jobs', 'add', type, '--data', '{"n":'], /--data: invalid UTF-8 JSON/)
  await refused(server, ['jobs', 'add', type, '--data', ''], /--data: invalid UTF-8 JSON/)
  await refused(server, ['jobs', 'add', type, '--data', '-'], /standard input: invalid UTF-8 JSON/, { input: '{} {}' })
  await refused(server, ['jobs', 'add', type, '--data', '@/no/such/file'], /\/no\/such\/file cannot be read/)
  await refused(server, ['jobs', 'add', type, '--data', `@${empty}`], /empty cannot be read or is empty/)
  await refused(server, ['jobs', 'add', type, '--at', 'tomorrow'], /`tomorrow` is no time/)
  await refused(server, ['jobs', 'add', type, '--in', '10'], /`10` is no duration/)
  await refused(server, ['jobs', 'add', type, ''], /id is not empty/)
  await refused(server, ['jobs', 'add', type, '_bulk'], /`_bulk`: a job's id .* underscore/)
  await refused(server, ['jobs', 'add', 'nonsense', 'a'], /no_such_job_type/)
  const both = await run(server, ['jobs', 'add', type, '--in', '5m', '--at', '2099-01-01'])
  assert.ok(both.code > 0)
  assert.match(both.stderr, /--at excludes --in/)
  assert.deepEqual(await json(server, ['jobs', 'list', type]), { jobs: [] })
})

it('jobs are cancelled, which is told apart from being asked to stop', async (server) => {
  const type = await newType(server)
  await add(server, type, 'finished')
  await finish(server, type)
  await add(server, type, 'running')
  await accept(server, type)
  for (const id of ['a', 'b']) await add(server, type, id)
  const { code, stdout, stderr } = await run(server, ['jobs', 'cancel', type, 'a', 'missing', 'running', 'finished', 'b'])
  assert.equal(code, 1)
  assert.equal(stderr, 'divan: missing: not_found: No such job.\n')
  assert.deepEqual(stdout.trimEnd().split('\n'), [
    'cancelled a',
    'cancelling running: its worker is asked to stop',
    'not cancelled finished: it is finished',
    'cancelled b'
  ])
  assert.equal((await get(server, type, 'b')).state, 'cancelled')
  assert.equal((await get(server, type, 'running')).cancel, true)
})

it('jobs are resubmitted and removed, with a line of JSON for each', async (server) => {
  const type = await newType(server)
  for (const id of ['a', 'b']) await add(server, type, id, { data: { id } })
  await tool(server, ['jobs', 'cancel', type, 'a', 'b'])
  assert.equal(await tool(server, ['jobs', 'resubmit', type, 'a', 'b']), 'resubmitted a\nresubmitted b\n')
  const a = await get(server, type, 'a')
  assert.deepEqual([a.state, a.data], ['pending', { id: 'a' }])
  assert.equal(await tool(server, ['jobs', 'remove', type, 'a']), 'removed a\n')
  const removal = await run(server, ['jobs', 'remove', type, 'a', 'b', '--json'])
  assert.equal(removal.code, 1)
  assert.deepEqual(lines(removal), [
    { id: 'a', error: 'not_found', reason: 'No such job.' },
    { id: 'b', ok: true }
  ])
  assert.deepEqual(await json(server, ['jobs', 'list', type]), { jobs: [] })
  await refused(server, ['jobs', 'resubmit', type], /Which jobs\? Name their ids, or --state/)
  // A word that is no id: none is removed.
  await add(server, type, 'c')
  await refused(server, ['jobs', 'remove', type, 'c', ''], /a job's id/)
  assert.equal((await get(server, type, 'c')).state, 'pending')
})

it('all jobs in a state are resubmitted, however many', async (server) => {
  const type = await newType(server)
  const jobs = Array.from({ length: 1300 }, (_, i) => ({ id: `job${i}` }))
  await server.client.ok('POST', `/_jobs/${type}/_bulk`, { jobs })
  await tool(server, ['jobs', 'cancel', type, 'job7'])
  for (let left = 1299; left > 0; ) {
    const accepted = await accept(server, type, { limit: 1000 })
    left -= accepted.length
    await server.client.ok('POST', `/_jobs/${type}/_finish`, { jobs: accepted.map(({ id, lock }) => ({ id, lock })) })
  }
  const counts = async () => (await server.client.ok('GET', `/_jobs/${type}`)).counts
  const none = { pending: 0, running: 0, finished: 0, failed: 0, cancelled: 0 }
  assert.deepEqual(await counts(), { ...none, finished: 1299, cancelled: 1 })
  assert.equal(await tool(server, ['jobs', 'resubmit', type, '--state', 'failed']), 'resubmitted 0 jobs\n')
  assert.equal(await tool(server, ['jobs', 'resubmit', type, '--state', 'cancelled']), 'resubmitted 1 job\n')
  assert.deepEqual(await counts(), { ...none, finished: 1299, pending: 1 })
  assert.deepEqual(await json(server, ['jobs', 'resubmit', type, '--state', 'finished']), { ok: true, resubmitted: 1299 })
  assert.deepEqual(await counts(), { ...none, pending: 1300 })
  await refused(server, ['jobs', 'resubmit', 'nonsense', '--state', 'failed'], /no_such_job_type/)
})

it('types are declared, changed and removed', async (server) => {
  const set = (...args) => tool(server, ['jobs', 'set', 'settled', ...args])
  const counts = '0 pending, 0 running, 0 finished, 0 failed, 0 cancelled'
  assert.equal(await set('timeout=1m', 'max_running=4'), `declared settled: ${counts}; timeout=1m max_running=4\n`)
  assert.equal(await set('paused=true', 'timeout=30000'), `set settled: ${counts}; max_running=4 paused=true\n`)
  assert.equal(await set('paused=false', 'max_running=null', 'retention=7d'), `set settled: ${counts}; retention=7d\n`)
  assert.deepEqual(await json(server, ['jobs', 'set', 'settled', 'paused=true']), { ok: true })
  const { settings } = await server.client.ok('GET', '/_jobs/settled')
  assert.deepEqual([settings.paused, settings.retention, settings.timeout], [true, 604_800_000, 30_000])

  await refused(server, ['jobs', 'set', 'settled', 'paused'], /`paused`: a setting is given as NAME=VALUE/)
  await refused(server, ['jobs', 'set', 'settled', 'timeout=5x'], /`5x` is no duration/)
  await refused(server, ['jobs', 'set', 'settled', 'paused=yes'], /`paused` is true or false/)
  await refused(server, ['jobs', 'set', 'settled', 'colour=red'], /Unknown setting `colour`/)

  await add(server, 'settled', 'a')
  await refused(server, ['jobs', 'remove-type', 'settled'], /conflict: The job type has jobs/)
  assert.equal(await tool(server, ['jobs', 'remove-type', 'settled', '--force']), 'removed settled\n')
  await refused(server, ['jobs', 'remove-type', 'settled', '--force'], /no_such_job_type/)
})

it('types and ids may be of any characters', async (server) => {
  const rude = 'a\nb\u001b[2J\u009b\u202e'
  const names = ['list', 'a/b?c=d&e#f%20', 'ü 日本', '[x,y]', '{}', '-dash', '--json', '"\\', rude]
  const sorted = names.map((name) => Buffer.from(name)).sort(Buffer.compare).map(String)
  for (const type of names) {
    await tool(server, ['jobs', 'set', '--', type])
    for (const id of names) await tool(server, ['jobs', 'add', '--data', JSON.stringify(id), '--', type, id])
    const { jobs } = JSON.parse(await tool(server, ['jobs', 'list', '--json', '--', type]))
    assert.deepEqual(jobs.map((job) => [job.type, job.id]), sorted.map((id) => [type, id]))
    assert.equal(JSON.parse(await tool(server, ['jobs', 'show', '--json', '--', type, rude])).data, rude)
    for (const change of ['cancel', 'resubmit', 'remove']) {
      const changed = lines({ stdout: await tool(server, ['jobs', change, '--json', '--', type, ...names]) })
      assert.deepEqual(changed, names.map((id) => ({ id, ok: true })))
    }
    await tool(server, ['jobs', 'remove-type', '--', type])
  }
})

it('the words of others cannot play with the terminal', async (server) => {
  const type = await newType(server, { max_attempts: 1 })
  const rude = 'red\u001b[31m\r\n\u009b2J\u202e'
  const tame = 'red\\u001b[31m\\r\\n\\u009b2J\\u202e'
  await add(server, type, rude, { data: { [rude]: rude } })
  await fail(server, type, rude)
  const [row] = table(await tool(server, ['jobs', 'list', type]))
  assert.deepEqual([row.ID, row['LAST ERROR']], [tame, tame])
  const text = await tool(server, ['jobs', 'show', type, rude])
  assert.ok(text.split('\n').some((line) => line.startsWith('last_error ') && line.endsWith(` ${tame}`)), text)
  const watched = await run(server, ['jobs', 'watch', type, rude])
  const missing = await run(server, ['jobs', 'list', rude])
  const resubmitted = await tool(server, ['jobs', 'resubmit', type, rude])
  assert.ok(missing.stderr.includes(tame), missing.stderr)
  for (const words of [text, watched.stdout, missing.stderr, resubmitted]) {
    assert.ok(!/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/.test(words), words)
  }
  assert.equal(resubmitted, `resubmitted ${tame}\n`)
})

it('types are watched: one table after the other, until Ctrl-C', async (server) => {
  const type = await newType(server)
  const watch = start(server, ['jobs', 'watch', '--interval', '100ms'])
  const blocks = () => watch.stdout.split('\n\n')
  const row = (block) => table(block.slice(block.indexOf('\n') + 1)).find(({ TYPE }) => TYPE === type)
  await waitFor('two tables', () => blocks().length > 2)
  assert.match(blocks()[0].split('\n')[0], TIME)
  assert.equal(row(blocks()[0]).PENDING, '0')
  await add(server, type, 'a')
  await waitFor('the job', () => row(blocks().at(-2)).PENDING === '1')
  await interrupt(watch)
  assert.deepEqual([watch.code, watch.signal, watch.stderr], [0, null, ''])

  const lined = start(server, ['jobs', 'watch', '--interval', '100ms', '--json'])
  await waitFor('two lines', () => lined.stdout.split('\n').length > 2)
  await interrupt(lined)
  assert.equal(lined.code, 0)
  assert.deepEqual(lines(lined)[0], await server.client.ok('GET', '/_jobs'))
})

it('a type is watched: its counts, its running and failed jobs', async (server) => {
  const type = await newType(server, { max_attempts: 1, paused: false })
  await add(server, type, 'broken')
  await fail(server, type, 'out of paper')
  for (const id of ['busy', 'idle']) await add(server, type, id)
  await server.client.ok('POST', `/_jobs/${type}/idle/_cancel`)
  const [{ lock }] = await accept(server, type)
  await server.client.ok('POST', `/_jobs/${type}/busy/_update`, { lock, progress: 'x'.repeat(100) })
  const watch = start(server, ['jobs', 'watch', type])
  await waitFor('a table', () => watch.stdout.includes('out of paper\n'))
  await interrupt(watch)
  const [heading, ...rest] = watch.stdout.split('\n\n')[0].split('\n')
  assert.match(heading, /^\S+Z  type\d+: 0 pending, 1 running, 0 finished, 1 failed, 1 cancelled; max_attempts=1$/)
  const rows = table(rest.join('\n'))
  assert.deepEqual(rows.map(({ ID, STATE }) => [ID, STATE]), [['busy', 'running'], ['broken', 'failed']])
  assert.equal(rows[0].PROGRESS, 'x'.repeat(29) + '…')

  const lined = start(server, ['jobs', 'watch', type, '--json'])
  await waitFor('a line', () => lined.stdout.includes('\n'))
  await interrupt(lined)
  const { jobs, ...declared } = lines(lined)[0]
  assert.deepEqual(declared, await server.client.ok('GET', `/_jobs/${type}`))
  assert.deepEqual(jobs.map(({ id }) => id), ['busy', 'broken'])
  await refused(server, ['jobs', 'watch', 'nonsense'], /no_such_job_type/)
  await refused(server, ['jobs', 'watch', type, '--interval', '99ms'], /The shortest --interval is 100ms/)
  await refused(server, ['jobs', 'watch', type, '--interval', 'x'], /`x` is no duration/)
})

it('on a terminal tables are cut to its size and drawn in place, until Ctrl-C', async (server) => {
  const type = await newType(server, { max_attempts: 1 })
  await add(server, type, '日本')
  await fail(server, type, 'ü'.repeat(200))
  for (let i = 0; i < 10; ++i) {
    await add(server, type, `x${i}`)
    await fail(server, type, 'x')
  }
  const terminal = { columns: 60, lines: 6 }
  const width = (line) => [...line].reduce((sum, c) => sum + (/[\u3000-\u9fff]/.test(c) ? 2 : 1), 0)
  const list = start(server, ['jobs', 'list', type], { terminal })
  await within('the list', list.exit)
  assert.equal(list.code, 0)
  const listed = list.stdout.trimEnd().split('\r\n')
  assert.equal(listed.length, 12)
  assert.deepEqual(listed.map((line) => width(line) <= 60), listed.map(() => true))
  assert.match(listed.at(-1), /^日本  failed .*…$/)
  assert.equal(width(listed.at(-1)), 60)
  assert.ok(!list.stdout.includes('\ufffd'))

  const watch = start(server, ['jobs', 'watch', type, '--interval', '100ms'], { terminal })
  const drawings = () => watch.stdout.split('\r\u001b[J')
  await waitFor('three drawings', () => drawings().length > 4)
  watch.child.stdin.write('\u0003')
  await within('the end after Ctrl-C', watch.exit)
  assert.equal(watch.code, 0)
  assert.equal(drawings()[0], '')
  for (const drawing of drawings().slice(1, 4)) {
    // A heading, a table's head, three jobs: a line less than the terminal has. Then up again by as many.
    const drawn = drawing.split('\r\n')
    assert.equal(drawn.length, 6)
    assert.equal(drawn[5], '\u001b[5A')
    for (const line of drawn.slice(0, 5)) assert.ok(width(line) <= 60, line)
    assert.match(drawn[2], /^x0 /)
  }
  assert.match(watch.stdout, /\r\n$/)
})

it('a job is watched until it ends, and the exit status says how', async (server) => {
  const type = await newType(server, { max_attempts: 2, backoff_min: 0, backoff_max: 0 })
  await add(server, type, 'a')
  const watch = start(server, ['jobs', 'watch', type, 'a'])
  const seen = (state) => waitFor(state, () => watch.stdout.split('\n').some((line) => line.includes(`  ${state}`)))
  await seen('pending')
  await fail(server, type, 'out of paper')
  await seen('pending  attempt 1  error: out of paper')
  const [{ lock }] = await accept(server, type)
  await seen('running  attempt 2')
  await server.client.ok('POST', `/_jobs/${type}/a/_update`, { lock, progress: 40 })
  await seen('running  attempt 2  progress 40')
  await server.client.ok('POST', `/_jobs/${type}/a/_finish`, { lock })
  await within('the end', watch.exit)
  assert.equal(watch.code, 0)
  const last = watch.stdout.trimEnd().split('\n').at(-1)
  assert.match(last.slice(0, last.indexOf(' ')), TIME)
  assert.match(last, /Z  finished  attempt 2/)

  const ending = async (id, state, end) => {
    await add(server, type, id)
    const ended = start(server, ['jobs', 'watch', type, id, '--json'])
    await waitFor('the first line', () => ended.stdout.includes('\n'))
    await end()
    await within('the end', ended.exit)
    assert.deepEqual([ended.code, ended.stderr], [1, ''])
    assert.deepEqual([lines(ended)[0].state, lines(ended).at(-1).state], ['pending', state])
    assert.equal(lines(ended)[0].id, id)
  }
  await ending('b', 'failed', async () => {
    await fail(server, type, 'x')
    await fail(server, type, 'x')
  })
  await ending('c', 'cancelled', () => tool(server, ['jobs', 'cancel', type, 'c']))
  await ending('d', 'not_found', () => tool(server, ['jobs', 'remove', type, 'd']))
  // Those that have ended end it at once.
  assert.equal((await run(server, ['jobs', 'watch', type, 'a'])).code, 0)
  assert.equal((await run(server, ['jobs', 'watch', type, 'b'])).code, 1)
  await refused(server, ['jobs', 'watch', type, 'nonsense'], /not_found/)

  await add(server, type, 'e')
  const interrupted = start(server, ['jobs', 'watch', type, 'e'])
  await waitFor('the first line', () => interrupted.stdout.includes('pending'))
  await interrupt(interrupted)
  assert.deepEqual([interrupted.code, interrupted.stderr], [130, ''])
})

it('workers are listed, of all roles or of one', async (server) => {
  await server.client.ok('PUT', '/_workers/mailer/host', { timeout: 60_000, opts: { n: 1 } })
  await server.client.ok('PUT', '/_workers/a%2Fb/ot%0Aher', { timeout: 90_500 })
  for (const args of [['workers'], ['workers', 'list']]) {
    const rows = table(await tool(server, args))
    assert.deepEqual(rows.find(({ ROLE }) => ROLE === 'mailer'), { ROLE: 'mailer', ID: 'host', TIMEOUT: '1m', OPTIONS: '{"n":1}' })
    assert.ok(rows.some(({ ROLE }) => ROLE === 'a/b'))
    assert.deepEqual((await json(server, args)).roles.find(({ role }) => role === 'mailer').workers[0].opts, { n: 1 })
  }
  const one = table(await tool(server, ['workers', 'list', 'a/b']))
  assert.deepEqual(one, [{ ROLE: 'a/b', ID: 'ot\\nher', TIMEOUT: '1m30s500ms', OPTIONS: '{}' }])
  assert.deepEqual(await json(server, ['workers', 'list', 'a/b']), await server.client.ok('GET', '/_workers/a%2Fb'))
  assert.deepEqual(table(await tool(server, ['workers', 'list', 'nobody'])), [])
})

it('workers are watched as they come and go', async (server) => {
  for (const role of [['watched'], []]) {
    const watch = start(server, ['workers', 'watch', ...role, '--interval', '100ms'])
    const last = () => watch.stdout.split('\n\n').at(-1)
    await waitFor('a table', () => last().includes('OPTIONS\n'))
    assert.match(watch.stdout.split('\n')[0], TIME)
    assert.ok(!last().includes('watched'))
    await server.client.ok('PUT', '/_workers/watched/host', { timeout: 600_000 })
    await waitFor('the worker', () => /^watched +host +10m +\{\}\n/m.test(last()))
    await server.client.ok('DELETE', '/_workers/watched/host')
    await waitFor('its end', () => last().includes('OPTIONS\n') && !last().includes('watched'))
    await interrupt(watch)
    assert.deepEqual([watch.code, watch.stderr], [0, ''])
  }
  const lined = start(server, ['workers', 'watch', 'watched', '--json'])
  await waitFor('a line', () => lined.stdout.includes('\n'))
  await server.client.ok('PUT', '/_workers/watched/host', { timeout: 600_000 })
  await waitFor('two lines', () => lined.stdout.split('\n').length > 2)
  await interrupt(lined)
  assert.deepEqual(lines(lined).map(({ role, workers }) => [role, workers.length]), [['watched', 0], ['watched', 1]])
  await refused(server, ['workers', 'watch', '--interval', '0s'], /The shortest --interval is 100ms/)
})

it('what is not understood is refused, with a word about it', async (server) => {
  const type = await newType(server)
  for (const [words, ...args] of [
    [/nonsense/, 'jobs', 'nonsense'],
    [/TYPE is required/, 'jobs', 'list'],
    [/--state: nonsense not in/, 'jobs', 'list', type, '--state', 'nonsense'],
    [/--limit/, 'jobs', 'list', type, '--limit', '0'],
    [/--limit/, 'jobs', 'list', type, '--limit', '-1'],
    [/ID is required/, 'jobs', 'show', type],
    [/more/, 'jobs', 'show', type, 'a', 'more'],
    [/ID is required/, 'jobs', 'cancel', type],
    [/ID is required/, 'jobs', 'remove', type],
    [/excludes/, 'jobs', 'resubmit', type, 'a', '--state', 'failed'],
    [/--priority/, 'jobs', 'add', type, '--priority', 'high'],
    [/--nonsense/, 'jobs', 'watch', '--nonsense'],
    [/nonsense/, 'workers', 'nonsense']
  ]) {
    const { code, stdout, stderr } = await run(server, args)
    assert.ok(code > 0, args.join(' '))
    assert.equal(stdout, '')
    assert.match(stderr, words, args.join(' '))
  }
  await refused(server, ['jobs', 'list', '_all'], /`_all`: a job's type/)
  await refused(server, ['jobs', 'list', 'nonsense'], /no_such_job_type/)
})

it('every command has its help', async () => {
  const commands = ['types', 'list', 'show', 'watch', 'add', 'cancel', 'resubmit', 'remove', 'set', 'remove-type']
  for (const [command, subcommands] of [['jobs', commands], ['workers', ['list', 'watch']]]) {
    const { stdout } = await runDivan([command, '--help'])
    for (const subcommand of subcommands) {
      assert.match(stdout, new RegExp(`^  ${subcommand} {2,}\\w`, 'm'))
      const help = await runDivan([command, subcommand, '--help'])
      assert.deepEqual([help.code, help.stderr], [0, ''])
      for (const words of ['Usage: ', '--json', '--url']) assert.ok(help.stdout.includes(words), words)
      assert.ok(!help.stdout.includes('000000'), help.stdout) // limits of the parser's
    }
  }
  assert.match((await runDivan(['jobs', 'remove', '--help'])).stdout, /remove \[OPTIONS\] TYPE ID\.\.\.$/m)
  assert.match((await runDivan(['jobs', 'resubmit', '--help'])).stdout, /resubmit \[OPTIONS\] TYPE \[ID\.\.\.\]$/m)
})

testWithServer('a server that is not there, and one that goes', {}, async (server) => {
  for (const args of [['jobs'], ['jobs', 'cancel', 'a', 'b', 'c'], ['jobs', 'watch'], ['workers'], ['workers', 'watch', 'x']]) {
    const { code, stdout, stderr } = await runDivan([...args, '--url', 'http://127.0.0.1:1'])
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /^divan: connection_failed: .*127\.0\.0\.1:1.*\n$/)
  }
  const { code, stderr } = await runDivan(['jobs', '--url', server.url, '--user', 'admin:wrong'])
  assert.deepEqual([code, stderr], [1, 'divan: unauthorized: Name or password is incorrect.\n'])

  await server.client.ok('PUT', '/_jobs/mail')
  await add(server, 'mail', 'a')
  const watches = [['jobs', 'watch', 'mail', 'a'], ['workers', 'watch', 'mailer'], ['updates', '--follow'],
    ['jobs', 'watch', '--interval', '100ms']].map((args) => start(server, args))
  await server.client.ok('PUT', '/db')
  for (const watch of watches) await waitFor('a line', () => watch.stdout.includes('\n'))
  process.kill(server.pid, 'SIGTERM')
  for (const watch of watches) {
    await within('the end of what was watched', watch.exit)
    assert.equal(watch.code, 1)
    assert.match(watch.stderr, /^divan: connection_(lost|failed): .*\n$/)
  }
})
