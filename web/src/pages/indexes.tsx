import { useEffect, useState } from 'preact/hooks'
import { ApiError, get } from '../api'
import { Bar, Card, Empty, Filter, Head, Loaded, number, State, Table, Time } from '../components/basics'
import { allDesigns, designPath, mapAll, MOST_DATABASES } from '../designs'
import { bytes, compact, count, duration, visible } from '../format'
import { jobsPath, useJobEvents, type Job } from '../jobs'
import { useResource } from '../resource'
import { href } from '../router'
import { T } from '../texts'

interface IndexName {
  database: string
  design_document: string
  type: string
  signature: string
}
interface Active extends IndexName {
  job: string
  state: string | null
  behind: number
  asked_at: number
  worker?: { id: string }
}
/** A running build in /_active_tasks. */
interface Task {
  type: string
  pid: string
  node: string
  database: string
  design_document: string
  changes_done: number
  total_changes: number
  rate: number
}
interface Waiting extends IndexName {
  behind: number
  why: string
  reason: string
  failures?: number
  failed_at?: number
  retry_at?: number
  error?: string
}
export interface Ken {
  counts: { queue: number; active: number; waiting: number; retries: number; left_out: number }
  channels: { used: number; batch: number; incremental: number }
  queue: string[]
  active: Active[]
  waiting: Waiting[]
  left_out: (IndexName & { left_out: { documents: number; rows: number; examples: { id: string; reason: string }[] } })[]
  builders?: { threads: number; busy: number }
}

const EXAMPLE = `curl -X PUT $D/shop
curl -X PUT $D/shop/_design/orders -d '{"views": {"by_day": {"map": "function (doc) { if (doc.day) emit(doc.day) }"}}}'
curl -X PUT $D/shop/first -d '{"day": "2026-01-31"}'`

/** The cells that name an index. */
function Index({ of }: { of: { database: string; design_document: string; type: string } }) {
  return <><td><a href={href(['databases', of.database])}>{of.database}</a></td><td class="name">{visible(of.design_document.replace('_design/', ''))} <span class="muted small">{T.indexes.types[of.type] ?? of.type}</span></td></>
}

/** A build: what ken has asked for, what runs, or both. */
interface Build {
  key: string
  database: string
  design_document: string
  type: string
  state: string
  behind: number
  asked_at?: number
  task?: Task
}

function builds(active: Active[], tasks: Task[]): Build[] {
  const running = new Map(tasks.filter(({ type }) => type === 'indexer').map((task) => [`${task.pid} ${task.design_document}`, task]))
  const asked = active.map(({ job, state, ...index }): Build => {
    const key = `${job} ${index.design_document}`
    const task = running.get(key)
    running.delete(key)
    return { ...index, key: `${index.type} ${key}`, state: state ?? 'pending', ...(task && { task, behind: task.total_changes - task.changes_done }) }
  })
  // Those that queries have asked for, or other nodes.
  return [...asked, ...[...running].map(([key, task]): Build => ({ key, database: task.database, design_document: task.design_document, type: '', state: 'running', behind: task.total_changes - task.changes_done, task }))]
}

function BuildRow({ of }: { of: Build }) {
  const { task, state, behind, asked_at } = of
  const share = task && (task.total_changes ? task.changes_done / task.total_changes : 1)
  const left = task && task.rate > 0 ? ((task.total_changes - task.changes_done) / task.rate) * 1000 : undefined
  return (
    <tr>
      <Index of={of} />
      <td><State name={state} /></td>
      <td class="number">{count(behind)}</td>
      <td>{share === undefined ? state === 'pending' && asked_at !== undefined && <span class="muted small">{T.indexes.waitsForBuilder(duration(Math.max(0, Date.now() - asked_at)))}</span> : <div class="barline"><Bar label={T.indexes.progressOf(of.design_document, of.database)} share={share} /><span>{Math.floor(share * 100)} %</span></div>}</td>
      <td class="number">{task?.rate ? compact(task.rate) : '–'}</td>
      <td class="number">{left === undefined ? '–' : duration(left)}</td>
      <td>{task?.node}</td>
    </tr>
  )
}

const BUILD_TYPES = ['views', 'indexes', 'st_indexes', 'triggers']
const MOST_BUILDS = 30
interface PastBuild extends Job {
  progress?: { database?: string; design_document?: string; changes_done?: number; started_on?: number }
}

