// Waiting for conditions. Tests do not sleep for fixed times: the limits only end tests that would hang, and
// are generous enough for sanitizer builds on a busy machine.

export const LIMIT_MS = 90_000

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Calls `condition` until it returns a truthy value, and returns that. An exception counts as "not yet". */
export async function waitFor(what, condition, { limit = LIMIT_MS } = {}) {
  const end = Date.now() + limit
  let last
  for (;;) {
    try {
      const value = await condition()
      if (value) return value
      last = undefined
    } catch (error) {
      last = error
    }
    if (Date.now() > end) {
      throw new Error(`waited ${limit} ms without success for ${what}` + (last ? `: ${last.message}` : ''))
    }
    await pause(15)
  }
}

/** The promise's value, or an error if it takes longer than the limit. */
export async function within(what, promise, limit = LIMIT_MS) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${limit} ms without success for ${what}`)), limit)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
