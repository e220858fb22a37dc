// The functions of a database's design documents that pages query: views, full-text indexes, spatial indexes.
import type { ComponentChildren } from 'preact'
import { documentPath, encode, request } from '../api'
import { attempt, Empty, Field, Problem } from './basics'
import { visible } from '../format'
import { type Resource, useResource } from '../resource'
import { isAdmin, isAdminOf, type Security } from '../session'
import { T } from '../texts'

const MEMBERS = { views: '_view', indexes: '_search', st_indexes: '_geo' } as const

interface Design {
  _id: string
  language?: string
  [member: string]: unknown
}
export interface DesignFunction {
  /** Of requests, without parameters. */
  path: string
  infoPath: string
  label: string
  definition: Record<string, unknown>
}

/** All functions of this kind. `isUsed`: of which design documents, by their language; indexes of Mango have "query". */
export function useFunctions(database: string, member: keyof typeof MEMBERS, isUsed: (language?: string) => boolean = () => true): Resource<DesignFunction[]> {
  const designs = useResource<{ rows: { doc: Design | null }[] }>(`/${encode(database)}/_design_docs?include_docs=true`)
  const data = designs.data?.rows.flatMap(({ doc }) => {
    const functions = doc?.[member]
    if (!doc || !isUsed(doc.language) || typeof functions !== 'object' || functions === null) return []
    return Object.entries(functions as Record<string, DesignFunction['definition']>).filter(([name]) => member !== 'views' || name !== 'lib').map(([name, definition]) => {
      const path = `/${documentPath(database, doc._id)}/${MEMBERS[member]}`
      return { path: `${path}/${encode(name)}`, infoPath: `${path}_info/${encode(name)}`, label: `${doc._id.slice('_design/'.length)}/${name}`, definition }
    })
  })
  return { ...designs, data }
}

/** Chooses one of them. */
export function FunctionSelect({ label, of, value, onChange }: { label: string; of: DesignFunction[]; value: DesignFunction; onChange: (path: string) => void }) {
  return <Field label={label}><select value={value.path} onChange={(event) => onChange(event.currentTarget.value)}>{of.map((each) => <option key={each.path} value={each.path}>{visible(each.label)}</option>)}</select></Field>
}

interface Info {
  search_index?: { doc_count: number }
  geo_index?: { doc_count: number }
  left_out: { documents: number; examples: { id: string; reason: string }[] }
}

/** How many documents an index has, and why some are left out. */
export function IndexState({ of }: { of: DesignFunction }) {
  const { data, error } = useResource<Info>(of.infoPath, 5000)
  if (!data) return error ? <Problem error={error} /> : null
  const { documents, examples } = data.left_out
  return (
    <p class="muted small">{T.designs.indexed((data.search_index ?? data.geo_index)?.doc_count ?? 0)}
      {documents > 0 && <> {T.designs.leftOut(documents)}{examples[0] && <> {T.designs.example} <span class="mono">{visible(examples[0].id)}</span>: {examples[0].reason}</>}</>}
    </p>
  )
}

/** Whether the user may write design documents; false until it is known. */
export function useMayDesign(database: string): boolean {
  const { data } = useResource<Security>(isAdmin() ? null : `/${encode(database)}/_security`)
  return isAdmin() || (data !== undefined && isAdminOf(data))
}

/** Says that there is no such function yet, with a design document to try. */
export function Sample({ database, title, hint, id, design, onCreated, children }: { database: string; title: string; hint: string; id: string; design: object; onCreated: () => void; children?: ComponentChildren }) {
  const path = documentPath(database, id)
  const mayCreate = useMayDesign(database)
  const create = () => attempt(() => request('PUT', path, design).then(onCreated), T.document.saved)
  // Of a shell, within quotes.
  const body = JSON.stringify(design).replaceAll("'", "'\\''")
  if (!mayCreate) return <Empty title={title} />
  return <Empty title={title} hint={hint} command={`curl -X PUT '$D/${path.replaceAll("'", '%27')}' -d '${body}'`}>{children}<button type="button" class="primary" onClick={() => void create()}>{T.designs.create}</button></Empty>
}
