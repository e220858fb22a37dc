import { useCallback, useMemo, useState } from 'preact/hooks'
import { ApiError, encode, get, getExact, parseExact, request } from '../api'
import { attempt, Card, Crumbs, Empty, Field, Filter, FormDialog, Head, Loaded, Opens, Problem, State, Table, Tabs } from '../components/basics'
import { FunctionSelect, Sample, useFunctions } from '../components/designs'
import { Scroll, type Source } from '../components/scroll'
import { bytes, clip, count, visible } from '../format'
import { useFeed, useLatest, useResource } from '../resource'
import { go, href, route } from '../router'
import { isAdmin, isAdminOf, type Security } from '../session'
import { T } from '../texts'
import type { DatabaseInfo } from './databases'
import { Document } from './document'
import { SpatialMap } from './map'
import { Query } from './query'
import { Search } from './search'

interface Row {
  id: string
  key: unknown
  value: unknown
  doc?: unknown
}
interface Rows {
  total_rows?: number
  rows: Row[]
}
const PAGE = 100

/** Rows of _all_docs or a view, which are read by key, from the last row of the page before if it is known. */
function sourceOf(path: string, total: number | undefined, query: Record<string, string>): Source<Row> {
  return {
    total,
    of: `${path} ${JSON.stringify(query)}`,
    load: async (start, near, signal) => {
      const params = new URLSearchParams({ ...query, limit: String(PAGE) })
      if (near) {
        params.set('startkey', JSON.stringify(near.key))
        params.set('startkey_docid', near.id)
        params.set('skip', '1')
      } else if (start > 0) params.set('skip', String(start))
      return (await get<Rows>(`${path}?${params}`, signal)).rows
    },
  }
}

const addDocument = (database: string) => `curl -X PUT $D/${encode(database)}/ann -d '{"name": "Ann"}'`

function Documents({ name, info }: { name: string; info: DatabaseInfo }) {
  const [from, setFrom] = useState('')
  const [designs, setDesigns] = useState(false)
  const path = `/${encode(name)}/${designs ? '_design_docs' : '_all_docs'}`
  // How many are left after the first id is not known.
  const total = designs || from ? undefined : info.doc_count
  const source = useMemo(() => sourceOf(path, total, from && !designs ? { startkey: JSON.stringify(from) } : {}), [path, total, from, info.update_seq])
  return (
    <>
      <div class="rowline">
        <Filter value={from} onChange={setFrom} label={T.database.from} />
        <label class="check"><input type="checkbox" checked={designs} onChange={(event) => setDesigns(event.currentTarget.checked)} />{T.database.design}</label>
      </div>
      {info.doc_count === 0 ? (
        <Empty title={T.database.empty} hint={T.database.emptyHint} command={addDocument(name)} />
      ) : (
        <Scroll source={source} label={T.database.documents}>
          {(row, i, style) => (row ? (
            <a key={row.id} class="line" style={style} href={href(['databases', name, 'documents', row.id])}><span class="grow">{visible(row.id)}</span><span class="mono muted">{(row.value as { rev: string }).rev.slice(0, 12)}</span></a>
          ) : <div key={`n${i}`} class="line muted" style={style}>…</div>)}
        </Scroll>
      )}
    </>
  )
}

function Changes({ name }: { name: string }) {
  const [rows, setRows] = useState<{ seq: string; id: string; changes: { rev: string }[]; deleted?: boolean }[]>([])
  const onRows = useCallback((more: typeof rows) => setRows((before) => [...more.reverse(), ...before].slice(0, 200)), [])
  const error = useFeed(useCallback((since: string) => `/${encode(name)}/_changes?feed=continuous&heartbeat=20000&since=${since}`, [name]), onRows)
  if (rows.length === 0) return error ? <Problem error={error} /> : <Empty title={T.database.live} hint={T.database.liveHint} command={addDocument(name)} />
  return (
    <>
      {error && <Problem error={error} />}
      <Table label={T.database.changes} columns={[T.database.id, T.database.rev, '', T.database.seq]}>
        {rows.map(({ seq, id, changes, deleted }) => (
          <tr key={seq}><td><a href={href(['databases', name, 'documents', id])}>{visible(id)}</a></td><td class="mono">{changes[0]?.rev.slice(0, 14)}</td><td>{deleted && <State name={T.database.deleted} mood="warn" />}</td><td class="mono muted">{seq}</td></tr>
        ))}
      </Table>
    </>
  )
}

const SAMPLE_VIEW = { views: { by_type: { map: 'function (doc) { if (doc.type) emit(doc.type); }', reduce: '_count' } } }

