// Keeps a worker registered, over lost connections and evictions.
//
// Two things tell the server that the worker is there. A held connection: its end frees the worker's jobs at once,
// when the process dies. And heartbeats of our own, which stop when the process is frozen or cut off while its
// connection stays open. While a connection is held the server beats for the worker, every third of the timeout that
// was asked for with it; therefore it is asked for with a long one, and the registration's real timeout is set after.
import { Backoff, Changing, pause } from './pace.mjs'
import { isRefused } from './transport.mjs'

// The server's beats, a third of this apart, must leave the heartbeats' absence to be seen within two timeouts.
const HELD_TIMEOUTS = 12
const MAX_TIMEOUT_MS = 3_600_000

export class Registration extends Changing {
  /** Of the registration that holds; undefined when there is none, or it was lost. */
  incarnation = undefined
  /** Whether the server is there. */
  up = false

  #transport
  #path
  #options
  #hooks
  #hold
  #stop = new AbortController()
  #nudge = new AbortController()

  /** `hooks`: online(), offline(error), lost(): jobs accepted under what was `incarnation` are not ours any more. */
  constructor(transport, { role, id, timeout, opts, backoff }, hooks) {
    super()
    this.#transport = transport
    this.#path = `/_workers/${encodeURIComponent(role)}/${encodeURIComponent(id)}`
    this.#options = { role, id, timeout, opts }
    this.#hooks = hooks
    this.backoff = new Backoff(backoff)
  }

  get worker() {
    const { role, id } = this.#options
    return { role, id, incarnation: this.incarnation }
  }

  /** Registers, and again when it must; until giveUp(). Throws what no repetition would cure. */
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
    const held = Math.min(MAX_TIMEOUT_MS, HELD_TIMEOUTS * timeout)
    const before = this.incarnation
    this.#hold = await this.#transport.hold(`${this.#path}/_hold`, { timeout: held, opts, incarnation: before }, {
      timeout: 30_000,
      signal: this.#stop.signal
    })
    const { incarnation } = this.#hold.first
    if (before !== undefined && incarnation !== before) this.#lose()
    const set = await this.#transport.request('PUT', this.#path, { timeout, opts, incarnation }, { again: true })
    if (set.incarnation !== incarnation) throw new Error(`somebody else registers as ${this.#path}`)
    if (this.#stop.signal.aborted) return
    this.incarnation = incarnation
    this.up = true
    this.#hooks.online()
    this.changed()
  }

  // Until the connection is lost, or the registration; answers why.
  async #beat() {
    const { timeout } = this.#options
    const hold = this.#hold
    let open = true
    const closed = hold.closed.then(() => (open = false))
    let heard = Date.now()
    for (;;) {
      this.#nudge = new AbortController()
      await Promise.race([pause((timeout / 3) * (1 - Math.random() / 4), this.#nudge.signal), closed])
      if (!open) return new Error('the held connection was closed')
      const { incarnation } = this
      if (incarnation === undefined) return new Error('the registration was given up')
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
        // One that fails is not the end: the connection is still held.
        if (Date.now() - heard > 2 * timeout) return error
      }
    }
  }

  /** Sends the next heartbeat now: something said that the registration does not hold. */
  check() {
    this.#nudge.abort()
  }

  /** Registers anew: the server gives all jobs of this worker to others, whatever it believes that they are. */
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

  /** Ends the registration, and with it run(). What the worker still has is pending again. */
  async giveUp() {
    const { incarnation } = this
    this.incarnation = undefined
    this.up = false
    this.#stop.abort()
    try {
      if (incarnation) await this.#transport.request('DELETE', `${this.#path}?incarnation=${incarnation}`, undefined, { timeout: 5_000 })
    } catch {
      // The connection's end says the same.
    }
    this.#hold?.close()
    this.check()
  }
}
