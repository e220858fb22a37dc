// One attempt at a job: the object passed to the handler, and the worker's state of it.
import { traceOf } from './trace.mjs'

/** The reason of a job's signal. `code`: "cancel" (a client has cancelled it), "halt" (the attempt does not own it any more), "stop". */
export class JobAborted extends Error {
  constructor(code, message) {
    super(message)
    this.name = 'JobAborted'
    this.code = code
  }
}

/** Thrown by a handler to control the retry: `retry: false`: none; `delay`: after that many ms. */
export class JobFailure extends Error {
  constructor(message, { retry, delay, cause } = {}) {
    super(message, { cause })
    this.name = 'JobFailure'
    this.retry = retry
    this.delay = delay
  }
}

/** Thrown by a handler to release its job, which does not count as a failure: it runs again after `delay` ms. */
export class JobSnooze extends Error {
  constructor(delay) {
    super(`released; runs again in ${delay} ms`)
    this.name = 'JobSnooze'
    this.delay = delay
  }
}

/** Returned by a handler to replace the job's data in addition to its result: a resubmit, or the next occurrence, runs with it. */
export class JobResult {
  constructor(result, { data } = {}) {
    this.result = result
    this.data = data
  }
}

/** A handler's return value as members of a finish. */
export const finishOf = (returned) =>
  returned instanceof JobResult ? { result: returned.result, data: returned.data } : { result: returned }

export class Run {
  #controller
  /** The reason of the signal once it has fired. */
  reason
  /**
   * "running" until the handler has returned ("transacting" during transact()), "ending" until the server has confirmed; then
   * "over".
   */
  state = 'running'
  startedAt = Date.now()

  constructor({ type, id, lock, epoch, attempt, data }, consumer) {
    Object.assign(this, { type, id, lock, epoch })
    const run = this
    this.job = {
      type,
      id,
      data,
      attempt,
      epoch,
      lock,
      get traceparent() {
        return traceOf(data)
      },
      get signal() {
        return run.#signal
      },
      update: (change) => consumer.update(this, change),
      transact: (changes, result) => consumer.transact(this, changes, result)
    }
  }

  // Created on demand: most handlers do not use it, and it costs as much as the rest of a run.
  get #signal() {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.reason) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  /** Whether the handler threw the signal's reason. */
  isAbort(error) {
    return this.reason !== undefined && (error === this.reason || error?.name === 'AbortError')
  }
  abort(code, message) {
    if (this.reason) return
    this.reason = new JobAborted(code, message)
    this.#controller?.abort(this.reason)
  }
}
