// Keeps a worker registered across lost connections and evictions.
//
// The server detects a dead worker in two ways. When the process dies, its held connection closes, which ends
// its registration at once: its jobs are pending again. When it is frozen or cut off while the connection
// stays open, its heartbeats stop.
import { Backoff, Condition, pause } from './waiting.mjs'
import { isRefused } from './transport.mjs'

export class Registration extends Condition {
  /** That of the current registration; undefined if there is none. */
  incarnation = undefined
  /** Whether the server is reachable. */
  up = false

  #transport
  #path
  #options
  #hooks
  #hold
  #stop = new AbortController()
  #wake = new AbortController()

  /**
   * `hooks`: online(), offline(error), lost(): the worker has lost the jobs accepted under the previous `incarnation`,
   * halted(attempt): the server has ended an attempt.
   */
  constructor(transport, { role, id, timeout, opts, backoff }, hooks) {
    super()
    this.#transport = transport
    this.#path = `/_workers/${encodeURIComponent(role)}/${encodeURIComponent(id)}`
    this.#options = { role, id, timeout, opts }
    this.#hooks = hooks
    // A worker that reconnects within its timeout keeps its jobs.
    this.backoff = new Backoff({ ...backoff, max: Math.min(backoff?.max ?? 30_000, timeout / 2) })
  }

  get worker() {
    const { role, id } = this.#options
    return { role, id, incarnation: this.incarnation }
  }

  /** Registers, again if necessary, until unregister(). Throws errors for which a retry is useless. */
  async run() {
    while (!this.#stop.signal.aborted) {
      let why
      try {
        await this.#register()
        if (!this.#stop.signal.aborted) why = await this.#beat()
      } catch (error) {
        why = error
        if (isRefused(error) || [400, 404].includes(error.status)) throw error
      } finally {
        this.#down(why)
      }
      await this.backoff.pause(this.#stop.signal)
    }
  }

  async #register() {
    const { timeout, opts } = this.#options
    const before = this.incarnation
    const registration = { timeout, opts, incarnation: before }
    const wait = { timeout: 30_000, signal: this.#stop.signal, heard: ({ halt }) => halt && this.#hooks.halted(halt) }
    this.#hold = await this.#transport.hold(`${this.#path}/_hold`, registration, wait)
    const { incarnation } = this.#hold.first
    if (before !== undefined && incarnation !== before) this.#lose()
    if (this.#stop.signal.aborted) return
    this.incarnation = incarnation
    this.up = true
    this.#hooks.online()
    this.changed()
  }

  // Resolves when the connection or the registration is lost, with the reason.
  async #beat() {
    const { timeout } = this.#options
    const hold = this.#hold
    let end
    const closed = hold.closed.then((error) => (end = error))
    let heard = Date.now()
    for (;;) {
      this.#wake = new AbortController()
      await Promise.race([pause((timeout / 3) * (1 - Math.random() / 4), this.#wake.signal), closed])
      if (end) {
        if (end.error === 'halt') this.#lose()
        return new Error(end.reason ?? 'the held connection was closed')
      }
      const { incarnation } = this
      if (incarnation === undefined) return new Error('the registration was abandoned')
      try {
        await this.#transport.request('POST', `${this.#path}/_heartbeat`, { incarnation }, { timeout, again: true })
        heard = Date.now()
        this.backoff.reset()
      } catch (error) {
        if (isRefused(error)) throw error
        if (error.status === 409) {
          this.#lose()
          return error
        }
        // A failed heartbeat is tolerated while the connection is held.
        if (Date.now() - heard > timeout) return error
      }
    }
  }

  /** Sends the next heartbeat now, to check a registration that may be lost. */
  check() {
    this.#wake.abort()
  }

  /** Registers again: the server reclaims all jobs that it has assigned to this worker. */
  async renew() {
    const { incarnation } = this
    if (incarnation === undefined) return
    try {
      await this.#transport.request('DELETE', `${this.#path}?incarnation=${incarnation}`, undefined, { again: true })
    } catch (error) {
      if (error.status !== 404) throw error
    }
    if (this.incarnation !== incarnation) return
    this.#lose()
    this.check()
  }

  #lose() {
    this.incarnation = undefined
    this.up = false
    this.#hooks.lost()
  }

  #down(why) {
    this.#hold?.close()
    this.#hold = undefined
    this.up = false
    if (!this.#stop.signal.aborted) this.#hooks.offline(why)
  }

  /** Ends the registration and run(). The worker's remaining jobs are pending again. */
  async unregister() {
    const { incarnation } = this
    this.incarnation = undefined
    this.up = false
    this.#stop.abort()
    try {
      if (incarnation) await this.#transport.request('DELETE', `${this.#path}?incarnation=${incarnation}`, undefined, { timeout: 5_000 })
    } catch {
      // The end of the connection has the same effect.
    }
    this.#hold?.close()
    this.check()
  }
}
