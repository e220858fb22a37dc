// Queries (Mango): their results, and how they are executed. docs/find.md
import { useState } from 'preact/hooks'
import { encode, isRawJSON, parseExact, request, requestExact } from '../api'
import { attempt, Card, Problem, State, Table } from '../components/basics'
import { useMayDesign } from '../components/designs'
import { JsonEditor } from '../components/json'
import { visible } from '../format'
import { useLatest } from '../resource'
import { href } from '../router'
import { T } from '../texts'

interface FindResult {
  docs: unknown[]
  warning?: string
  execution_stats?: { total_docs_examined: number; execution_time_ms: number }
}
type Condition = Record<string, unknown>
interface Index {
  ddoc: string | null
  name: string
  type: string
  def: { fields?: Record<string, string>[]; partial_filter_selector?: object }
}
interface Plan {
  index: Index | null
  partitioned: boolean
  selector: Condition
  opts: { sort: Record<string, string>; partition: string }
  limit: number
  skip: number
  fields: string[]
  index_candidates: { index: Index; analysis: { usable: boolean; reasons: { name: string }[] } }[]
  selector_hints: { type: string; indexable_fields: string[] }[]
  /** Of all indexes but text indexes. */
  mrargs?: { start_key: unknown; end_key: unknown; direction: 'fwd' | 'rev' }
  covering?: boolean
  /** Of text indexes. */
  query?: string
  sort?: string | string[]
}

const LAST = '<MAX>'
const RANGES = ['$gt', '$gte', '$lt', '$lte', '$beginsWith']
const columnsOf = (index: Index) => (index.def.fields ?? []).map((field) => Object.keys(field)[0]!)
const text = (value: unknown) => JSON.stringify(value)

/** The conditions that a document must all match. */
function conditionsOf(selector: Condition): Condition[] {
  return Object.entries(selector).flatMap(([name, value]) => (name === '$and' && Array.isArray(value) ? value.flatMap(conditionsOf) : [{ [name]: value }]))
}

/** The field and the operators of a condition, if it is of one field. */
function partsOf(condition: Condition): { field: string; operators: [string, unknown][] } | undefined {
  const [field, value] = Object.entries(condition)[0]!
  return field.startsWith('$') || typeof value !== 'object' || value === null || isRawJSON(value) ? undefined : { field, operators: Object.entries(value) }
}

/** The index that fits a query: fields that are equal to a value, then those of the sort, or one with a range. Undefined: none. */
function fitting(plan: Plan): { type: 'json'; fields: string[] } | { type: 'text' } | undefined {
  const needsText = plan.index_candidates.some(({ analysis }) => analysis.reasons.some(({ name }) => name === 'needs_text_search'))
  if (!needsText) {
    const parts = conditionsOf(plan.selector).flatMap((condition) => partsOf(condition) ?? []).filter(({ field }) => field !== '_id')
    const having = (names: string[]) => [...new Set(parts.filter(({ operators }) => operators.some(([name]) => names.includes(name))).map(({ field }) => field))]
    const equal = having(['$eq'])
    const ordered = Object.keys(plan.opts.sort).filter((field) => !equal.includes(field))
    const fields = [...equal, ...(ordered.length > 0 ? ordered : having(RANGES).filter((field) => !equal.includes(field)).slice(0, 1))]
    if (fields.length > 0) return { type: 'json', fields }
  }
  return needsText || plan.selector_hints.some(({ type, indexable_fields }) => type === 'text' && indexable_fields.some((field) => field !== '_id')) ? { type: 'text' } : undefined
}

/** Whether no index narrows the documents down. */
const readsAll = ({ index, mrargs }: Plan) => index?.type === 'special' && mrargs!.start_key === null && mrargs!.end_key === LAST