function Views({ name }: { name: string }) {
  const views = useFunctions(name, 'views', (language) => language !== 'query')
  const [chosen, setChosen] = useState<string>()
  const [query, setQuery] = useState({ key: '', startkey: '', endkey: '', limit: '200', level: '', reduce: false, descending: false, docs: false })
  // With the parameters of the request that has returned it.
  const [result, setResult] = useState<Rows & { limit: number; docs: boolean }>()
  const [error, setError] = useState<Error>()
  const view = views.data?.find(({ path }) => path === chosen) ?? views.data?.[0]
  const reduces = view?.definition.reduce !== undefined
  const isReduced = reduces && query.reduce
  const docs = query.docs && !isReduced
  const latest = useLatest()
  const run = async () => {
    const isLatest = latest()
    setError(undefined)
    try {
      const params = new URLSearchParams({ limit: query.limit, ...(query.descending && { descending: 'true' }), ...(docs && { include_docs: 'true' }), ...(reduces && (isReduced ? (query.level ? { group_level: query.level } : { group: 'true' }) : { reduce: 'false' })) })
      for (const key of ['key', 'startkey', 'endkey'] as const) if (query[key]) params.set(key, JSON.stringify(parseExact(query[key])))
      const found = await getExact<Rows>(`${view!.path}?${params}`)
      if (isLatest()) setResult({ ...found, limit: Number(query.limit), docs })
    } catch (failure) {
      if (!isLatest()) return
      setResult(undefined)
      setError(failure as Error)
    }
  }
  return (
    <Loaded of={views}>
      {(all) => !view ? <Sample database={name} title={T.database.noViews} hint={T.database.noViewsHint} id="_design/types" design={SAMPLE_VIEW} onCreated={views.reload} /> : (
        <>
          <form class="rowline" onSubmit={(event) => {
            event.preventDefault()
            void run()
          }}>
            <FunctionSelect label={T.database.view} of={all} value={view} onChange={(path) => (latest(), setChosen(path), setResult(undefined))} />
            <Field label={`${T.database.startKey} (JSON)`}><input class="mono" value={query.startkey} onInput={(event) => setQuery({ ...query, startkey: event.currentTarget.value })} /></Field>
            <Field label={`${T.database.endKey} (JSON)`}><input class="mono" value={query.endkey} onInput={(event) => setQuery({ ...query, endkey: event.currentTarget.value })} /></Field>
            <Field label={`${T.database.exactKey} (JSON)`}><input class="mono" value={query.key} onInput={(event) => setQuery({ ...query, key: event.currentTarget.value })} /></Field>
            <Field label={T.database.limit}><input type="number" required min={1} max={1000} value={query.limit} onInput={(event) => setQuery({ ...query, limit: event.currentTarget.value })} /></Field>
            <label class="check"><input type="checkbox" checked={query.descending} onChange={(event) => setQuery({ ...query, descending: event.currentTarget.checked })} />{T.database.descending}</label>
            {reduces && <label class="check"><input type="checkbox" checked={query.reduce} onChange={(event) => setQuery({ ...query, reduce: event.currentTarget.checked })} />{T.database.reduce}</label>}
            {isReduced ? <Field label={T.database.level}><input type="number" min={0} placeholder={T.database.everyKey} value={query.level} onInput={(event) => setQuery({ ...query, level: event.currentTarget.value })} /></Field>
              : <label class="check"><input type="checkbox" checked={query.docs} onChange={(event) => setQuery({ ...query, docs: event.currentTarget.checked })} />{T.database.includeDocs}</label>}
            <button class="primary">{T.database.run}</button>
          </form>
          {error && <Problem error={error} />}
          {result && <p role="status">{result.rows.length === result.limit ? T.database.first(result.limit) : result.total_rows === undefined ? T.common.rows(result.rows.length) : T.database.rowsOf(T.common.rows(result.rows.length), result.total_rows)}</p>}
          {result && result.rows.length > 0 && (
            <Table label={T.database.views} columns={[T.database.key, T.common.value, T.database.id, ...(result.docs ? [T.database.document] : [])]}>
              {result.rows.map((row, i) => <tr key={i}><td class="mono">{visible(clip(JSON.stringify(row.key)))}</td><td class="mono"><span class="clip">{visible(clip(JSON.stringify(row.value)))}</span></td><td>{row.id && <a href={href(['databases', name, 'documents', row.id])}>{visible(row.id)}</a>}</td>{result.docs && <td class="mono"><span class="clip">{visible(clip(JSON.stringify(row.doc)))}</span></td>}</tr>)}
            </Table>
          )}
        </>
      )}
    </Loaded>
  )
}

