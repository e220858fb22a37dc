// The command line of the job queue, with the real server: `divan jobs`, except commands that keep running.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { runDivan, shareServer, temporaryDirectory } from './support/server.mjs'
import { accept, add, fail, finish, get, json, lines, newType, refused, run, table, TIME, tool } from './support/tool.mjs'

const it = shareServer()
const STATES = ['PENDING', 'RUNNING', 'FINISHED', 'FAILED', 'CANCELLED']
const COLUMNS = ['ID', 'STATE', 'ATTEMPT', 'FAILURES', 'DUE', 'STARTED', 'WORKER', 'LAST ERROR']

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

it('a list reads as many pages as its limit needs, and reports that there are more', async (server) => {
  const type = await newType(server)
  const all = Array.from({ length: 2200 }, (_, i) => `job${String(i).padStart(4, '0')}`)
  await server.client.ok('POST', `/_jobs/${type}/_bulk`, { jobs: all.map((id) => ({ id })) })
  const list = async (...args) => {
    const { code, stdout, stderr } = await run(server, ['jobs', 'list', type, '--json', ...args])
    assert.equal(code, 0, stderr)
    return { ids: JSON.parse(stdout).jobs.map(({ id }) => id), stderr }
  }
  assert.deepEqual(await list(), { ids: all.slice(0, 100), stderr: 'There are more jobs; the next id is job0100\n' })
  for (const limit of [999, 1000, 1001, 2199]) {
    const { ids, stderr } = await list('--limit', `${limit}`)
    assert.deepEqual(ids, all.slice(0, limit))
    assert.match(stderr, new RegExp(`${all[limit]}\n$`))
  }
  for (const limit of [2200, 5000]) assert.deepEqual(await list('--limit', `${limit}`), { ids: all, stderr: '' })
  assert.deepEqual(await list('--limit', '1500', '--start-id', 'job1000'), { ids: all.slice(1000), stderr: '' })
})

