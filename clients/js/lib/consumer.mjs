// A consumer: one handler of a worker with its types of jobs. Accepts jobs, runs the handler, and aborts
// attempts that the server has ended.
import { Backoff, Condition, pause } from './waiting.mjs'
import { Outbox } from './outbox.mjs'
import { finishOf, JobSnooze, Run } from './run.mjs'
import { DivanError, isRefused } from './transport.mjs'
import { changes, pathOf } from './wire.mjs'

const MAX_ACCEPTED = 1000 // the server's limit
const MAX_CHECKED = 500
const MAX_TAKEN = 32 // finishes with an accept; more are sent in bulk
const LISTED = 1000
const REPORTS_MS = 5_000 // that a worker which stops waits for reports

function byType(runs) {
  const parts = new Map()
  for (const run of runs) {
    if (!parts.has(run.type)) parts.set(run.type, [])
    parts.get(run.type).push(run)
  }
  return parts
}

export class Consumer extends Condition {
  /** Runs that the server has assigned to this worker. */
  runs = new Set()
  /** Handlers that have not returned, including those of lost jobs. */
  active = 0

  #worker
  #combines = true // the server knows `finish` in an accept
  #unsure = false // a response that may have contained jobs was lost
  #accepting = new AbortController()
  #backoff

  /** `worker`: {transport, registration, options, stopping, ended: AbortSignal, emit, fatal}. */
  constructor(worker, types, handler, concurrency) {
    super()
    this.#worker = worker
    Object.assign(this, { types, handler, concurrency })
    this.#backoff = new Backoff({ ...worker.options.backoff, max: 2_000 })
    this.outbox = new Outbox({
      request: (method, path, body) => worker.transport.request(method, path, body),
      pause: () => this.#backoff.pause(worker.ended),
      changed: () => {
        this.#forget()
        this.changed()
      },
      halt: (run) => this.halt(run, 'the attempt does not own the job any more'),
      failed: (run, error) => worker.emit('fail', run.job, error),
      fatal: (error) => worker.fatal(error)
    })
  }