async function pastBuilds(signal: AbortSignal): Promise<PastBuild[]> {
  const lists = await Promise.all(BUILD_TYPES.flatMap((type) => ['finished', 'failed'].map((state) => get<{ jobs: PastBuild[] }>(`${jobsPath(type, '_list')}?state=${state}&descending=true&limit=${MOST_BUILDS}`, signal))))
  return lists.flatMap(({ jobs }) => jobs).sort((a, b) => (b.finished_at ?? 0) - (a.finished_at ?? 0)).slice(0, MOST_BUILDS)
}

function History() {
  const past = useResource('builds', 5000, (_, signal) => pastBuilds(signal))
  useJobEvents(({ type, outcome }) => outcome !== undefined && BUILD_TYPES.includes(type), past.reload)
  return (
    <Card title={T.indexes.history}>
      <Loaded of={past}>
        {(all) => all.length === 0 ? <p class="muted">{T.indexes.noHistory}</p> : (
          <Table label={T.indexes.history} columns={[T.indexes.database, T.indexes.index, T.common.state, T.jobs.ended, number(T.indexes.took), number(T.indexes.changes), T.jobs.worker, T.common.error, '']}>
            {all.map(({ type, id, state, started_at, finished_at, worker, last_error, progress }) => {
              // The id is the signature, a number and the database. An earlier run's progress is not this one's.
              const database = progress?.database ?? id.split(':').slice(2).join(':')
              const isOfRun = progress?.started_on !== undefined && started_at !== undefined && progress.started_on >= Math.floor(started_at / 1000)
              return (
                <tr key={`${type} ${id}`}>
                  <Index of={{ database, design_document: progress?.design_document ?? '', type }} /><td><State name={state} /></td><td><Time ms={finished_at} /></td>
                  <td class="number">{started_at && finished_at ? duration(finished_at - started_at) : '–'}</td><td class="number">{count(isOfRun ? (progress.changes_done ?? 0) : 0)}</td>
                  <td>{worker?.id}</td><td><span class="clip" title={last_error}>{last_error}</span></td><td class="nowrap"><a href={href(['jobs', type, id])}>{T.indexes.builds}</a></td>
                </tr>
              )
            })}
          </Table>
        )}
      </Loaded>
    </Card>
  )
}

/** An index of a design document, as its information says. */
interface Lag {
  database: string
  design_document: string
  type: string
  name: string
  behind: number
  bytes: number | undefined
  state: string | undefined
  error: string | undefined
}
interface Info {
  view_index?: { updates_pending: { total: number }; sizes: { file: number }; build?: { state: string; last_error?: string } }
  search_index?: { updates_pending: number; disk_size: number }
  geo_index?: { updates_pending: number; disk_size: number }
  left_out: { documents: number }
}

async function lags(signal: AbortSignal): Promise<{ found: Lag[]; isAll: boolean }> {
  const { designs, isAll } = await allDesigns(signal)
  const all = designs.flatMap((design) => [
    ...(design.body.views ? [{ design, type: 'views', names: Object.keys(design.body.views), path: designPath(design, '_info') }] : []),
    ...Object.keys(design.body.indexes ?? {}).map((name) => ({ design, type: 'indexes', names: [name], path: designPath(design, '_search_info', name) })),
    ...Object.keys(design.body.st_indexes ?? {}).map((name) => ({ design, type: 'st_indexes', names: [name], path: designPath(design, '_geo_info', name) })),
  ])
  const found = await mapAll(all, async ({ design, type, names, path }): Promise<Lag> => {
    const common = { database: design.database, design_document: design.id, type, name: names.join(', ') }
    try {
      const { view_index: views, search_index, geo_index } = await get<Info>(path, signal)
      const other = search_index ?? geo_index
      return { ...common, behind: views?.updates_pending.total ?? other?.updates_pending ?? 0, bytes: views?.sizes.file ?? other?.disk_size, state: views?.build?.state, error: views?.build?.last_error }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return { ...common, behind: 0, bytes: undefined, state: undefined, error: error.message }
    }
  })
  return { found: found.sort((a, b) => b.behind - a.behind), isAll }
}

const MOST_SHOWN = 200

