// A list of any length: only the rows in view exist, and only the pages around them are loaded.
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Problem } from './basics'

const HEIGHT = 38
// Browsers limit the height of elements; a longer list is scrolled in proportion.
const MOST_PIXELS = 8_000_000
const PAGE = 100
const KEPT_PAGES = 30
const RETRY = 2000

/** A list that is read in pages of PAGE rows. */
export interface Source<Row> {
  /** Undefined if it is not known: the list then grows as it is read. */
  total: number | undefined
  /** What the list is of. The rows of an earlier source of the same are shown until they are read again; a list of something else begins at its top. */
  of: string
  /** Returns the rows from `start` on; at most PAGE. `near`: the last row before, of the page before, if that is loaded. */
  load: (start: number, near: Row | undefined, signal: AbortSignal) => Promise<Row[]>
}

export function Scroll<Row>({ source, children, label }: { source: Source<Row>; label: string; children: (row: Row | undefined, index: number, style: Record<string, string>) => ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 700 })
  const [error, setError] = useState<Error>()
  const [, redraw] = useState(0)
  const [attempt, setAttempt] = useState(0)
  const pages = useMemo(() => new Map<number, Row[] | null>(), [source])
  const before = useRef({ of: source.of, pages: new Map<number, Row[]>() })
  if (before.current.of !== source.of) before.current = { of: source.of, pages: new Map() }
  const at = (page: number) => pages.get(page) ?? before.current.pages.get(page)
  // Of a list of unknown length: one page more than is read, until a page is not full.
  const read = [...new Set([...before.current.pages.keys(), ...pages.keys()])].filter(at)
  const known = read.reduce((most, page) => Math.max(most, page * PAGE + at(page)!.length + (at(page)!.length === PAGE && !at(page + 1) ? PAGE : 0)), at(0) ? 0 : PAGE)
  const total = source.total ?? known
  const pixels = Math.min(total * HEIGHT, MOST_PIXELS)
  // 1, unless the list is too long for the browser.
  const ratio = pixels > view.height ? (total * HEIGHT - view.height) / (pixels - view.height) : 1
  const first = Math.max(0, Math.floor((view.top * ratio) / HEIGHT) - 4)
  const last = Math.min(total, first + Math.ceil(view.height / HEIGHT) + 9)

  useEffect(() => {
    const abort = new AbortController()
    let retry: ReturnType<typeof setTimeout> | undefined
    // A quick scroll loads nothing of what it passes.
    const timer = setTimeout(() => {
      for (let page = Math.floor(first / PAGE); page * PAGE < last; ++page) {
        if (pages.has(page)) continue
        pages.set(page, null)
        source.load(page * PAGE, pages.get(page - 1)?.at(-1), abort.signal).then(
          (rows) => {
            if (abort.signal.aborted) return
            pages.set(page, rows)
            before.current.pages.set(page, rows)
            if (rows.length < PAGE) for (const old of before.current.pages.keys()) if (old > page) before.current.pages.delete(old)
            for (const kept of [pages, before.current.pages]) for (const old of kept.keys()) if (kept.size > KEPT_PAGES && Math.abs(old - page) > 2) kept.delete(old)
            setError(undefined)
            redraw((n) => n + 1)
          },
          (failure: Error) => {
            if (abort.signal.aborted) return
            pages.delete(page)
            setError(failure)
            retry ??= setTimeout(() => setAttempt((n) => n + 1), RETRY)
          },
        )
      }
    }, 60)
    return () => {
      clearTimeout(timer)
      clearTimeout(retry)
      abort.abort()
      for (const [page, rows] of pages) if (rows === null) pages.delete(page)
    }
  }, [source, Math.floor(first / PAGE), Math.floor((last - 1) / PAGE), attempt])
  useLayoutEffect(() => void (box.current!.scrollTop = 0), [source.of])
  useEffect(() => {
    const measured = () => box.current && setView({ top: box.current.scrollTop, height: box.current.clientHeight })
    const observer = new ResizeObserver(measured)
    observer.observe(box.current!)
    return () => observer.disconnect()
  }, [])

  const rows = []
  for (let i = first; i < last; ++i) {
    const top = i * HEIGHT - view.top * ratio + view.top
    const page = Math.floor(i / PAGE)
    rows.push(children(at(page)?.[i % PAGE], i, { top: `${top}px`, height: `${HEIGHT}px` }))
  }
  return (
    <>
      {error && <Problem error={error} />}
      <div class="scroll" ref={box} tabIndex={0} role="region" aria-label={label} onScroll={(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}>
        <div class="inner" style={{ height: `${pixels}px` }}>{rows}</div>
      </div>
    </>
  )
}
