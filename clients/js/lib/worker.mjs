// A worker: one registration, and for each handler a lane.
import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { hostname } from 'node:os'
import { Lane } from './lane.mjs'
import { Changing, pause } from './pace.mjs'
import { Registration } from './registration.mjs'
import { Transport } from './transport.mjs'

const MAX_TYPES = 100 // the server's limit

export class Worker extends EventEmitter {
  #lanes = []
  #hooks = []
  #state = new Changing()
  #context
  #registration
  #stopping = false
  #ended = new AbortController()
  #running
  #fault

  constructor(url, { role, id, timeout = 15_000, opts = {}, checkInterval = 1_000, pollTimeout = 30_000, backoff } = {}) {
    super()
    if (!role) throw new TypeError('a worker has a role')
    this.role = role
    this.id = id ?? `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`
    const transport = new Transport(url)
    this.#registration = new Registration(
      transport,
      { role, id: this.id, timeout, opts, backoff },
      {
        online: () => this.#emit('online'),
        offline: (error) => this.#emit('offline', error),
        lost: () => this.#lanes.forEach((lane) => lane.haltAll('the worker lost its registration')),
        halted: (attempt) => this.#lanes.forEach((lane) => lane.haltAttempt(attempt))
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

  // What a listener throws must not be taken for the failure of a request or a connection.
  #emit(...event) {
    try {
      this.emit(...event)
    } catch (error) {
      this.#fail(error)
    }
  }

  handle(given, handler, { concurrency = 1 } = {}) {
    const types = Array.isArray(given) ? given : [given]
    if (this.#running) throw new Error('handlers are declared before run()')
    if (!(types.length > 0 && types.length <= MAX_TYPES)) throw new TypeError(`a handler has 1 to ${MAX_TYPES} job types, not ${types.length}`)
    const handled = this.#lanes.flatMap((lane) => lane.types)
    types.forEach((type, i) => {
      if (handled.includes(type) || types.indexOf(type) < i) throw new Error(`two handlers for ${type}`)
    })
    if (!(Number.isInteger(concurrency) && concurrency > 0)) throw new TypeError('concurrency is at least 1')
    const run = (job) => this.#runHooks(0, job, handler)
    this.#lanes.push(new Lane(this.#context, types, run, concurrency))
    return this
  }

  use(hook) {
    if (this.#running) throw new Error('hooks are declared before run()')
    if (typeof hook !== 'function') throw new TypeError('a hook is a function (job, next)')
    this.#hooks.push(hook)
    return this
  }

  async #runHooks(first, job, handler) {
    if (first === this.#hooks.length) return handler(job)
    return this.#hooks[first](job, () => this.#runHooks(first + 1, job, handler))
  }

  /** Works until stop(). */
  run() {
    return (this.#running ??= this.#run())
  }

  async #run() {
    const fail = (error) => this.#fail(error)
    const registered = this.#registration.run().catch(fail)
    const accepting = this.#lanes.map((lane) => lane.accept().catch(fail))
    const checking = this.#check()
    await this.#state.until(() => this.#ended.signal.aborted)
    // Whatever goes on does so for nobody.
    await Promise.all([registered, checking, ...accepting])
    this.#context.transport.close()
    if (this.#fault) throw this.#fault
  }

  async #check() {
    const { checkInterval } = this.#context.options
    while (!this.#ended.signal.aborted) {
      await pause(checkInterval, this.#ended.signal)
      const since = Date.now() - checkInterval
      await Promise.all(this.#lanes.map((lane) => lane.check(since).catch(() => {}))) // the next one may succeed
    }
  }

  #fail(error) {
    this.#fault ??= error
    this.stop({ timeout: 0 })
  }

  /** Accepts nothing more, waits for what runs, gives back what takes longer than `timeout` ms, and unregisters. */
  async stop({ timeout = 30_000 } = {}) {
    this.#stopping = true
    const changed = () => [this.#registration, ...this.#lanes].forEach((part) => part.changed())
    changed()
    const late = new AbortController()
    const idle = Promise.all(this.#lanes.map((lane) => lane.until(() => lane.idle)))
    await Promise.race([idle, pause(timeout, late.signal)])
    late.abort()
    await Promise.all(this.#lanes.map((lane) => lane.end()))
    await this.#registration.giveUp()
    this.#ended.abort()
    this.#state.changed()
    changed()
    if (this.#running) await this.#running.catch(() => {})
  }
}
