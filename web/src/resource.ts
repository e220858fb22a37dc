// Data of the server that a page shows and keeps up to date.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { follow, get, waiting } from './api'

export interface Resource<T> {
  /** The last response; undefined before the first. */
  data: T | undefined
  /** Of the last request, if it has failed. */
  error: Error | undefined
  /** Requests it again: at once, or as soon as the present request has ended. */
  reload: () => void
}

const LONGEST_PAUSE = 10_000
// A notice is shown if a response takes longer.
const LATE = 5000
// Of feeds, between two renderings: after one of many rows the long one.
const SHORT_PAUSE = 100
const LONG_PAUSE = 500
const MANY_ROWS = 20

/**
 * Requests `path`, and again `every` milliseconds after each response while the page is visible. Null: nothing. `load`: for data
 * that takes several requests.
 */
export function useResource<T>(path: string | null, every = 0, load: (path: string, signal: AbortSignal) => Promise<T> = get): Resource<T> {
  const [state, setState] = useState<{ path: string | null; data?: T; error?: Error }>({ path: null })
  const again = useRef(() => {})
  useEffect(() => {
    if (path === null) return
    const abort = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    let failures = 0
    let isBusy = false
    let isStale = false
    let isDue = false
    const next = async () => {
      isDue = false
      isStale = isBusy
      if (isBusy) return
      clearTimeout(timer)
      isBusy = true
      let late = 0
      const lateTimer = setTimeout(() => (waiting.value += late = 1), LATE)
      try {
        const data = await load(path, abort.signal)
        if (abort.signal.aborted) return
        failures = 0
        setState({ path, data })
      } catch (error) {
        if (abort.signal.aborted) return
        ++failures
        setState((before) => ({ path, error: error as Error, ...(before.path === path && before.data !== undefined && { data: before.data }) }))
      } finally {
        isBusy = false
        clearTimeout(lateTimer)
        waiting.value -= late
      }
      if (isStale) return tick()
      if (every === 0 && failures === 0) return
      timer = setTimeout(tick, Math.max(every, failures && Math.min(LONGEST_PAUSE, 500 * 2 ** failures)))
    }
    // A hidden page sends no requests.
    const tick = () => (document.hidden ? void (isDue = true) : void next())
    const onVisible = () => {
      if (!document.hidden && isDue) void next()
    }
    document.addEventListener('visibilitychange', onVisible)
    again.current = tick
    void next()
    return () => {
      again.current = () => {}
      abort.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onVisible)
    }
  }, [path, every])
  const reload = useCallback(() => again.current(), [])
  const isCurrent = state.path === path
  return { data: isCurrent ? state.data : undefined, error: isCurrent ? state.error : undefined, reload }
}

/** For requests that the user makes one after another: `latest()` returns whether there was no later call, and the page was not left. */
export function useLatest(): () => () => boolean {
  const calls = useRef(0)
  useEffect(() => () => void ++calls.current, [])
  return useCallback(() => {
    const call = ++calls.current
    return () => call === calls.current
  }, [])
}

/**
 * Follows a continuous feed: `path(since)`, and again from the last row's `seq` when it has ended. `onRows` gets what has
 * arrived, ten times a second, and twice while many do. Returns the error while the feed cannot be read.
 */
export function useFeed<T extends { seq?: string; last_seq?: string }>(
  path: ((since: string) => string) | null,
  onRows: (rows: T[]) => void,
  start = 'now',
): Error | undefined {
  const latest = useRef({ onRows, path })
  latest.current = { onRows, path }
  const key = path?.('')
  const [error, setError] = useState<Error>()
  useEffect(() => {
    if (key === undefined) return
    const abort = new AbortController()
    let since = start
    let rows: T[] = []
    let pause = SHORT_PAUSE
    let timer: ReturnType<typeof setTimeout> | undefined
    const flush = () => {
      timer = undefined
      const some = rows
      rows = []
      pause = some.length > MANY_ROWS ? LONG_PAUSE : SHORT_PAUSE
      latest.current.onRows(some)
    }
    const run = async () => {
      for (let failures = 0; !abort.signal.aborted; ) {
        try {
          await follow<T>(latest.current.path!(since), () => {
            failures = 0
            setError(undefined)
          }, (row) => {
            since = row.seq ?? row.last_seq ?? since
            if (row.last_seq !== undefined) return
            rows.push(row)
            timer ??= setTimeout(flush, pause)
          }, abort.signal)
        } catch (failure) {
          if (abort.signal.aborted) return
          setError(failure as Error)
          ++failures
        }
        await new Promise((resolve) => setTimeout(resolve, Math.min(LONGEST_PAUSE, 300 * 2 ** failures)))
      }
    }
    void run()
    return () => {
      abort.abort()
      clearTimeout(timer)
      setError(undefined)
    }
  }, [key, start])
  return error
}
