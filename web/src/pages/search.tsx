// Full-text indexes: queries and their results. docs/search.md
import { useState } from 'preact/hooks'
import { requestExact } from '../api'
import { Empty, Field, Loaded, Problem } from '../components/basics'
import { type DesignFunction, FunctionSelect, IndexState, Sample, useFunctions } from '../components/designs'
import { visible } from '../format'
import { useLatest } from '../resource'
import { href } from '../router'
import { T } from '../texts'

interface Found {
  total_rows: number
  bookmark: string
  rows: { id: string; order: unknown[]; fields: Record<string, unknown>; highlights?: Record<string, string[]> }[]
}
const LIMIT = 25
const MOST_FIELDS = 20
// Around what matches: characters without a meaning, so that all of the text is shown as text.
const [OPEN, CLOSE] = ['\ue000', '\ue001']

const SAMPLE = {
  indexes: { words: { index: 'function (doc) { for (const name in doc) if (name[0] !== "_" && typeof doc[name] === "string") { index("default", doc[name]); index(name, doc[name], {store: true}); } }' } },
}

function Marked({ text }: { text: string }) {
  return <>{text.split(OPEN).map((part, i) => {
    const [marked, rest] = i === 0 ? [undefined, part] : part.split(CLOSE)
    return <span key={i}>{marked !== undefined && <mark>{marked}</mark>}{rest}</span>
  })}</>
}

interface Shown {
  found: Found
  /** Of this page: the query, and the bookmarks that it and the pages before begin after. */
  query: object
  bookmarks: (string | undefined)[]
}

function Index({ database, index, partitioned }: { database: string; index: DesignFunction; partitioned: boolean }) {
  const [query, setQuery] = useState('*:*')
  const [partition, setPartition] = useState('')
  const [highlights, setHighlights] = useState(false)
  const [shown, setShown] = useState<Shown>()
  const [error, setError] = useState<Error>()
  const latest = useLatest()
  const run = async (parameters: object, bookmarks: Shown['bookmarks']) => {
    const isLatest = latest()
    setError(undefined)
    try {
      const body = { ...parameters, limit: LIMIT, ...(bookmarks.at(-1) && { bookmark: bookmarks.at(-1) }) }
      let found = await requestExact<Found>('POST', index.path, body)
      // Only fields that the index stores have highlights; results say which these are.
      const fields = [...new Set(found.rows.flatMap((row) => Object.keys(row.fields)))].slice(0, MOST_FIELDS)
      if (highlights && fields.length > 0) found = await requestExact<Found>('POST', index.path, { ...body, highlight_fields: fields, highlight_pre_tag: OPEN, highlight_post_tag: CLOSE, highlight_number: 3 })
      const rows = found.rows.map((row, i) => ({ ...row, fields: found.exact.rows[i]!.fields }))
      if (isLatest()) setShown({ found: { ...found, rows }, query: parameters, bookmarks })
    } catch (failure) {
      if (!isLatest()) return
      setShown(undefined)
      setError(failure as Error)
    }
  }
  const first = ((shown?.bookmarks.length ?? 1) - 1) * LIMIT
  return (
    <>
      <form class="rowline" onSubmit={(event) => {
        event.preventDefault()
        void run({ q: query, ...(partition && { partition }) }, [undefined])
      }}>
        <label class="field grow"><span>{T.search.query}</span><input type="search" class="mono" data-filter required value={query} onInput={(event) => setQuery(event.currentTarget.value)} /></label>
        {partitioned && <Field label={T.search.partition}><input value={partition} onInput={(event) => setPartition(event.currentTarget.value)} /></Field>}
        <label class="check"><input type="checkbox" checked={highlights} onChange={(event) => setHighlights(event.currentTarget.checked)} />{T.search.highlights}</label>
        <button class="primary">{T.search.search}</button>
      </form>
      <p class="muted small">{T.search.syntax} <code>word</code>, <code>field:word</code>, <code>"a phrase"</code>, <code>wor*</code>, <code>word~</code>, <code>n:[1 TO 5]</code>, <code>a AND (b OR c)</code>, <code>*:*</code></p>
      <IndexState of={index} />
      {error && <Problem error={error} />}
      {shown && (shown.found.rows.length === 0 && first === 0 ? <Empty title={T.search.nothing} /> : (
        <>
          <p role="status">{T.search.range(first + Math.min(1, shown.found.rows.length), first + shown.found.rows.length, shown.found.total_rows)}</p>
          <ol class="results" start={first + 1}>
            {shown.found.rows.map(({ id, order, fields, highlights: parts = {} }) => (
              <li key={id} class="card">
                <div class="rowline spread"><a href={href(['databases', database, 'documents', id])}>{visible(id)}</a>{typeof order[0] === 'number' && <span class="muted small">{T.search.score} {order[0].toPrecision(4)}</span>}</div>
                {Object.keys(fields).length > 0 && (
                  <dl class="facts">{Object.entries(fields).map(([name, value]) => [<dt key={`n${name}`}>{visible(name)}</dt>, <dd key={`v${name}`}>{parts[name]?.length ? parts[name].map((part, i) => <p key={i}><Marked text={part} /></p>) : typeof value === 'string' ? value : JSON.stringify(value)}</dd>])}</dl>
                )}
              </li>
            ))}
          </ol>
          <div class="rowline">
            <button type="button" disabled={first === 0} onClick={() => void run(shown.query, shown.bookmarks.slice(0, -1))}>{T.common.previous}</button>
            <button type="button" disabled={first + shown.found.rows.length >= shown.found.total_rows} onClick={() => void run(shown.query, [...shown.bookmarks, shown.found.bookmark])}>{T.common.next}</button>
          </div>
        </>
      ))}
    </>
  )
}

export function Search({ name, partitioned }: { name: string; partitioned: boolean }) {
  const indexes = useFunctions(name, 'indexes')
  const [chosen, setChosen] = useState<string>()
  return (
    <Loaded of={indexes}>
      {(all) => {
        const index = all.find(({ path }) => path === chosen) ?? all[0]
        if (!index) return <Sample database={name} title={T.search.none} hint={T.search.noneHint} id="_design/search" design={SAMPLE} onCreated={indexes.reload} />
        return (
          <>
            <div class="rowline"><FunctionSelect label={T.search.index} of={all} value={index} onChange={setChosen} /></div>
            <Index key={index.path} database={name} index={index} partitioned={partitioned} />
          </>
        )
      }}
    </Loaded>
  )
}
