// Outcomes of the runs of a handler, until the server has confirmed them.
import { Batches, isComplete } from './batches.mjs'
import { JobFailure, finishOf } from './run.mjs'
import { DivanError } from './transport.mjs'
import { pathOf } from './wire.mjs'

export class Outbox {
  #finishes
  #fails
  #releases

  /** `link`: {request, pause, changed(), halt(run), failed(run, error), fatal(error)} of the worker. */
  constructor(link) {
    this.link = link
    this.#finishes = new Batches('_finish', link, {
      answered: (report, answer) => this.#finished(report, answer),
      refused: (run, error) => this.fail(run, error)
    })
    this.#fails = new Batches('_fail', link, {
      answered: ({ run }, answer) => (answer?.error ? link.halt(run) : (run.state = 'over')),
      refused: (run) => link.halt(run)
    })
    this.#releases = new Batches('_release', link, {
      answered: ({ run }, answer) => (answer?.error ? link.halt(run) : (run.state = 'over')),
      refused: (run, error) => this.fail(run, error)
    })
  }

  /** The number of ended runs that the server has not confirmed. */
  get size() {
    return this.#finishes.size + this.#fails.size + this.#releases.size
  }

  /**
   * Takes the finishes that wait, if they are few, as JSON for another request: {json, isComplete(answers), settle(answers),
   * giveBack(error)}; undefined: none.
   */
  takeFinishes(most) {
    const batch = this.#finishes.take(most)
    if (batch.length === 0) return undefined
    return {
      json: `[${batch.map(({ run, text }) => `{"type":${JSON.stringify(run.type)},${text.slice(1)}`)}]`,
      isComplete: (answers) => isComplete(answers, batch),
      settle: (answers) => this.#finishes.settle(batch, answers),
      giveBack: (error) => this.#finishes.giveBack(batch, error)
    }
  }

  finish(run, returned) {
    run.state = 'ending'
    let text
    try {
      text = JSON.stringify({ id: run.id, lock: run.lock, ...finishOf(returned) })
    } catch (error) {
      return this.fail(run, error)
    }
    this.#finishes.push(run, text)
  }

  fail(run, error) {
    run.state = 'ending'
    this.link.failed(run, error)
    const { retry, delay } = error instanceof JobFailure ? error : {}
    this.#fails.push(run, JSON.stringify({ id: run.id, lock: run.lock, error: String(error?.message ?? error), retry, delay }))
  }

  snooze(run, { delay }) {
    run.state = 'ending'
    this.#releases.push(run, JSON.stringify({ id: run.id, lock: run.lock, delay }))
  }

  async #finished({ run, again }, answer) {
    if (!answer?.error) run.state = 'over'
    else if (answer.error !== 'halt') this.fail(run, new DivanError(409, answer.error, answer.reason))
    else if (again && (await this.#wasOurs(run))) run.state = 'over'
    else this.link.halt(run)
  }

  // The epoch identifies our attempt. The job itself may be pending again, or run elsewhere.
  async #wasOurs({ type, id, epoch }) {
    try {
      const { history } = await this.link.request('GET', `${pathOf(type)}/${encodeURIComponent(id)}`)
      const { outcome } = history.find((attempt) => attempt.epoch === epoch) ?? {}
      return outcome === 'finished' || outcome === 'cancelled'
    } catch {
      return false
    }
  }
}
