// The command line of the job queue, with the real server: output on a terminal, `divan jobs watch`, `divan
// workers`.
import assert from 'node:assert/strict'
import { runDivan, shareServer, testWithServer } from './support/server.mjs'
import { accept, add, fail, interrupt, json, lines, newType, refused, run, start, table, TIME, tool } from './support/tool.mjs'
import { waitFor, within } from './support/wait.mjs'

const it = shareServer()

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
  await refused(server, ['jobs', 'watch', type, '--interval', '99ms'], /--interval is too short; expected at least 100ms/)
  await refused(server, ['jobs', 'watch', type, '--interval', 'x'], /Invalid duration `x`/)
})

it('control characters in data do not reach the terminal', async (server) => {
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
    assert.match(drawn[2], /^x9 /) // the last one that failed
  }
  assert.match(watch.stdout, /\r\n$/)
})

it('a job is watched until it ends, and the exit status shows its outcome', async (server) => {
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
  // Watching an ended job returns at once.
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
  // A moment later, the silence of the worker is another one.
  const withoutSilence = ({ workers, ...role }) => ({ ...role, workers: workers.map(({ silence: _, ...worker }) => worker) })
  assert.deepEqual(withoutSilence(await json(server, ['workers', 'list', 'a/b'])), withoutSilence(await server.client.ok('GET', '/_workers/a%2Fb')))
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
  await refused(server, ['workers', 'watch', '--interval', '0s'], /--interval is too short; expected at least 100ms/)
})

testWithServer('a server that cannot be reached, and one that stops', {}, async (server) => {
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
  server.terminate()
  for (const watch of watches) {
    await within('the end of what was watched', watch.exit)
    assert.equal(watch.code, 1)
    assert.match(watch.stderr, /^divan: connection_(lost|failed): .*\n$/)
  }
})