  get #busy() {
    // Back-pressure: if the server is slow, unconfirmed reports stop further accepts.
    return this.active >= this.concurrency || this.outbox.size > 2 * this.concurrency
  }
  get idle() {
    return this.active === 0 && this.outbox.size === 0
  }

  /** Accepts jobs until the worker stops. Throws errors for which a retry is useless. */
  async accept() {
    const { registration, ended } = this.#worker
    for (;;) {
      await this.until(() => this.#worker.stopping || !this.#busy)
      await registration.until(() => this.#worker.stopping || registration.up)
      if (this.#worker.stopping) return
      try {
        if (this.#unsure) await this.#checkUnknown()
        await this.#acceptOnce()
        this.#backoff.reset()
      } catch (error) {
        if (this.#worker.stopping) return
        if (isRefused(error) || error.status === 400 || error.error === 'no_such_job_type') throw error
        if (error.status === 404) registration.check()
        await this.#backoff.pause(ended)
      }
    }
  }

  async #acceptOnce() {
    const { registration, transport, options } = this.#worker
    const { worker } = registration
    const limit = Math.min(MAX_ACCEPTED, this.concurrency - this.active)
    // The jobs that have just finished are reported with the request for the next ones, which then does not wait.
    const finishes = this.#combines ? this.outbox.takeFinishes(MAX_TAKEN) : undefined
    const body = JSON.stringify({ types: this.types, limit, timeout: finishes ? 0 : options.pollTimeout, worker })
    let jobs
    try {
      const text = finishes ? `${body.slice(0, -1)},"finish":${finishes.json}}` : body
      const wait = { poll: true, timeout: options.pollTimeout + 30_000, signal: this.#accepting.signal }
      const answer = await transport.request('POST', '/_jobs/_accept', text, wait)
      if (finishes && !finishes.isComplete(answer.finished)) throw new Error('the response lacks results')
      jobs = answer.jobs
      finishes?.settle(answer.finished)
    } catch (error) {
      finishes?.giveBack(error)
      // An error of a gateway does not mean that the server has not accepted.
      const answered = error instanceof DivanError && error.status < 500
      if (!answered && error.code !== 'ECONNREFUSED') this.#unsure = true
      // An older server does not know `finish`.
      if (finishes && error.status === 400) return void (this.#combines = false)
      throw error
    }
    // Accepted under a registration that was lost meanwhile: the jobs were reclaimed.
    if (worker.incarnation !== registration.incarnation) return
    const late = []
    for (const job of jobs) {
      const run = new Run(job, this)
      this.runs.add(run)
      if (this.#worker.stopping) late.push(run)
      else this.#start(run)
    }
    this.#release(late)
  }

  // Jobs of a lost response would stay assigned to this worker until it ends: if there are any, it registers
  // again.
  async #checkUnknown() {
    const { registration } = this.#worker
    for (const type of this.types) {
      if (!(await this.#hasUnknown(type))) continue
      await registration.renew()
      break
    }
    this.#unsure = false
    await registration.until(() => this.#worker.stopping || registration.up)
  }

  // Resolves to true if the server has running jobs of this worker that are unknown here.
  async #hasUnknown(type) {
    const { registration, transport } = this.#worker
    const { role, id } = registration.worker
    for (let start = ''; ; ) {
      const query = new URLSearchParams({ type: JSON.stringify(type), limit: LISTED, start_id: JSON.stringify(start) })
      const target = `/_workers/${encodeURIComponent(role)}/${encodeURIComponent(id)}/_jobs?${query}`
      const { jobs } = await transport.request('GET', target, undefined, { again: true })
      const known = new Set()
      for (const run of this.runs) if (run.type === type) known.add(`${run.epoch} ${run.id}`)
      if (jobs.some(({ epoch, id }) => !known.has(`${epoch} ${id}`))) return true
      if (jobs.length < LISTED) return false
      start = jobs.at(-1).id
    }
  }

  async #start(run) {
    ++this.active
    let end
    try {
      const returned = await this.handler(run.job)
      end = () => this.outbox.finish(run, returned)
    } catch (error) {
      // A handler that throws the reason of a cancelled job's signal has not failed.
      if (run.isAbort(error)) end = () => this.outbox.finish(run)
      else if (error instanceof JobSnooze) end = () => this.outbox.snooze(run, error)
      else end = () => this.outbox.fail(run, error)
    }
    --this.active
    if (run.state === 'running') end()
    this.changed()
  }

  #forget() {
    for (const run of this.runs) if (run.state === 'over') this.runs.delete(run)
  }

  /** Called when the attempt has lost the job: fires the signal; the handler's result is ignored. */
  halt(run, why) {
    if (run.state === 'over') return
    run.state = 'over'
    run.abort('halt', why)
    this.runs.delete(run)
    this.#worker.emit('halt', run.job, run.reason)
  }

  haltAll(why) {
    for (const run of [...this.runs]) this.halt(run, why)
  }

  /** The server has ended an attempt, which may belong to this consumer. */
  haltAttempt({ type, lock, reason }) {
    for (const run of this.runs) if (run.type === type && run.lock === lock) return this.halt(run, reason)
  }

  async update(run, { progress, data } = {}) {
    if (run.state !== 'running') throw run.reason ?? new Error('the job has ended')
    const target = `${pathOf(run.type)}/${encodeURIComponent(run.id)}/_update`
    try {
      const flags = await this.#worker.transport.request('POST', target, { lock: run.lock, progress, data }, { again: true })
      return this.#applyFlags(run, flags)
    } catch (error) {
      if (error.error !== 'halt') throw error
      this.halt(run, error.reason)
      throw run.reason
    }
  }

  #applyFlags(run, { cancel, resubmit }) {
    if (cancel) run.abort('cancel', 'the job was cancelled')
    return { cancel, resubmit }
  }

  /** Writes documents and jobs atomically in the transaction that finishes the job. */
  async transact(run, given, returned) {
    if (run.state !== 'running') throw run.reason ?? new Error('the job has ended')
    const { docs, jobs } = changes(given)
    const finish = [...(jobs.finish ?? []), { type: run.type, id: run.id, lock: run.lock, ...finishOf(returned) }]
    run.state = 'transacting'
    try {
      const answer = await this.#worker.transport.request('POST', '/_transact', { docs, jobs: { ...jobs, finish } })
      run.state = 'over'
      this.runs.delete(run)
      return answer
    } catch (error) {
      if (run.state === 'transacting') run.state = 'running'
      if (error.error !== 'halt') throw error
      this.halt(run, error.reason)
      throw run.reason
    }
  }

  /** Checks whether jobs that have run for a while were cancelled or lost. */
  async check(since) {
    const old = [...this.runs].filter(({ state, startedAt }) => state === 'running' && startedAt <= since)
    for (const [type, runs] of byType(old)) {
      for (let i = 0; i < runs.length; i += MAX_CHECKED) await this.#checkSome(type, runs.slice(i, i + MAX_CHECKED))
    }
  }

  async #checkSome(type, runs) {
    const jobs = runs.map(({ id, lock }) => ({ id, lock }))
    const answers = await this.#worker.transport.request('POST', `${pathOf(type)}/_update`, { jobs }, { again: true })
    runs.forEach((run, n) => {
      if (run.state !== 'running') return // ended meanwhile
      if (answers[n].error === 'halt') this.halt(run, answers[n].reason)
      else this.#applyFlags(run, answers[n])
    })
  }

  // Releases jobs, so that other workers can run them.
  async #release(runs) {
    for (const run of runs) {
      run.state = 'over'
      run.abort('stop', 'the worker stops')
    }
    for (const [type, some] of byType(runs)) {
      try {
        const jobs = some.map(({ id, lock }) => ({ id, lock }))
        await this.#worker.transport.request('POST', `${pathOf(type)}/_release`, { jobs }, { timeout: 5_000 })
      } catch {
        // The end of the registration has the same effect.
      }
    }
    for (const run of runs) this.runs.delete(run)
  }

  /** Releases the running jobs, waits some seconds for the reports of those that have ended, and aborts accept(). */
  async end() {
    await this.#release([...this.runs].filter(({ state }) => state !== 'ending'))
    const waited = new AbortController()
    await Promise.race([this.until(() => this.outbox.size === 0), pause(REPORTS_MS, waited.signal)])
    waited.abort()
    this.#accepting.abort()
  }
}
