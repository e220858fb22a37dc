// What the handlers of one type have done, on its way to the server.
//
// Finishes go in batches: one request is under way, and what gathers meanwhile goes with the next. The busier the
// worker, the larger the batches; an idle one waits for nothing.
import { DivanError, isRefused } from './transport.mjs'

const MAX_JOBS = 500
const MAX_BYTES = 4_000_000
const FAILS_AT_ONCE = 4

export class Outbox {
  #finishes = []
  #fails = []
  #sending = 0
  #most = MAX_JOBS

  finishing = false

  /** `link`: {request, pause, changed(), halt(run), failed(run, error), fatal(error)} of the worker. */
  constructor(path, link) {
    this.path = path
    this.link = link
  }

  /** How many runs the server does not know to have ended. */
  get size() {
    return this.#finishes.length + this.#fails.length + this.#sending
  }

  finish(run, data) {
    run.state = 'ending'
    let text
    try {
      text = JSON.stringify({ id: run.id, lock: run.lock, data })
    } catch (error) {
      return this.fail(run, error)
    }
    this.#finishes.push({ run, text, again: false })
    if (this.finishing) return
    this.finishing = true
    this.#sendFinishes()
  }

  fail(run, error) {
    run.state = 'ending'
    this.link.failed(run, error)
    this.#fails.push(run)
    run.error = error
    if (this.#sending < FAILS_AT_ONCE) this.#sendFails()
  }

  #batch() {
    const batch = []
    let bytes = 0
    while (this.#finishes.length > 0 && batch.length < this.#most) {
      bytes += this.#finishes[0].text.length
      if (batch.length > 0 && bytes > MAX_BYTES) break
      const item = this.#finishes.shift()
      if (item.run.state === 'ending') batch.push(item)
    }
    return batch
  }

  async #sendFinishes() {
    await new Promise(setImmediate) // what ends in the same turn goes together
    for (;;) {
      const batch = this.#batch()
      if (batch.length === 0) break
      this.#sending += batch.length
      const refused = await this.#send(batch)
      this.#sending -= batch.length
      this.link.changed()
      if (refused) await this.link.pause()
    }
    this.finishing = false
  }

  // Answers whether to wait before going on.
  async #send(batch) {
    try {
      const answers = await this.link.request('POST', `${this.path}/_finish`, `{"jobs":[${batch.map(({ text }) => text)}]}`)
      await Promise.all(batch.map((item, i) => this.#finished(item, answers[i])))
      this.#most = Math.min(MAX_JOBS, 2 * this.#most)
      return false
    } catch (error) {
      if (isRefused(error)) {
        this.link.fatal(error)
        return false
      }
      const fault = [400, 404, 413].includes(error.status)
      if (fault && batch.length === 1) {
        this.fail(batch[0].run, error)
        return false
      }
      // One of them is the reason: each is sent alone.
      if (fault) this.#most = 1
      // Without an answer they may be done or not; a second finish of what is done answers `halt`.
      for (const item of batch) item.again ||= !(error instanceof DivanError)
      this.#finishes.unshift(...batch)
      return !fault
    }
  }

  async #finished({ run, again }, answer) {
    if (!answer?.error) run.state = 'over'
    else if (answer.error !== 'halt') this.fail(run, new DivanError(409, answer.error, answer.reason))
    else if (again && (await this.#wasOurs(run))) run.state = 'over'
    else this.link.halt(run)
  }

  // The epoch is of our attempt alone. The job itself may be pending again, or run elsewhere.
  async #wasOurs({ id, epoch }) {
    try {
      const { history } = await this.link.request('GET', `${this.path}/${encodeURIComponent(id)}`)
      const { outcome } = history.find((attempt) => attempt.epoch === epoch) ?? {}
      return outcome === 'finished' || outcome === 'cancelled'
    } catch {
      return false
    }
  }

  async #sendFails() {
    const run = this.#fails.shift()
    if (!run) return
    ++this.#sending
    while (run.state === 'ending') {
      try {
        const { lock, error } = run
        const text = String(error?.message ?? error)
        await this.link.request('POST', `${this.path}/${encodeURIComponent(run.id)}/_fail`, { lock, error: text })
        run.state = 'over'
      } catch (error) {
        if (isRefused(error)) {
          run.state = 'over'
          this.link.fatal(error)
        } else if ([400, 404, 409, 413].includes(error.status)) this.link.halt(run)
        else await this.link.pause()
      }
    }
    --this.#sending
    this.link.changed()
    this.#sendFails()
  }
}
