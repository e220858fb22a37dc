// The kits of clients/ for callers that add and read jobs; their installation. Every test runs with each kit.
// Times are in milliseconds in Node.js and in seconds in Python.
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startProxy } from './support/proxy.mjs'
import { shareServer, temporaryDirectory } from './support/server.mjs'
import { within } from './support/wait.mjs'

const here = path.dirname(fileURLToPath(import.meta.url))
const KITS = {
  js: { program: [process.execPath, 'caller.mjs'], unit: 1, timeout: 'ETIMEDOUT', bad: 'TypeError' },
  python: { program: ['python3', 'caller.py'], unit: 1000, timeout: 'TimeoutError', bad: 'ValueError' }
}
const it = shareServer()
const callers = new Set()
afterEach(() => {
  for (const caller of callers) caller.kill()
  callers.clear()
})

/** Calls of a kit: call(name, args, options) resolves to the result, and call.error(…) to the error. */
function startCaller({ program: [program, file] }, server) {
  const url = server.url.replace('http://', `http://${server.credentials}@`)
  const child = spawn(program, [path.join(here, 'kits', file), url], { stdio: ['pipe', 'pipe', 'inherit'] })
  callers.add(child)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const answer = async (call, args, options) => {
    child.stdin.write(JSON.stringify({ call, args, options }) + '\n')
    const { value } = await within(`the end of ${call}`, lines.next(), 120_000)
    return JSON.parse(value)
  }
  const call = async (...given) => {
    const { result, text } = await answer(...given)
    assert.equal(text, undefined)
    return result
  }
  call.error = async (...given) => {
    const { text, ...error } = await answer(...given)
    assert.ok(text, 'it threw nothing')
    return { ...error, text }
  }
  return call
}

let types = 0
async function newType(call, settings = {}) {
  const type = `called${++types}`
  await call('declare', [type], settings)
  return type
}