/** `isBuilding`: whether something is being built, which changes the lags. */
function Lags({ isBuilding }: { isBuilding: boolean }) {
  const all = useResource('lags', 5000, (_, signal) => lags(signal))
  useEffect(all.reload, [isBuilding])
  const [filter, setFilter] = useState('')
  return (
    <Card title={T.indexes.all}>
      <Loaded of={all}>
        {({ found, isAll }) => {
          const shown = found.filter(({ database, design_document, name }) => `${database} ${design_document} ${name}`.includes(filter))
          return found.length === 0 ? <Empty title={T.indexes.none} hint={T.indexes.calmHint} command={EXAMPLE} /> : (
            <>
              {!isAll && <p class="notice">{T.triggers.some(MOST_DATABASES)}</p>}
              <div class="rowline"><Filter value={filter} onChange={setFilter} />{shown.length > MOST_SHOWN && <span class="muted">{T.indexes.first(MOST_SHOWN, shown.length)}</span>}</div>
              <Table label={T.indexes.all} columns={[T.indexes.database, T.indexes.index, T.common.name, number(T.triggers.behind), number(T.indexes.size), T.common.state, T.common.error]}>
                {shown.slice(0, MOST_SHOWN).map((each) => (
                  <tr key={`${each.database} ${each.design_document} ${each.type} ${each.name}`}>
                    <Index of={each} /><td><span class="clip" title={visible(each.name)}>{visible(each.name)}</span></td><td class="number">{each.behind > 0 ? <strong>{count(each.behind)}</strong> : <span class="muted">0</span>}</td>
                    <td class="number">{each.bytes === undefined ? '–' : bytes(each.bytes)}</td><td>{each.behind === 0 && !each.error ? <State name={T.indexes.upToDate} mood="good" /> : each.state && <State name={each.state} />}</td><td><span class="clip" title={each.error}>{each.error}</span></td>
                  </tr>
                ))}
              </Table>
            </>
          )
        }}
      </Loaded>
    </Card>
  )
}

export function Indexes() {
  const ken = useResource<Ken>('/_ken', 1000)
  const tasks = useResource<Task[]>('/_active_tasks', 1000)
  return (
    <>
      <Head title={T.indexes.title} />
      <Loaded of={ken}>
        {({ active, waiting, queue, left_out, channels, builders }) => {
          const building = builds(active, tasks.data ?? [])
          return <>
            <p class="muted">{T.indexes.channels(channels.used, channels.batch + channels.incremental)}{builders && `, ${T.indexes.busy(builders.busy, builders.threads)}`}. {building.length + waiting.length === 0 && T.indexes.calm}</p>
            {building.length > 0 && (
              <Card title={T.indexes.building}>
                <Table label={T.indexes.building} columns={[T.indexes.database, T.indexes.index, T.common.state, number(T.triggers.behind), T.indexes.progress, number(T.indexes.rate), number(T.indexes.left), T.common.node]}>
                  {building.map((each) => <BuildRow key={each.key} of={each} />)}
                </Table>
              </Card>
            )}
            {waiting.length > 0 && (
              <Card title={T.indexes.waiting}>
                <Table label={T.indexes.waiting} columns={[T.indexes.database, T.indexes.index, number(T.triggers.behind), T.indexes.reason, T.common.error, T.triggers.retryAt]}>
                  {waiting.map((each) => (
                    <tr key={`${each.database} ${each.signature}`}><Index of={each} /><td class="number">{count(each.behind)}</td><td title={each.reason}>{T.indexes.why[each.why] ?? each.reason}</td><td>{each.error}</td><td><Time ms={each.retry_at} /></td></tr>
                  ))}
                </Table>
              </Card>
            )}
            {left_out.length > 0 && (
              <Card title={T.indexes.leftOut}>
                <Table label={T.indexes.leftOut} columns={[T.indexes.database, T.indexes.index, number(T.databases.documents), T.common.error]}>
                  {left_out.map((each) => (
                    <tr key={`${each.database} ${each.signature}`}>
                      <Index of={each} /><td class="number">{count(each.left_out.documents)}</td>
                      <td><ul>{each.left_out.examples.slice(0, 5).map(({ id, reason }) => <li key={id}><a href={href(['databases', each.database, 'documents', id])}>{visible(id)}</a>: {reason}</li>)}</ul></td>
                    </tr>
                  ))}
                </Table>
              </Card>
            )}
            {queue.length > 0 && <Card title={T.indexes.queued}><p>{queue.slice(0, 50).join(', ')}{queue.length > 50 && ' …'}</p></Card>}
          </>
        }}
      </Loaded>
      <Lags isBuilding={(ken.data?.active.length ?? 0) > 0} />
      <History />
    </>
  )
}
