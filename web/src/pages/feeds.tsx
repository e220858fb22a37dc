import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { encode } from '../api'
import { Empty, Field, Head, Problem } from '../components/basics'
import { clip, visible } from '../format'
import { useFeed, useResource } from '../resource'
import { isAdmin } from '../session'
import { T } from '../texts'

interface Row {
  seq?: string
  last_seq?: string
}
const MOST_ROWS = 500

export function Feeds() {
  const [feed, setFeed] = useState<'updates' | 'changes' | 'events'>(isAdmin() ? 'updates' : 'changes')
  const [name, setName] = useState('')
  const [start, setStart] = useState('now')
  const [path, setPath] = useState<string | null>(null)
  const [rows, setRows] = useState<{ key: number; text: string }[]>([])
  const [rate, setRate] = useState(0)
  const count = useRef({ key: 0, times: [] as [number, number][] })
  const names = useResource<string[]>(feed === 'changes' ? '/_all_dbs' : null)
  const measure = (more: number) => {
    const now = performance.now()
    count.current.times = [...count.current.times.filter(([at]) => now - at < 2000), ...(more > 0 ? [[now, more] as [number, number]] : [])]
    setRate(count.current.times.reduce((sum, [, n]) => sum + n, 0) / 2)
  }
  // Also while no rows come.
  useEffect(() => {
    if (path === null) return
    const timer = setInterval(() => measure(0), 1000)
    return () => clearInterval(timer)
  }, [path])
  const onRows = useCallback((more: Row[]) => {
    const state = count.current
    measure(more.length)
    // Of many rows only the last ones are shown.
    const shown = more.slice(-MOST_ROWS).map((row) => ({ key: ++state.key, text: visible(clip(JSON.stringify(row), 4000)) }))
    setRows((before) => [...shown.reverse(), ...before].slice(0, MOST_ROWS))
  }, [])
  // Past events of channels are not stored.
  const error = useFeed<Row>(path === null ? null : (since) => `${path}?feed=continuous&heartbeat=20000${feed === 'events' ? '' : `&since=${since}`}`, onRows, start)
  const pathOf = () => (feed === 'updates' ? '/_db_updates' : feed === 'changes' ? `/${encode(name || 'shop')}/_changes` : `/_events/${(name || 'orders/paid').split('/').map(encode).join('/')}`)
  const follow = () => {
    setRows([])
    setPath(pathOf())
  }
  return (
    <>
      <Head title={T.feeds.title} />
      <form class="rowline" onSubmit={(event) => {
        event.preventDefault()
        path === null ? follow() : setPath(null)
      }}>
        <Field label={T.feeds.feed}>
          <select value={feed} disabled={path !== null} onChange={(event) => setFeed(event.currentTarget.value as typeof feed)}>
            {(['updates', 'changes', 'events'] as const).map((each) => <option key={each} value={each}>{T.feeds[each]}</option>)}
          </select>
        </Field>
        {feed !== 'updates' && (
          <Field label={feed === 'changes' ? T.feeds.database : T.feeds.channel}>
            <input required list="names" value={name} disabled={path !== null} onInput={(event) => setName(event.currentTarget.value)} />
            <datalist id="names">{names.data?.slice(0, 1000).map((each) => <option key={each} value={each} />)}</datalist>
          </Field>
        )}
        {feed !== 'events' && (
          <Field label={T.feeds.from}>
            <select value={start} disabled={path !== null} onChange={(event) => setStart(event.currentTarget.value)}>
              <option value="now">{T.feeds.now}</option><option value="0">{T.feeds.beginning}</option>
            </select>
          </Field>
        )}
        <button class="primary">{path === null ? T.feeds.start : T.feeds.stop}</button>
        <button type="button" onClick={() => setRows([])}>{T.feeds.clear}</button>
        {path !== null && <span class="muted">{T.feeds.rate(rate)}</span>}
      </form>
      {error && <Problem error={error} />}
      {rows.length === 0 ? path === null ? <Empty title={T.feeds.empty} hint={T.feeds.hint} command={`curl -N '$D${pathOf().replaceAll("'", '%27')}?feed=continuous${feed === 'events' ? '' : `&since=${start}`}'`} /> : <Empty title={T.feeds.empty} /> : <div class="card"><div class="log" tabIndex={0} role="log" aria-label={T.feeds.title}>{rows.map(({ key, text }) => <div key={key}>{text}</div>)}</div></div>}
    </>
  )
}
