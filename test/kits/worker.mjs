// A worker that a test controls: it reports events on stdout and reads commands from stdin.
//   node worker.mjs URL '{"type": …, "concurrency": …, "worker": {…}}'
// A job's data say what its handler does: {"do": "note" | "hold" | "stubborn" | "throw" | "big" | "transact"
// | "late"}.
import { createInterface } from 'node:readline'
import { Divan, DivanError, JobFailure, JobResult, JobSnooze } from '../../clients/js/index.mjs'

const [url, options] = process.argv.slice(2)
const { type, types = type, concurrency = 1, worker: settings, faulty } = JSON.parse(options)
const say = (...words) => process.stdout.write(words.join(' ') + '\n')

const schedule = { cron: '@yearly', timeZone: 'Europe/Berlin', missed: 'skip' }
let go
const proceed = new Promise((resolve) => (go = resolve))

const divan = new Divan(url)
const worker = divan.worker({ role: type, ...settings })

// Hooks: the outer one sees a failure, the inner one changes a result, and one job does not reach its
// handler.
worker.use(async (job, next) => {
  if (job.data.do !== 'hooked') return next()
  say('before', job.id, 'outer', job.traceparent ?? 'none')
  try {
    return await next()
  } catch (error) {
    say('caught', job.id, error.message)
    throw error
  } finally {
    say('after', job.id, 'outer')
  }
})
worker.use(async (job, next) => {
  if (job.data.do !== 'hooked') return next()
  say('before', job.id, 'inner')
  if (job.data.skip) return { skipped: true }
  if (job.data.fail) throw new Error('in a hook')
  return { ...(await next()), hooked: true }
})

worker.handle(
  types,
  async (job) => {
    const { id, data, signal } = job
    const aborted = new Promise((resolve) =>
      signal.addEventListener('abort', () => {
        say('aborted', id, signal.reason.code)
        resolve('aborted')
      })
    )
    say('ran', id)
    switch (data.do) {
      case 'nothing':
        return
      case 'count':
        return new JobResult({ counted: data.n }, { data: { ...data, n: data.n + 1 } })
      case 'throw':
        throw new Error('no luck')
      case 'give up':
        throw new JobFailure('never', { retry: false })
      case 'pause':
        throw new JobFailure('not yet', { delay: 3_600_000 })
      case 'snooze':
        throw new JobSnooze(7_200_000)
      case 'big':
        return { text: 'x'.repeat(9_000_000) }
      case 'hold':
        await job.update({ progress: { held: true } })
        if ((await Promise.race([proceed, aborted])) === 'aborted') signal.throwIfAborted()
        break
      case 'stubborn': // ignores its signal
        await proceed
        break
      case 'late': {
        // Also ignores its signal, and reports on its job on a command.
        await proceed
        const refused = (what) => (error) => say('refused', id, what, error.code)
        await job.update({ progress: { by: worker.id } }).catch(refused('update'))
        await job.transact({ docs: { [data.db]: [{ _id: id, by: worker.id }] } }, { by: worker.id }).catch(refused('transact'))
        break
      }
      case 'transact':
        await job.transact(
          {
            docs: { [data.db]: [{ _id: id }] },
            jobs: {
              add: [
                { type, id: `${id}-next`, data: {} },
                { type, id: `${id}-later`, scheduledAt: new Date('2099-01-31T08:00:00Z') },
                { type, id: `${id}-yearly`, schedule }
              ]
            }
          },
          { did: true }
        )
    }
    return { by: worker.id, epoch: job.epoch }
  },
  { concurrency }
)

worker.on('online', () => say('online'))
worker.on('offline', () => say('offline'))
const listener = (name) => (job, error) => {
  say(name, job.id, ...(name === 'fail' ? [error.message] : []))
  if (name === faulty) throw new Error(`in the listener of ${name}`)
}
for (const name of ['halt', 'fail']) worker.on(name, listener(name))

createInterface({ input: process.stdin }).on('line', (line) => {
  const [command, argument, ...words] = line.split(' ')
  if (command === 'go') go('proceed')
  if (command === 'enqueue') {
    // Its id and cron expression.
    divan.enqueue(type, argument, { do: 'note' }, { schedule: { ...schedule, cron: words.join(' ') } }).then(
      ({ created }) => say('enqueued', argument, created),
      (error) => say('error', error.status, error.reason)
    )
  }
  if (command === 'stop') {
    worker.stop({ timeout: Number(argument) })
    say('stopping')
  }
})

try {
  await worker.run()
  say('stopped')
} catch (error) {
  if (error instanceof DivanError) say('error', error.name, error.status, error.error)
  else say('error', error.message)
}
process.exit() // stdin is still open
