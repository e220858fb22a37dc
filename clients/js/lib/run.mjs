// One attempt at a job: what a handler gets, and what the worker knows of it.

/** Why a job's signal fired. `code`: "cancel" (somebody asks it to stop), "halt" (it is not ours any more), "stop". */
export class JobAborted extends Error {
  constructor(code, message) {
    super(message)
    this.name = 'JobAborted'
    this.code = code
  }
}

export class Run {
  #controller = new AbortController()
  /** "running" until the handler has answered, "ending" until the server knows; "over" when there is nothing to say. */
  state = 'running'
  startedAt = Date.now()

  constructor(type, { id, lock, epoch, attempt, data }, lane) {
    Object.assign(this, { type, id, lock, epoch })
    const { signal } = this.#controller
    this.job = {
      type,
      id,
      data,
      attempt,
      epoch,
      lock,
      signal,
      update: (change) => lane.update(this, change),
      transact: (changes, result) => lane.transact(this, changes, result)
    }
  }

  get reason() {
    return this.#controller.signal.reason
  }
  /** Whether the handler ended because it was asked to. */
  isAbort(error) {
    return this.#controller.signal.aborted && (error === this.reason || error?.name === 'AbortError')
  }
  abort(code, message) {
    if (!this.#controller.signal.aborted) this.#controller.abort(new JobAborted(code, message))
  }
}
