// Sends reports of one kind (`_finish`, `_fail` or `_release`) to the server in batches.
//
// One request is in progress at a time; reports that are added meanwhile are sent with the next. So the
// batches of a busy worker are large, and those of an idle one are not delayed. While enough reports for a
// whole batch wait, a second request is sent beside the first. A batch contains jobs of one type. take() lets
// another request carry a few of them.
import { isRefused } from './transport.mjs'
import { pathOf } from './wire.mjs'

const MAX_JOBS = 500
const MAX_REQUESTS = 2
const MAX_BYTES = 4_000_000
const MAX_TAKEN_BYTES = 50_000

// Whether a failed request may have been executed: there was no response, or a server error.
const isUnsure = ({ status }) => status === undefined || status >= 500
// Whether the part of a request for one job may have been executed, and should be repeated.
const isUndone = (answer) => answer?.status === 503

/** Whether there is a result for each report. */
export const isComplete = (answers, batch) => Array.isArray(answers) && answers.length === batch.length

export class Batches {
  #reports = []
  #sending = 0
  #most = MAX_JOBS
  #requests = 0 // in progress
  #pause // after a failure: a promise

  /**
   * `link`: {request, pause, changed(), fatal(error)} of the worker. `answered(report, answer)`: called with the response to one
   * of {run, again: whether it was sent before}. `refused(run, error)`: called if the server rejects every request with this report.
   */
  constructor(action, link, { answered, refused }) {
    Object.assign(this, { action, link, answered, refused })
  }

  /** The number of reports without a response. */
  get size() {
    return this.#reports.length + this.#sending
  }

  /**
   * Takes the reports that are to be sent, if they are at most `most` and small, so that the caller sends them with another request.
   * It calls settle() or giveBack() then.
   */
  take(most) {
    const batch = this.#reports.filter(({ run, alone }) => run.state === 'ending' && !alone)
    if (batch.length > most || batch.reduce((bytes, { text }) => bytes + Buffer.byteLength(text), 0) > MAX_TAKEN_BYTES) return []
    this.#reports = this.#reports.filter((report) => !batch.includes(report))
    this.#sending += batch.length
    return batch
  }

  /** The response to reports that were taken. */
  async settle(batch, answers) {
    await this.#answer(batch, answers)
    this.#sending -= batch.length
    this.link.changed()
    this.#start()
  }

  /** The request with reports that were taken has failed: they are sent in requests of their own. */
  giveBack(batch, error) {
    for (const report of batch) report.alone = true
    this.#sending -= batch.length
    this.#repeat(batch, isUnsure(error))
    this.#start()
  }

  push(run, text) {
    this.#reports.push({ run, text, again: false, alone: false })
    this.#start()
  }

  #start() {
    const enough = this.#requests === 0 ? 1 : MAX_JOBS
    if (this.#requests === MAX_REQUESTS || this.#reports.length < enough || this.#pause) return
    ++this.#requests
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
    await new Promise(setImmediate) // jobs that end in the same turn are reported together
    for (;;) {
      await this.#pause
      if (this.#requests > 1 && this.#reports.length < MAX_JOBS) break
      const batch = this.#next()
      if (batch.length === 0) break
      this.#start()
      this.#sending += batch.length
      const mustWait = await this.#send(batch)
      this.#sending -= batch.length
      this.link.changed()
      if (mustWait) this.#pause ??= this.link.pause().then(() => (this.#pause = undefined))
    }
    --this.#requests
  }

  // Resolves to true if the caller must wait before it continues.
  async #send(batch) {
    try {
      const target = `${pathOf(batch[0].run.type)}/${this.action}`
      const answers = await this.link.request('POST', target, `{"jobs":[${batch.map(({ text }) => text)}]}`)
      if (!isComplete(answers, batch)) throw new Error('the response lacks results')
      const undone = await this.#answer(batch, answers)
      this.#most = Math.min(MAX_JOBS, 2 * this.#most)
      return undone > 0
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
      // One of the reports is the cause: send each alone.
      if (fault) this.#most = 1
      this.#repeat(batch, isUnsure(error))
      return !fault
    }
  }

  // Resolves to the number of reports that must be sent again.
  async #answer(batch, answers) {
    const undone = batch.filter((_, i) => isUndone(answers[i]))
    this.#repeat(undone, true)
    await Promise.all(batch.map((report, i) => isUndone(answers[i]) || this.answered(report, answers[i])))
    return undone.length
  }

  // Marks reports that may have been executed: the response to a repetition is then `halt`.
  #repeat(batch, unsure) {
    for (const report of batch) report.again ||= unsure
    this.#reports.unshift(...batch)
  }
}
