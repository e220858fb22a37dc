// Uses everything that the kit for Node.js declares. test/packages_test.mjs compiles it; it is not run.
import {
  Divan, DivanError, JobAborted, JobFailure, JobResult, JobSnooze, Worker,
  type Added, type Attempt, type Changes, type Handler, type Hook, type Job, type JobInfo, type JobOptions, type Json, type NewJob,
  type Schedule, type State, type TransactAnswer, type TypeSettings, type WorkerEvents, type WorkerOptions
} from 'divan-jobs'

interface Letter { to: string }
interface Sent { at: number }

const divan = new Divan('http://admin:secret@127.0.0.1:5984')

const settings: TypeSettings = {
  timeout: 1, max_attempts: 1, max_lost: null, max_runtime: null, backoff_min: 1, backoff_max: 1, retention: 1, retention_failed: null,
  max_running: null, paused: true, schedule: { cron: '@daily', time_zone: 'Europe/Berlin', missed: 'once' }
}
await divan.declare('letter')
await divan.declare('letter', settings)
// @ts-expect-error: it is called max_attempts
await divan.declare('letter', { maxAttempts: 5 })

const schedule: Schedule = { cron: '30 7 * * mon-fri', timeZone: 'Europe/Berlin', missed: 'skip' }
const options: JobOptions = { scheduledAt: new Date(), priority: 1, traceparent: '', max_attempts: 1, max_lost: null, max_runtime: null }
const added: Added = await divan.enqueue('letter', 'a', { to: 'Ann' }, { ...options, schedule })
const created: [string, boolean] = [added.id, added.created]
await divan.enqueue('letter', null)
const jobs: NewJob<Letter>[] = [{ id: 'a', data: { to: 'Ann' }, scheduledAt: 0 }, {}]
const many: Added[] = await divan.enqueueMany('letter', jobs)
// @ts-expect-error: null is no schedule of a job
await divan.enqueue('letter', 'a', {}, { schedule: null })

const changes: Changes = {
  docs: { shop: [{ _id: 'a' }] },
  jobs: {
    add: [{ type: 'letter', id: 'a', data: {} }],
    finish: [{ type: 'letter', id: 'a', lock: '', result: 1, data: 2 }],
    remove: [{ type: 'letter', id: 'a' }]
  }
}
const answer: TransactAnswer = await divan.transact(changes)
const revisions: (string | undefined)[] = [answer.docs.shop?.[0]?.rev, answer.jobs.add[0]?.id, answer.jobs.finish[0]?.id, answer.jobs.remove[0]?.id]

const info: JobInfo<Letter> = await divan.get<Letter>('letter', 'a')
const attempts: Attempt[] = info.history
const shown: (string | number | undefined)[] = [
  info.type, info.id, info.state, info.priority, info.scheduled_at, info.due_at, info.schedule?.missed, info.attempt, info.failures,
  info.epoch, info.data.to, info.worker?.role, info.last_error, attempts[0]?.outcome, attempts[0]?.ended_at
]
const values: (Json | undefined)[] = [info.result, info.progress]
for await (const job of divan.list<Letter>('letter', { state: 'pending', startId: 'a', descending: true })) job.data.to.trim()
const ended: JobInfo = await divan.wait('letter', 'a', { timeout: 1, signal: new AbortController().signal })
const states: (State | 'not_found')[] = (await divan.waitForMany([{ type: 'letter', id: 'a' }], { count: 1, states: ['finished'], timeout: 1 })).map(({ state }) => state)
await divan.resubmit('letter', 'a', { data: {}, scheduledAt: new Date() })
const pending: number = (await divan.counts('letter')).pending
await divan.cancel('letter', 'a')
await divan.remove('letter', 'a')

const workerOptions: WorkerOptions = {
  role: 'post-office', id: 'one', opts: { version: 1 }, timeout: 1, checkInterval: 1, pollTimeout: 1, backoff: { min: 1, max: 2 }
}
const worker: Worker = divan.worker(workerOptions)
// @ts-expect-error: a worker has a role
divan.worker({})
const handler: Handler<Letter, Sent> = async (job: Job<Letter, Sent>) => {
  const { cancel, resubmit } = await job.update({ progress: { franked: true }, data: { to: job.data.to.trim() } })
  if (job.signal.aborted && (job.signal.reason as JobAborted).code === 'halt') throw job.signal.reason
  if (cancel) throw new JobSnooze(1_000)
  if (resubmit) throw new JobFailure('no address', { retry: false, delay: 1, cause: new Error(job.traceparent) })
  await job.transact(changes, { at: job.attempt + job.epoch })
  return new JobResult<Sent, Letter>({ at: Date.now() }, { data: { to: `${job.type} ${job.id} ${job.lock}` } })
}
const hook: Hook = async (job, next) => [job.id, await next()]
worker.handle('letter', handler, { concurrency: 10 }).handle<Letter, Sent>(['parcel', 'card'], () => ({ at: 1 })).use(hook)
// @ts-expect-error: its data has no member `from`
worker.handle<Letter, Sent>('letter', async (job) => ({ at: job.data.from }))

const events: (keyof WorkerEvents)[] = ['online', 'offline', 'halt', 'fail']
const offline = (error: Error) => console.log(error.message)
worker.on('online', () => {}).once('offline', offline).off('offline', offline)
worker.on('halt', (job, reason) => console.log(job.id, reason.code)).on('fail', (job, error) => console.log(job.id, error.message))
const heard: boolean = worker.emit('offline', new Error('lost'))
// @ts-expect-error: there is no such event
worker.on('idle', () => {})
// @ts-expect-error: the second argument is a JobAborted
worker.on('halt', (job, reason: string) => {})

try {
  await worker.run()
} catch (error) {
  if (error instanceof DivanError) console.log(error.name, error.status, error.error, error.reason)
}
await worker.stop({ timeout: 10_000 })
divan.close()
console.log(worker.role, worker.id, created, many, revisions, shown, values, ended, states, pending, events, heard)