for (const [kit, properties] of Object.entries(KITS)) {
  if (!(process.env.DIVAN_KITS ?? kit).split(',').includes(kit)) continue
  const { unit, timeout, bad } = properties

  it(`${kit}: times have one unit`, async (server) => {
    const call = startCaller(properties, server)
    const type = await newType(call, { timeout: 1500 / unit, retention: 60_000 / unit, max_attempts: 7, backoff_max: 2000 / unit })
    const { settings } = await server.client.ok('GET', `/_jobs/${type}`)
    assert.deepEqual(
      [settings.timeout, settings.retention, settings.max_attempts, settings.backoff_max, settings.backoff_min],
      [1500, 60_000, 7, 2000, 1000]
    )
    const at = Date.UTC(2099, 0, 31, 8)
    const name = kit === 'js' ? 'scheduledAt' : 'scheduled_at'
    await call('enqueue', [type, 'a', { timeout: 1 }], { [name]: at / unit })
    const job = await server.client.ok('GET', `/_jobs/${type}/a`)
    assert.deepEqual([job.scheduled_at, job.data], [at, { timeout: 1 }])
    const seen = await call('get', [type, 'a'])
    assert.deepEqual([seen.scheduled_at, seen.due_at, seen.data], [at / unit, at / unit, { timeout: 1 }])
    const [listed] = await call('list', [type])
    assert.deepEqual([listed.id, listed.scheduled_at], ['a', at / unit])
    await call('declare', [type], { retention_failed: 30_000 / unit, max_runtime: 90_000 / unit, max_lost: null })
    const changed = (await server.client.ok('GET', `/_jobs/${type}`)).settings
    assert.deepEqual([changed.retention_failed, changed.max_runtime, changed.max_lost], [30_000, 90_000, null])
  })

  it(`${kit}: a job has limits of its own, in the unit of the kit`, async (server) => {
    const call = startCaller(properties, server)
    const type = await newType(call)
    const own = (one) => ({
      timeout: 5000 / one, max_attempts: 3, max_lost: 4, backoff_min: 1500 / one, backoff_max: 2000 / one, max_runtime: 60_000 / one
    })
    const jobs = ['a', 'b', 'c'].map((id) => ({ type, id }))
    await call('enqueue', [type, 'a', {}], own(unit))
    await call('enqueueMany', [type, [{ id: 'b', ...own(unit) }]])
    await call('transact', [], { jobs: { add: [{ ...jobs[2], ...own(unit) }] } })
    for (const { id } of jobs) {
      const shown = await server.client.ok('GET', `/_jobs/${type}/${id}`)
      const seen = await call('get', [type, id])
      for (const name of Object.keys(own(1))) assert.deepEqual([shown[name], seen[name]], [own(1)[name], own(unit)[name]], name)
    }
    // Null is no limit; without the setting the type's applies again.
    await call('enqueue', [type, 'a', {}], { max_lost: null })
    const again = await server.client.ok('GET', `/_jobs/${type}/a`)
    assert.deepEqual([again.max_lost, 'timeout' in again], [null, false])
  })

  it(`${kit}: all times of a job have the unit of the kit`, async (server) => {
    const call = startCaller(properties, server)
    const type = await newType(call)
    await call('enqueue', [type, 'a', {}], { max_runtime: 3_600_000 / unit })
    const same = async (id) => {
      const [shown, seen] = [await server.client.ok('GET', `/_jobs/${type}/${id}`), await call('get', [type, id])]
      const names = Object.keys(shown).filter((name) => typeof shown[name] === 'number' && shown[name] > 10_000_000_000 && name !== 'epoch')
      for (const name of names) assert.equal(seen[name], shown[name] / unit, name)
      return names
    }
    const waiting = await same('a')
    assert.ok(waiting.includes('added_at') && waiting.includes('due_at'), waiting.join())
    const { jobs } = await server.client.ok('POST', `/_jobs/${type}/_accept`, {})
    assert.ok((await same('a')).includes('deadline'))
    await server.client.ok('POST', `/_jobs/${type}/a/_finish`, { lock: jobs[0].lock, result: { n: 1 } })
    assert.ok((await same('a')).includes('finished_at'))
    assert.deepEqual((await call('get', [type, 'a'])).result, { n: 1 })
  })

  it(`${kit}: many jobs are added in several requests, and listed page by page`, async (server) => {
    const call = startCaller(properties, server)
    const type = await newType(call)
    const ids = Array.from({ length: 25_000 }, (_, i) => `job${String(i).padStart(6, '0')}`)
    const added = await call('enqueueMany', [type, ids.map((id) => ({ id, data: {} }))])
    assert.deepEqual(added.map(({ id }) => id), ids)
    assert.ok(added.every(({ created }) => created))
    assert.deepEqual((await call('list', [type])).map(({ id }) => id), ids)
    const [name, start] = kit === 'js' ? ['startId', ids[23_999]] : ['start_id', ids[23_999]]
    assert.deepEqual((await call('list', [type], { state: 'pending', [name]: start })).map(({ id }) => id), ids.slice(23_999))
    assert.deepEqual(await call('list', [type], { state: 'failed' }), [])
    assert.deepEqual((await call('list', [type], { descending: true })).map(({ id }) => id), [...ids].reverse())
  })

  it(`${kit}: a list continues if its jobs change their state meanwhile`, async (server) => {
    const call = startCaller(properties, server)
    const type = await newType(call)
    const ids = Array.from({ length: 1_500 }, (_, i) => `job${String(i).padStart(6, '0')}`)
    await call('enqueueMany', [type, ids.map((id) => ({ id }))])
    let pages = 0
    const proxy = await startProxy(server, {
      // The last job of the first page is removed before the second page is read.
      onRequest: (text) => {
        if (/^GET \S+\/_list\?/.test(text) && ++pages === 2) return server.client.ok('POST', `/_jobs/${type}/${ids[999]}/_cancel`).then(() => undefined)
        return undefined
      }
    })
    try {
      const slow = startCaller(properties, { url: proxy.url, credentials: server.credentials })
      assert.deepEqual((await slow('list', [type], { state: 'pending' })).map(({ id }) => id), ids)
      assert.equal(pages, 2)
      assert.deepEqual((await call('list', [type], { state: 'cancelled' })).map(({ id }) => id), [ids[999]])
    } finally {
      proxy.close()
    }
  })

  it(`${kit}: jobs that exceed a transaction are added in halves`, async (server) => {
    const call = startCaller(properties, server)
    const type = await newType(call)
    const jobs = Array.from({ length: 3_000 }, (_, i) => ({ id: `${i}${'x'.repeat(900)}` }))
    assert.equal((await call('enqueueMany', [type, jobs])).length, 3_000)
    const large = Array.from({ length: 3 }, () => ({ data: 'x'.repeat(3_000_000) }))
    assert.equal((await call('enqueueMany', [type, large])).length, 3)
    assert.deepEqual(await call('enqueueMany', [type, []]), [])
    assert.equal((await call('counts', [type])).pending, 3_003)
  })

  it(`${kit}: an error in the middle has the jobs that were added before`, async (server) => {
    const call = startCaller(properties, server)
    const type = await newType(call)
    const jobs = Array.from({ length: 5_010 }, (_, i) => ({ id: `job${i}` }))
    assert.equal((await call.error('enqueueMany', [type, [...jobs, { id: 'job0' }]])).error, bad)
    assert.equal((await call('counts', [type])).pending, 0)
    jobs[5_005].priority = 'high'
    const { status, added } = await call.error('enqueueMany', [type, jobs])
    assert.deepEqual([status, added], [400, 5_000])
    assert.equal((await call('counts', [type])).pending, 5_000)
    delete jobs[5_005].priority
    const again = await call('enqueueMany', [type, jobs])
    assert.deepEqual([again.length, again.filter(({ created }) => created).length], [5_010, 10])
  })

  it(`${kit}: a wait for a job ends with the job`, async (server) => {
    const call = startCaller(properties, server)
    const type = await newType(call)
    const other = startCaller(properties, server)
    const post = (rest, body) => server.client.ok('POST', `/_jobs/${type}${rest}`, body)
    await call('enqueue', [type, 'a', { n: 1 }])
    assert.equal((await call.error('wait', [type, 'a'], { timeout: 10 / unit })).error, timeout)
    const ended = call('wait', [type, 'a'])
    const same = other('wait', [type, 'a'], { timeout: 100_000 / unit })
    const { jobs } = await post('/_accept', {})
    await post('/a/_finish', { lock: jobs[0].lock })
    for (const job of [await ended, await same, await call('wait', [type, 'a'])]) {
      assert.deepEqual([job.state, job.data, job.history[0].outcome], ['finished', { n: 1 }, 'finished'])
    }
    const { status } = await call.error('wait', [type, 'nobody'])
    assert.equal(status, 404)
    await call('enqueue', [type, 'b'])
    const removed = call.error('wait', [type, 'b'])
    await other('remove', [type, 'b'])
    assert.equal((await removed).status, 404)
    await call('enqueue', [type, 'c'])
    await call('cancel', [type, 'c'])
    assert.equal((await call('wait', [type, 'c'])).state, 'cancelled')
  })

  it(`${kit}: a wait for many jobs ends when as many as requested have ended`, async (server) => {
    const call = startCaller(properties, server)
    const other = startCaller(properties, server)
    const type = await newType(call)
    const jobs = ['a', 'b', 'nobody'].map((id) => ({ type, id }))
    await call('enqueueMany', [type, [{ id: 'a' }, { id: 'b' }]])
    const states = (listed) => listed.map(({ id, state, reached }) => `${id} ${state} ${reached}`)
    const now = await call('waitForMany', [jobs], { timeout: 0 })
    assert.deepEqual(states(now), ['a pending false', 'b pending false', 'nobody not_found true'])
    assert.deepEqual(states(await call('waitForMany', [jobs], { count: 2, states: ['pending'] })).slice(0, 2), ['a pending true', 'b pending true'])
    const two = call('waitForMany', [jobs], { count: 2 })
    const all = other('waitForMany', [jobs])
    await server.client.ok('POST', `/_jobs/${type}/b/_cancel`)
    assert.deepEqual(states(await two), ['a pending false', 'b cancelled true', 'nobody not_found true'])
    await server.client.ok('POST', `/_jobs/${type}/a/_cancel`)
    assert.deepEqual(states(await all), ['a cancelled true', 'b cancelled true', 'nobody not_found true'])
  })

  it(`${kit}: a job is resubmitted`, async (server) => {
    const call = startCaller(properties, server)
    const type = await newType(call)
    await call('enqueue', [type, 'a', { n: 1 }])
    await call('cancel', [type, 'a'])
    await call('resubmit', [type, 'a'])
    assert.deepEqual([(await call('get', [type, 'a'])).state, (await call('get', [type, 'a'])).data], ['pending', { n: 1 }])
    const at = Date.UTC(2099, 0, 31, 8)
    await call('resubmit', [type, 'a'], { data: { n: 2 }, [kit === 'js' ? 'scheduledAt' : 'scheduled_at']: at / unit })
    const { data, scheduled_at } = await server.client.ok('GET', `/_jobs/${type}/a`)
    assert.deepEqual([data, scheduled_at], [{ n: 2 }, at])
    assert.equal((await call.error('resubmit', [type, 'nobody'])).status, 404)
  })

  it(`${kit}: a trace is stored with the job`, async (server) => {
    const call = startCaller(properties, server)
    const type = await newType(call)
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    await call('enqueue', [type, 'a', { n: 1 }], { traceparent })
    await call('enqueue', [type, 'b', {}], { traceparent })
    await call('enqueueMany', [type, [{ id: 'c', traceparent }]])
    await call('transact', [], { jobs: { add: [{ type, id: 'd', traceparent }] } })
    const datas = await Promise.all(['a', 'b', 'c', 'd'].map(async (id) => (await server.client.ok('GET', `/_jobs/${type}/${id}`)).data))
    assert.deepEqual(datas, [{ n: 1, traceparent }, { traceparent }, { traceparent }, { traceparent }])
    for (const malformed of ['', 'x', traceparent.toUpperCase(), traceparent + '0', `ff${traceparent.slice(2)}`, 1]) {
      assert.equal((await call.error('enqueue', [type, 'x', {}], { traceparent: malformed })).error, bad, malformed)
    }
    for (const data of ['text', [1], 5]) {
      assert.equal((await call.error('enqueue', [type, 'x', data], { traceparent })).error, bad)
    }
    assert.equal((await call.error('get', [type, 'x'])).status, 404)
  })

  it(`${kit}: errors show no password`, async (server) => {
    const call = startCaller(properties, server)
    const urls = ['secret', 'ann:secret@host', 'ftp://ann:secret@host', 'http://ann:secret', 'http://ann:secret@', 'http://ann:secret@host:secret']
    for (const url of urls) {
      const { error, text } = await call.error('connect', [url])
      assert.equal(error, bad, url)
      assert.ok(!text.includes('secret'), text)
    }
    await call('connect', [server.url.replace('http://', 'http://admin:secret2@')])
    const { status, text } = await call.error('counts', ['x'])
    assert.equal(status, 401)
    assert.ok(!text.includes('secret2'), text)
    await call('connect', ['http://admin:secret2@no-such-host.invalid'])
    assert.ok(!(await call.error('counts', ['x'])).text.includes('secret2'))
  })

  it(`${kit}: the installation of its README works`, async () => {
    const directory = temporaryDirectory()
    const project = path.join(directory, 'project')
    symlinkSync(path.join(here, '..'), path.join(directory, 'divan'))
    mkdirSync(project)
    const [, line] = /```sh\n(.*install.*)\n```/.exec(readFileSync(path.join(here, `../clients/${kit}/README.md`), 'utf8'))
    const inProject = (command, env) => promisify(execFile)('sh', ['-c', command], { cwd: project, env: { ...process.env, ...env } })
    if (kit === 'js') {
      await inProject(line)
      const { stdout } = await inProject(`node -e "import('divan-jobs').then(({ Divan }) => console.log(Divan.name))"`)
      assert.equal(stdout, 'Divan\n')
      return
    }
    try {
      execFileSync('python3', ['-c', 'import ensurepip'], { stdio: 'ignore' })
    } catch {
      return // this Python cannot create virtual environments
    }
    // It has no dependencies.
    const { stdout } = await inProject(`python3 -m venv env && . env/bin/activate && ${line} && python3 -c "import divan_jobs; print(divan_jobs.__file__)"`, { PIP_NO_INDEX: '1' })
    assert.match(stdout, /env\/lib\/.*\/divan_jobs\/__init__\.py\n$/)
  })
}
