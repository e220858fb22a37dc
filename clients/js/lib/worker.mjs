// A worker: one registration, and a consumer for each handler.
import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { hostname } from 'node:os'
import { Consumer } from './consumer.mjs'
import { Condition, pause } from './waiting.mjs'
import { Registration } from './registration.mjs'
import { Transport } from './transport.mjs'

const MAX_TYPES = 100 // the server's limit

export class Worker extends EventEmitter {
  #consumers = []
  #hooks = []
  #state = new Condition()
  #context
  #registration
  #stopping = false
  #ended = new AbortController()
  #running
  #fault

  constructor(url, { role, id, timeout = 15_000, opts = {}, checkInterval = 1_000, pollTimeout = 30_000, backoff } = {}) {
    super()
    if (!role) throw new TypeError('a worker needs a role')
    this.role = role
    this.id = id ?? `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`
    const transport = new Transport(url)
    this.#registration = new Registration(
      transport,
      { role, id: this.id, timeout, opts, backoff },
      {
        online: () => this.#emit('online'),
        offline: (error) => this.#emit('offline', error),
        lost: () => this.#consumers.forEach((consumer) => consumer.haltAll('the worker lost its registration')),
        halted: (attempt) => this.#consumers.forEach((consumer) => consumer.haltAttempt(attempt))
      }
    )
    const self = this
    this.#context = {
      transport,
      registration: this.#registration,
      options: { checkInterval, pollTimeout, backoff },
      get stopping() {
        return self.#stopping
      },
      ended: this.#ended.signal,
      emit: (...event) => this.#emit(...event),
      fatal: (error) => this.#fail(error)
    }
  }

  // An exception of a listener must not be handled as a failure of a request or a connection.
  #emit(...event) {
    try {
      this.emit(...event)
    } catch (error) {
      this.#fail(error)
    }
  }

  handle(given, handler, { concurrency = 1 } = {}) {
    const types = Array.isArray(given) ? given : [given]
    if (this.#running) throw new Error('handlers must be added before run()')
    if (!(types.length > 0 && types.length <= MAX_TYPES)) throw new TypeError(`a handler has ${types.length} job types; expected 1 to ${MAX_TYPES}`)
    const handled = this.#consumers.flatMap((consumer) => consumer.types)
    types.forEach((type, i) => {
      if (handled.includes(type) || types.indexOf(type) < i) throw new Error(`two handlers for ${type}`)
    })
    if (!(Number.isInteger(concurrency) && concurrency > 0)) throw new TypeError('concurrency must be an integer of at least 1')
    const run = (job) => this.#runHooks(0, job, handler)
    this.#consumers.push(new Consumer(this.#context, types, run, concurrency))
    return this
  }

  use(hook) {
    if (this.#running) throw new Error('hooks must be added before run()')
    if (typeof hook !== 'function') throw new TypeError('a hook must be a function (job, next)')
    this.#hooks.push(hook)
    return this
  }

  async #runHooks(first, job, handler) {
    if (first === this.#hooks.length) return handler(job)
    return this.#hooks[first](job, () => this.#runHooks(first + 1, job, handler))
  }

  /** Runs until stop(). */
  run() {
    return (this.#running ??= this.#run())
  }

  async #run() {
    const fail = (error) => this.#fail(error)
    const registered = this.#registration.run().catch(fail)
    const accepting = this.#consumers.map((consumer) => consumer.accept().catch(fail))
    const checking = this.#check()
    await this.#state.until(() => this.#ended.signal.aborted)
    // Wait for the loops, which end now.
    await Promise.all([registered, checking, ...accepting])
    this.#context.transport.close()
    if (this.#fault) throw this.#fault
  }

  async #check() {
    const { checkInterval } = this.#context.options
    while (!this.#ended.signal.aborted) {
      await pause(checkInterval, this.#ended.signal)
      const since = Date.now() - checkInterval
      await Promise.all(this.#consumers.map((consumer) => consumer.check(since).catch(() => {}))) // the next check may succeed
    }
  }

  #fail(error) {
    this.#fault ??= error
    this.stop({ timeout: 0 })
  }

  /**
   * Accepts no more jobs, waits for running ones, releases those that take longer than `timeout` ms, and unregisters. Reports of jobs
   * that have ended may take some seconds more.
   */
  async stop({ timeout = 30_000 } = {}) {
    this.#stopping = true
    const changed = () => [this.#registration, ...this.#consumers].forEach((part) => part.changed())
    changed()
    const late = new AbortController()
    const idle = Promise.all(this.#consumers.map((consumer) => consumer.until(() => consumer.idle)))
    await Promise.race([idle, pause(timeout, late.signal)])
    late.abort()
    await Promise.all(this.#consumers.map((consumer) => consumer.end()))
    await this.#registration.unregister()
    this.#ended.abort()
    this.#state.changed()
    changed()
    if (this.#running) await this.#running.catch(() => {})
  }
}