it('a job is shown completely, with its data unchanged', async (server) => {
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

it('periodic jobs are added, and shown with their schedule and the next time', async (server) => {
  const type = await newType(server)
  const yearly = ['jobs', 'add', type, 'yearly', '--schedule', '0 0 1 jan *']
  assert.equal(await tool(server, [...yearly, '--time-zone', 'Europe/Berlin', '--missed', 'skip', '--data', '[1]']), 'added yearly\n')
  const job = await get(server, type, 'yearly')
  assert.deepEqual(job.schedule, { cron: '0 0 1 jan *', time_zone: 'Europe/Berlin', missed: 'skip' })
  assert.deepEqual(job.data, [1])
  const due = new Date(job.due_at).toISOString().replace('.000Z', 'Z')
  assert.match(due, /-12-31T23:00:00Z$/)
  assert.equal(table(await tool(server, ['jobs', 'list', type]))[0].DUE, due)
  const shown = await tool(server, ['jobs', 'show', type, 'yearly'])
  assert.match(shown, /^schedule +0 0 1 jan \*, Europe\/Berlin, missed: skip$/m)
  assert.match(shown, new RegExp(`^scheduled_at +${due}$`, 'm'))

  await tool(server, yearly)
  assert.deepEqual((await get(server, type, 'yearly')).schedule, { cron: '0 0 1 jan *', time_zone: 'UTC', missed: 'once' })
  await tool(server, ['jobs', 'add', type, 'yearly'])
  assert.equal((await get(server, type, 'yearly')).schedule, undefined)
})

it('the attempts of a job are shown, the oldest first', async (server) => {
  const type = await newType(server, { backoff_min: 1, backoff_max: 1 })
  await server.client.ok('PUT', '/_workers/historian/host', { timeout: 600_000 })
  await add(server, type, 'a')
  assert.doesNotMatch(await tool(server, ['jobs', 'show', type, 'a']), /history|OUTCOME/)
  await fail(server, type, 'out of\npaper')
  await accept(server, type, { worker: { role: 'historian', id: 'host' } })
  const text = await tool(server, ['jobs', 'show', type, 'a'])
  const rows = table(/^history\n([^]*)^data$/m.exec(text)[1]).map((row) => Object.values(row))
  assert.equal(rows.length, 2)
  const [failed, running] = rows
  for (const time of [failed[1], failed[2], running[1]]) assert.match(time, TIME)
  assert.deepEqual(failed, ['1', failed[1], failed[2], 'failed', '-', 'out of\\npaper'])
  assert.deepEqual(running, ['2', running[1], '-', '-', 'historian/host', '-'])
})

it('invalid jobs are refused, and nothing is added', async (server) => {
  const type = await newType(server)
  const empty = path.join(temporaryDirectory(), 'empty')
  writeFileSync(empty, '')
  await refused(server, ['jobs', 'add', type, '--data', '{"n":'], /--data: invalid UTF-8 JSON/)
  await refused(server, ['jobs', 'add', type, '--data', ''], /--data: invalid UTF-8 JSON/)
  await refused(server, ['jobs', 'add', type, '--data', '-'], /standard input: invalid UTF-8 JSON/, { input: '{} {}' })
  await refused(server, ['jobs', 'add', type, '--data', '@/no/such/file'], /Cannot read \/no\/such\/file, or it is empty; expected a file with JSON/)
  await refused(server, ['jobs', 'add', type, '--data', `@${empty}`], /Cannot read .*empty, or it is empty; expected/)
  await refused(server, ['jobs', 'add', type, '--at', 'tomorrow'], /Invalid time `tomorrow`/)
  await refused(server, ['jobs', 'add', type, '--in', '10'], /Invalid duration `10`/)
  await refused(server, ['jobs', 'add', type, '--schedule', '61 * * * *'], /minute of a cron expression, `61`/)
  await refused(server, ['jobs', 'add', type, '--schedule', '@daily', '--time-zone', 'Mars/Olympus'], /Mars\/Olympus/)
  await refused(server, ['jobs', 'add', type, ''], /id is empty/)
  await refused(server, ['jobs', 'add', type, '_bulk'], /Invalid job id `_bulk`; .* underscore/)
  await refused(server, ['jobs', 'add', 'nonsense', 'a'], /no_such_job_type/)
  for (const [words, ...args] of [
    [/--at excludes --in/, '--in', '5m', '--at', '2099-01-01'],
    [/--schedule excludes --in|--in excludes --schedule/, '--in', '5m', '--schedule', '@daily'],
    [/--schedule excludes --at|--at excludes --schedule/, '--at', '2099-01-01', '--schedule', '@daily'],
    [/--time-zone requires --schedule/, '--time-zone', 'UTC'],
    [/--missed requires --schedule/, '--missed', 'once'],
    [/--missed: never not in/, '--missed', 'never', '--schedule', '@daily']
  ]) {
    const { code, stderr } = await run(server, ['jobs', 'add', type, ...args])
    assert.ok(code > 0, args.join(' '))
    assert.match(stderr, words)
  }
  assert.deepEqual(await json(server, ['jobs', 'list', type]), { jobs: [] })
})

it('a job has limits of its own, as a number or a duration', async (server) => {
  const type = await newType(server)
  const limits = ['--timeout', '1m', '--max-attempts', '3', '--max-lost', 'null', '--backoff-min', '500ms']
  await tool(server, ['jobs', 'add', type, 'a', ...limits, '--backoff-max', '2000', '--max-runtime', '1h30m'])
  const { timeout, max_attempts, max_lost, backoff_min, backoff_max, max_runtime } = await get(server, type, 'a')
  assert.deepEqual([timeout, max_attempts, max_lost], [60_000, 3, null])
  assert.deepEqual([backoff_min, backoff_max, max_runtime], [500, 2000, 5_400_000])
  const shown = await tool(server, ['jobs', 'show', type, 'a'])
  for (const line of [/^timeout +1m$/m, /^max_lost +null$/m, /^max_runtime +1h30m$/m]) assert.match(shown, line)
  // Without them the job has its type's settings again.
  assert.equal(await tool(server, ['jobs', 'add', type, 'a']), 'changed a\n')
  assert.equal((await get(server, type, 'a')).max_attempts, undefined)

  await refused(server, ['jobs', 'add', type, '--max-attempts', '0'], /`max_attempts` is 0; expected a number of at least 1/)
  await refused(server, ['jobs', 'add', type, '--max-lost', 'many'], /`max_lost` is "many"; expected a number of at least 1, or null/)
  await refused(server, ['jobs', 'add', type, '--timeout', 'soon'], /Invalid duration `soon`/)
  await refused(server, ['jobs', 'add', type, '--backoff-min', '2s', '--backoff-max', '1s'], /`backoff_min` exceeds/)
  const { stdout } = await runDivan(['jobs', 'add', '--help'])
  for (const name of ['timeout', 'max-attempts', 'max-lost', 'backoff-min', 'backoff-max', 'max-runtime'])
    assert.match(stdout, new RegExp(`^  --${name} `, 'm'))
})

it('jobs are cancelled; for running ones the output says that they are asked to stop', async (server) => {
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
  await refused(server, ['jobs', 'resubmit', type], /No jobs are given; expected ids or --state/)
  // An invalid id: no job is removed.
  await add(server, type, 'c')
  await refused(server, ['jobs', 'remove', type, 'c', ''], /Invalid job id ``/)
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
  for (const command of ['cancel', 'remove']) await refused(server, ['jobs', command, type], /No jobs are given; expected ids or --state/)
  assert.equal(await tool(server, ['jobs', 'cancel', type, '--state', 'pending']), 'cancelled 1300 jobs\n')
  assert.equal(await tool(server, ['jobs', 'remove', type, '--state', 'cancelled']), 'removed 1300 jobs\n')
  assert.deepEqual(await counts(), none)
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

  await refused(server, ['jobs', 'set', 'settled', 'paused'], /Invalid setting `paused`; expected NAME=VALUE/)
  await refused(server, ['jobs', 'set', 'settled', 'timeout=5x'], /Invalid duration `5x`/)
  await refused(server, ['jobs', 'set', 'settled', 'paused=yes'], /`paused` is "yes"; expected true or false/)
  await refused(server, ['jobs', 'set', 'settled', 'colour=red'], /Unknown setting `colour`/)

  await add(server, 'settled', 'a')
  await refused(server, ['jobs', 'remove-type', 'settled'], /conflict: The job type has jobs; use --force to remove them/)
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

it('invalid arguments are refused with an error', async (server) => {
  const type = await newType(server)
  for (const [words, ...args] of [
    [/nonsense/, 'jobs', 'nonsense'],
    [/TYPE is required/, 'jobs', 'list'],
    [/--state: nonsense not in/, 'jobs', 'list', type, '--state', 'nonsense'],
    [/--limit/, 'jobs', 'list', type, '--limit', '0'],
    [/--limit/, 'jobs', 'list', type, '--limit', '-1'],
    [/ID is required/, 'jobs', 'show', type],
    [/more/, 'jobs', 'show', type, 'a', 'more'],
    [/excludes/, 'jobs', 'cancel', type, 'a', '--state', 'pending'],
    [/--state: failed not in/, 'jobs', 'cancel', type, '--state', 'failed'],
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
  await refused(server, ['jobs', 'list', '_all'], /Invalid job type `_all`/)
  await refused(server, ['jobs', 'list', 'nonsense'], /no_such_job_type/)
})

it('every command has a help text', async () => {
  const commands = ['types', 'list', 'show', 'watch', 'add', 'cancel', 'resubmit', 'remove', 'set', 'remove-type']
  for (const [command, subcommands] of [['jobs', commands], ['workers', ['list', 'watch']]]) {
    const { stdout } = await runDivan([command, '--help'])
    for (const subcommand of subcommands) {
      assert.match(stdout, new RegExp(`^  ${subcommand} {2,}\\w`, 'm'))
      const help = await runDivan([command, subcommand, '--help'])
      assert.deepEqual([help.code, help.stderr], [0, ''])
      for (const words of ['Usage: ', '--json', '--url']) assert.ok(help.stdout.includes(words), words)
      assert.ok(!help.stdout.includes('000000'), help.stdout) // limits of the parser
    }
  }
  for (const command of ['cancel', 'remove', 'resubmit']) {
    const { stdout } = await runDivan(['jobs', command, '--help'])
    assert.match(stdout, new RegExp(`${command} \\[OPTIONS\\] TYPE \\[ID\\.\\.\\.\\]$`, 'm'))
    assert.match(stdout, /--state/)
  }
})
