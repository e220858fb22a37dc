// A list of any length: only the rows in view exist, and only the pages around them are loaded.
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Problem } from './basics'

const HEIGHT = 38
// Browsers limit the height of elements; a longer list is scrolled in proportion.
const MOST_PIXELS = 8_000_000
const PAGE = 100
const KEPT_PAGES = 30

/** A list that is read in pages of PAGE rows. */
export interface Source<Row> {
  total: number
  /** Returns the rows from `start` on; at most PAGE. `near`: the last row before, of the page before, if that is loaded. */
  load: (start: number, near: Row | undefined, signal: AbortSignal) => Promise<Row[]>
}

export function Scroll<Row>({ source, children, label }: { source: Source<Row>; label: string; children: (row: Row | undefined, index: number, style: Record<string, string>) => ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 700 })
  const [error, setError] = useState<Error>()
  const [, redraw] = useState(0)
  const pages = useMemo(() => new Map<number, Row[] | null>(), [source])
  const pixels = Math.min(source.total * HEIGHT, MOST_PIXELS)
  // 1, unless the list is too long for the browser.
  const ratio = pixels > view.height ? (source.total * HEIGHT - view.height) / (pixels - view.height) : 1
  const first = Math.max(0, Math.floor((view.top * ratio) / HEIGHT) - 4)
  const last = Math.min(source.total, first + Math.ceil(view.height / HEIGHT) + 9)

  useEffect(() => {
    const abort = new AbortController()
    // A quick scroll loads nothing of what it passes.
    const timer = setTimeout(() => {
      for (let page = Math.floor(first / PAGE); page * PAGE < last; ++page) {
        if (pages.has(page)) continue
        pages.set(page, null)
        source.load(page * PAGE, pages.get(page - 1)?.at(-1), abort.signal).then(
          (rows) => {
            pages.set(page, rows)
            for (const old of pages.keys()) if (pages.size > KEPT_PAGES && Math.abs(old - page) > 2) pages.delete(old)
            setError(undefined)
            redraw((n) => n + 1)
          },
          (failure: Error) => {
            pages.delete(page)
            if (!abort.signal.aborted) setError(failure)
          },
        )
      }
    }, 60)
    return () => {
      clearTimeout(timer)
      abort.abort()
      for (const [page, rows] of pages) if (rows === null) pages.delete(page)
    }
  }, [source, Math.floor(first / PAGE), Math.floor(last / PAGE)])
  useEffect(() => {
    const measured = () => box.current && setView({ top: box.current.scrollTop, height: box.current.clientHeight })
    measured()
    addEventListener('resize', measured)
    return () => removeEventListener('resize', measured)
  }, [])

  const rows = []
  for (let i = first; i < last; ++i) {
    const top = i * HEIGHT - view.top * ratio + view.top
    rows.push(children(pages.get(Math.floor(i / PAGE))?.[i % PAGE], i, { top: `${top}px`, height: `${HEIGHT}px` }))
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
