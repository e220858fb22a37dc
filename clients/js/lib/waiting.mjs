// Waiting: pauses that a signal ends, exponential backoff, and conditions.

/** Resolves after `ms`, or when the signal is aborted. */
export function pause(ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
  })
}

/** Pauses that double each time, with a jitter of up to a half, so that workers do not reconnect at the same time. */
export class Backoff {
  #failures = 0
  constructor({ min = 100, max = 30_000 } = {}) {
    this.min = min
    this.max = max
  }
  reset() {
    this.#failures = 0
  }
  pause(signal) {
    const ms = Math.min(this.max, this.min * 2 ** Math.min(this.#failures++, 40))
    return pause(ms * (1 - Math.random() / 2), signal)
  }
}

/** A condition variable: until(condition) waits for a change that makes the condition true. */
export class Condition {
  #waiting = new Set()
  changed() {
    for (const look of [...this.#waiting]) look()
  }
  until(condition) {
    return new Promise((resolve) => {
      const look = () => {
        if (!condition()) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      look()
    })
  }
}