/** The columns whose conditions are bounds of the range that is read. */
function columnsInRange({ index, mrargs, selector }: Plan): string[] {
  if (!index || !mrargs) return []
  if (index.type === 'special') return mrargs.start_key === null && mrargs.end_key === LAST ? [] : ['_id']
  const lengthOf = (key: unknown) => (Array.isArray(key) ? key.filter((value) => value !== LAST).length : 0)
  const columns = columnsOf(index).slice(0, Math.max(lengthOf(mrargs.start_key), lengthOf(mrargs.end_key)))
  // What follows a range of values is not narrowed down.
  const isEqual = (column: string) => conditionsOf(selector).some((condition) => {
    const parts = partsOf(condition)
    return parts?.field === column && parts.operators.some(([name]) => name === '$eq')
  })
  const end = columns.findIndex((column) => !isEqual(column))
  return end < 0 ? columns : columns.slice(0, end + 1)
}

function IndexName({ database, index }: { database: string; index: Index }) {
  const design = index.ddoc?.replace(/^_design\//, '')
  const name = design && design !== index.name ? `${design}/${index.name}` : index.name
  return index.ddoc ? <a href={href(['databases', database, 'documents', index.ddoc])}>{visible(name)}</a> : <>{visible(name)}</>
}

function Conditions({ plan }: { plan: Plan }) {
  const inRange = columnsInRange(plan)
  const conditions = conditionsOf(plan.selector)
  if (conditions.length === 0) return <p class="muted">{T.query.noConditions}</p>
  return (
    <ul class="conditions">
      {conditions.map((condition, i) => {
        const parts = partsOf(condition)
        const isRange = parts && inRange.includes(parts.field) && parts.operators.every(([name]) => name === '$eq' || RANGES.includes(name))
        return <li key={i}><code>{parts ? <><b>{parts.field}</b> {parts.operators.map(([name, value]) => `${name} ${text(value)}`).join(', ')}</> : text(condition)}</code> <State name={isRange ? T.query.byRange : T.query.tested} mood={isRange ? 'good' : ''} /></li>
      })}
    </ul>
  )
}

/** The range of keys, from left to right as it is read. */
function Range({ mrargs, isAll }: { mrargs: NonNullable<Plan['mrargs']>; isAll: boolean }) {
  const key = (value: unknown, end: boolean) => (value === null || value === LAST || text(value) === '[]' || text(value) === text([LAST]) ? (end ? T.query.lastKey : T.query.firstKey) : text(value).replaceAll(text(LAST), T.query.anything))
  const backwards = mrargs.direction === 'rev'
  return (
    <div class="range">
      <span class="mono">{key(mrargs.start_key, backwards)}</span>
      <span class={`track ${isAll ? 'all' : ''}`} aria-hidden="true" />
      <span class="hidden">{T.query.to}</span>
      <span class="mono">{key(mrargs.end_key, !backwards)}</span>
      {backwards && <span class="muted small">{T.query.backwards}</span>}
    </div>
  )
}

function PlanCard({ database, plan, result, onCreated }: { database: string; plan: Plan; result: FindResult | undefined; onCreated: () => void }) {
  const { index, mrargs } = plan
  const proposal = fitting(plan)
  const mayCreate = useMayDesign(database)
  const isAll = readsAll(plan)
  const create = () => {
    const definition = proposal!.type === 'json' ? { index: { fields: proposal!.fields } } : { index: {}, type: 'text' }
    return attempt(() => request('POST', `/${encode(database)}/_index`, { ...definition, ...(plan.partitioned && { partitioned: plan.opts.partition !== '' }) }).then(onCreated), T.query.created)
  }
  const sort = Object.entries(plan.opts.sort).map(([field, direction]) => `${field} ${direction}`)
  return (
    <Card title={T.query.plan}>
      {(isAll || !index) && (
        <div class="notice rowline" role="status">
          <strong>{index ? T.query.readsAll : T.query.noIndex}</strong>
          {index && (conditionsOf(plan.selector).length === 0 ? T.query.selectsAll : T.query.readsAllHint)}
          {proposal && mayCreate && <button type="button" onClick={() => void create()}>{proposal.type === 'json' ? T.query.createJson(proposal.fields) : T.query.createText}</button>}
        </div>
      )}
      {index && (
        <ol class="plan">
          <li><h3>{T.query.read}</h3><div class="rowline"><span>{T.database.index}: <IndexName database={database} index={index} /></span><State name={T.query.types[index.type] ?? index.type} mood={isAll ? 'warn' : 'info'} />{index.def.partial_filter_selector && Object.keys(index.def.partial_filter_selector).length > 0 && <State name={T.query.partial} />}</div>
            {index.type === 'json' && <p class="muted small">{T.query.columns}: {columnsOf(index).join(', ')}</p>}
            {mrargs && <Range mrargs={mrargs} isAll={isAll} />}
            {plan.query !== undefined && <code>{plan.query}</code>}
          </li>
          <li><h3>{plan.covering ? T.query.covering : T.query.fetch}</h3>
            <Conditions plan={plan} />
            {result?.execution_stats && <p class="muted small">{T.database.examined(result.execution_stats.total_docs_examined, result.execution_stats.execution_time_ms)}</p>}
          </li>
          <li><h3>{T.query.order}</h3><p>{plan.sort !== undefined ? (Array.isArray(plan.sort) ? plan.sort.join(', ') : T.query.relevance) : sort.length > 0 ? `${sort.join(', ')}: ${T.query.orderOfIndex}` : T.query.unsorted}</p></li>
          <li><h3>{T.query.return}</h3><p>{plan.skip > 0 && `${T.query.skip(plan.skip)} `}{T.query.limit(plan.limit)} {plan.fields.length > 0 ? `${T.query.fields}: ${plan.fields.join(', ')}` : T.query.whole}</p></li>
        </ol>
      )}
      {plan.index_candidates.length > 0 && (
        <details open={!index}>
          <summary>{T.query.others(plan.index_candidates.length)}</summary>
          <Table label={T.query.others(plan.index_candidates.length)} columns={[T.indexes.index, T.common.type, T.query.columns, T.query.reason]}>
            {plan.index_candidates.map(({ index: other, analysis }, i) => <tr key={i}><td><IndexName database={database} index={other} /></td><td>{T.query.types[other.type] ?? other.type}</td><td class="mono">{other.type === 'json' ? columnsOf(other).join(', ') : '–'}</td><td>{analysis.reasons.map(({ name }) => T.query.reasons[name] ?? name).join(', ')}</td></tr>)}
          </Table>
        </details>
      )}
    </Card>
  )
}

export function Query({ name }: { name: string }) {
  const [query, setQuery] = useState('{\n  "selector": {},\n  "limit": 25\n}')
  const [result, setResult] = useState<FindResult>()
  const [plan, setPlan] = useState<Plan>()
  const [error, setError] = useState<Error>()
  const latest = useLatest()
  const run = async (finds: boolean) => {
    const isLatest = latest()
    setError(undefined)
    setResult(undefined)
    try {
      const body = { ...parseExact<object>(query), execution_stats: true }
      // A query that no index can be used for has a plan, too: it says why.
      const { exact: { selector, mrargs }, ...found } = await requestExact<Plan>('POST', `/${encode(name)}/_explain`, body)
      if (!isLatest()) return
      setPlan({ ...found, selector, ...(mrargs && { mrargs }) })
      if (!finds) return
      const { exact: { docs }, ...rest } = await requestExact<FindResult>('POST', `/${encode(name)}/_find`, body)
      if (isLatest()) setResult({ ...rest, docs })
    } catch (failure) {
      if (isLatest()) setError(failure as Error)
    }
  }
  return (
    <>
      <JsonEditor rows={8} label={T.database.selector} text={query} onChange={setQuery} />
      <div class="rowline"><button type="button" class="primary" onClick={() => void run(true)}>{T.database.run}</button><button type="button" onClick={() => void run(false)}>{T.query.explain}</button></div>
      {error && <Problem error={error} />}
      {plan && <PlanCard database={name} plan={plan} result={result} onCreated={() => void run(result !== undefined || error !== undefined)} />}
      {result?.warning && plan && !readsAll(plan) && <p class="notice">{result.warning}</p>}
      {result && <Card title={T.common.rows(result.docs.length)}><JsonEditor label={T.database.content} readOnly text={JSON.stringify(result.docs, null, 2)} /></Card>}
    </>
  )
}