function Permissions({ name }: { name: string }) {
  const path = `/${encode(name)}/_security`
  const security = useResource<Security>(path)
  const [edited, setEdited] = useState<Record<string, string>>({})
  return (
    <Loaded of={security}>
      {(stored) => {
        const lines = (group: 'admins' | 'members', list: 'names' | 'roles') => edited[`${group} ${list}`] ?? (stored[group]?.[list] ?? []).join('\n')
        const values = (group: 'admins' | 'members', list: 'names' | 'roles') => lines(group, list).split('\n').map((line) => line.trim()).filter(Boolean)
        const mayChange = isAdminOf(stored)
        const save = () => {
          const next = { ...stored }
          for (const group of ['admins', 'members'] as const) next[group] = { ...stored[group], names: values(group, 'names'), roles: values(group, 'roles') }
          void attempt(() => request('PUT', path, next).then(security.reload), T.database.saved)
        }
        return (
          <>
            <div class="grid">
              {(['admins', 'members'] as const).map((group) => (
                <Card key={group} title={T.database[group]}>
                  <p class="muted small">{T.database[`${group}Hint`]}</p>
                  {(['names', 'roles'] as const).map((list) => <Field key={list} label={`${T.database[list]} (${T.database.onePerLine})`}><textarea rows={4} readOnly={!mayChange} value={lines(group, list)} onInput={(event) => setEdited({ ...edited, [`${group} ${list}`]: event.currentTarget.value })} /></Field>)}
                </Card>
              ))}
            </div>
            {mayChange ? <div><button type="button" class="primary" onClick={save}>{T.common.save}</button></div> : <p class="muted">{T.database.readOnly}</p>}
          </>
        )
      }}
    </Loaded>
  )
}

function Delete({ name, close }: { name: string; close: () => void }) {
  const [typed, setTyped] = useState('')
  const submit = () =>
    attempt(async () => {
      await request('DELETE', `/${encode(name)}`)
      go(['databases'])
    }, T.databases.deletedText(name))
  return (
    <FormDialog title={T.databases.delete} action={T.common.delete} danger disabled={typed !== name} submit={submit} onClose={close}>
      <p>{T.databases.deleteText(name)}</p>
      <Field label={T.databases.name}><input autoFocus value={typed} onInput={(event) => setTyped(event.currentTarget.value)} /></Field>
    </FormDialog>
  )
}

const TABS = ['documents', 'queries', 'search', 'map', 'views', 'changes', 'permissions'] as const

export function Database() {
  const [, name = '', tab = 'documents', id] = route.value.segments
  const info = useResource<DatabaseInfo>(`/${encode(name)}`, 3000)
  if (tab === 'documents' && id !== undefined) return <Document key={`of ${id}`} database={name} id={id} />
  if (tab === 'new') return <Document key="new" database={name} />
  const crumbs = <Crumbs of={[[T.databases.title, href(['databases'])], [name]]} />
  // It does not exist, or is not for this user.
  if (info.error instanceof ApiError && [403, 404].includes(info.error.status)) return <>{crumbs}<Head title={name} /><Problem error={info.error} /></>
  return (
    <>
      {crumbs}
      <Head title={name}>
        <a class="button" data-new="" href={href(['databases', name, 'new'])}>{T.database.newDocument}</a>
        {isAdmin() && <Opens label={T.databases.delete} danger>{(close) => <Delete name={name} close={close} />}</Opens>}
      </Head>
      <Tabs current={tab} of={TABS.map((each): [string, string, string] => [each, T.database[each], href(['databases', name, each])])} />
      <Loaded of={info}>
        {(data) => (
          <>
            <p class="muted small">{T.database.total(data.doc_count)}, {count(data.doc_del_count)} {T.databases.deleted.toLowerCase()}, {bytes(data.sizes.active)}{data.props.partitioned && `, ${T.databases.partitioned.toLowerCase()}`}</p>
            {tab === 'documents' && <Documents name={name} info={data} />}
          </>
        )}
      </Loaded>
      {tab === 'queries' && <Query name={name} />}
      {tab === 'search' && info.data && <Search name={name} partitioned={info.data.props.partitioned ?? false} />}
      {tab === 'map' && <SpatialMap name={name} />}
      {tab === 'views' && <Views name={name} />}
      {tab === 'changes' && <Changes name={name} />}
      {tab === 'permissions' && <Permissions name={name} />}
    </>
  )
}
