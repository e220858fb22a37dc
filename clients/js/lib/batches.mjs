// Reports of one kind, `_finish`, `_fail` or `_release`, on their way to the server.
//
// They go in batches: one request is under way, and what gathers meanwhile goes with the next. The busier the worker,
// the larger the batches; an idle one waits for nothing. A batch is of one type of jobs.
import { isRefused } from './transport.mjs'
import { pathOf } from './wire.mjs'

const MAX_JOBS = 500
const MAX_BYTES = 4_000_000

// Whether a request that failed may have been done: nobody answered, or whoever did is in trouble.
const isUnsure = ({ status }) => status === undefined || status >= 500
// Whether the part of a request that is about one job may have been done, and may be done later.
const isUndone = (answer) => answer?.status === 503

export class Batches {
  #reports = []
  #sending = 0
  #most = MAX_JOBS
  #busy = false

  /**
   * `link`: {request, pause, changed(), fatal(error)} of the worker. `answered(report, answer)`: the server's answer to one
   * of {run, again: whether it was sent before}. `refused(run, error)`: the server refuses every request with this report.
   */
  constructor(action, link, { answered, refused }) {
    Object.assign(this, { action, link, answered, refused })
  }

  /** How many the server has not answered. */
  get size() {
    return this.#reports.length + this.#sending
  }

  push(run, text) {
    this.#reports.push({ run, text, again: false })
    if (this.#busy) return
    this.#busy = true
    this.#sendAll()
  }

  #next() {
    const batch = []
    const others = []
    let bytes = 0
    for (const report of this.#reports) {
      const { run, text } = report
      if (run.state !== 'ending') continue
      bytes += text.length
      const [first] = batch
      const fits = !first || (run.type === first.run.type && batch.length < this.#most && bytes <= MAX_BYTES)
      ;(fits ? batch : others).push(report)
    }
    this.#reports = others
    return batch
  }

  async #sendAll() {
    await new Promise(setImmediate) // what ends in the same turn goes together
    for (;;) {
      const batch = this.#next()
      if (batch.length === 0) break
      this.#sending += batch.length
      const unheard = await this.#send(batch)
      this.#sending -= batch.length
      this.link.changed()
      if (unheard) await this.link.pause()
    }
    this.#busy = false
  }

  // Resolves to true if the caller is to wait before it continues.
  async #send(batch) {
    try {
      const target = `${pathOf(batch[0].run.type)}/${this.action}`
      const answers = await this.link.request('POST', target, `{"jobs":[${batch.map(({ text }) => text)}]}`)
      const undone = batch.filter((_, i) => isUndone(answers[i]))
      this.#repeat(undone, true)
      await Promise.all(batch.map((report, i) => isUndone(answers[i]) || this.answered(report, answers[i])))
      this.#most = Math.min(MAX_JOBS, 2 * this.#most)
      return undone.length > 0
    } catch (error) {
      if (isRefused(error)) {
        this.link.fatal(error)
        return false
      }
      const fault = [400, 404, 413].includes(error.status)
      if (fault && batch.length === 1) {
        this.refused(batch[0].run, error)
        return false
      }
      // One of them is the reason: each is sent alone.
      if (fault) this.#most = 1
      this.#repeat(batch, isUnsure(error))
      return !fault
    }
  }

  // What may have been done is marked: the second report of it is answered `halt`.
  #repeat(batch, unsure) {
    for (const report of batch) report.again ||= unsure
    this.#reports.unshift(...batch)
  }
}
