// A worker: one registration, and for each type of jobs a lane.
import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { hostname } from 'node:os'
import { Lane } from './lane.mjs'
import { Changing, pause } from './pace.mjs'
import { Registration } from './registration.mjs'
import { Transport } from './transport.mjs'

export class Worker extends EventEmitter {
  #lanes = new Map()
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
        online: () => this.emit('online'),
        offline: (error) => this.emit('offline', error),
        lost: () => this.#eachLane((lane) => lane.haltAll('the worker lost its registration'))
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
      emit: (...event) => this.emit(...event),
      fatal: (error) => this.#fail(error)
    }
  }

  #eachLane(action) {
    return [...this.#lanes.values()].map(action)
  }

  handle(type, handler, { concurrency = 1 } = {}) {
    if (this.#running) throw new Error('handlers are declared before run()')
    if (this.#lanes.has(type)) throw new Error(`two handlers for ${type}`)
    if (!(Number.isInteger(concurrency) && concurrency > 0)) throw new TypeError('concurrency is at least 1')
    const run = (job) => this.#runHooks(0, job, handler)
    this.#lanes.set(type, new Lane(this.#context, type, run, concurrency))
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
    const accepting = this.#eachLane((lane) => lane.accept().catch(fail))
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
      await Promise.all(this.#eachLane((lane) => lane.check(since).catch(() => {}))) // the next one may succeed
    }
  }

  #fail(error) {
    this.#fault ??= error
    this.stop({ timeout: 0 })
  }

  /** Accepts nothing more, waits for what runs, gives back what takes longer than `timeout` ms, and unregisters. */
  async stop({ timeout = 30_000 } = {}) {
    this.#stopping = true
    const changed = () => [this.#registration, ...this.#lanes.values()].forEach((part) => part.changed())
    changed()
    const late = new AbortController()
    const idle = Promise.all(this.#eachLane((lane) => lane.until(() => lane.idle)))
    await Promise.race([idle, pause(timeout, late.signal)])
    late.abort()
    await Promise.all(this.#eachLane((lane) => lane.end()))
    await this.#registration.giveUp()
    this.#ended.abort()
    this.#state.changed()
    changed()
    if (this.#running) await this.#running.catch(() => {})
  }
}
