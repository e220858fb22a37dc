// One attempt at a job: what a handler gets, and what the worker knows of it.
import { traceOf } from './trace.mjs'

/** Why a job's signal fired. `code`: "cancel" (somebody asks it to stop), "halt" (it is not ours any more), "stop". */
export class JobAborted extends Error {
  constructor(code, message) {
    super(message)
    this.name = 'JobAborted'
    this.code = code
  }
}

/** What a handler throws to say more than that it failed: `retry: false`, never again; `delay`, again after so many ms. */
export class JobFailure extends Error {
  constructor(message, { retry, delay, cause } = {}) {
    super(message, { cause })
    this.name = 'JobFailure'
    this.retry = retry
    this.delay = delay
  }
}

/** What a handler throws to give its job back, which is no failure: it runs again after `delay` ms. */
export class JobSnooze extends Error {
  constructor(delay) {
    super(`again in ${delay} ms`)
    this.name = 'JobSnooze'
    this.delay = delay
  }
}

/** What a handler returns to change its job's data beside its result: a resubmit, or the next occurrence, runs with them. */
export class JobResult {
  constructor(result, { data } = {}) {
    this.result = result
    this.data = data
  }
}

/** What a handler returned, as members of a finish. */
export const finishOf = (returned) =>
  returned instanceof JobResult ? { result: returned.result, data: returned.data } : { result: returned }

export class Run {
  #controller
  /** Why the handler is to stop, once it is. */
  reason
  /** "running" until the handler has answered, "ending" until the server knows; "over" when there is nothing to say. */
  state = 'running'
  startedAt = Date.now()

  constructor({ type, id, lock, epoch, attempt, data }, lane) {
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
      update: (change) => lane.update(this, change),
      transact: (changes, result) => lane.transact(this, changes, result)
    }
  }

  // Most handlers never ask for it, and it costs as much as the rest of a run.
  get #signal() {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.reason) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  /** Whether the handler ended because it was asked to. */
  isAbort(error) {
    return this.reason !== undefined && (error === this.reason || error?.name === 'AbortError')
  }
  abort(code, message) {
    if (this.reason) return
    this.reason = new JobAborted(code, message)
    this.#controller?.abort(this.reason)
  }
}
