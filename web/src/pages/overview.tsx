import { useCallback, useState } from 'preact/hooks'
import { ServerCharts } from '../components/history'
import { Card, Empty, Head, Loaded, number, Problem, State, Table, Time } from '../components/basics'
import { bytes, compact, count, visible } from '../format'
import { DECLARE, gone, useWorkers, type JobTypes } from '../jobs'
import { useFeed, useResource } from '../resource'
import { href } from '../router'
import { T } from '../texts'
import type { Ken } from './indexes'
import type { Membership } from './nodes'
import type { Deliveries } from './triggers'

interface Update {
  db_name: string
  type: string
  seq: string
}
interface Shown extends Update {
  at: number
  times: number
}
const MOST_SHOWN = 12
const MOST_FOUND = 12
const LITTLE_DISK = 0.1

function Updates() {
  const [rows, setRows] = useState<Shown[]>([])
  const onRows = useCallback((more: Update[]) => {
    setRows((before) => {
      let next = before
      for (const row of more) {
        const same = next.find((each) => each.db_name === row.db_name && each.type === row.type)
        next = [{ ...row, at: Date.now(), times: (same?.times ?? 0) + 1 }, ...next.filter((each) => each !== same)].slice(0, MOST_SHOWN)
      }
      return next
    })
  }, [])
  const error = useFeed<Update>((since) => `/_db_updates?feed=continuous&heartbeat=20000&since=${since}`, onRows)
  return (
    <Card title={T.overview.updates}>
      {error && <Problem error={error} />}
      {rows.length === 0 ? (
        <p class="muted">{T.overview.waiting}</p>
      ) : (
        <ul class="list">
          {rows.map(({ db_name, type, at, times }) => (
            <li key={`${db_name} ${type}`} class="rowline spread">
              <span><a href={href(['databases', db_name])}>{db_name}</a> <State name={type} />{times > 1 && <span class="muted small"> × {count(times)}</span>}</span>
              <span class="muted small"><Time ms={at} /></span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

interface Task {
  type: string
  database?: string
  design_document?: string
  progress?: number
  /** Of replications. */
  source?: string
  target?: string
  node: string
}

function Attention({ nodes, jobs, ken, deliveries }: { nodes: Membership['nodes']; jobs: JobTypes | undefined; ken: Ken | undefined; deliveries: Deliveries | undefined }) {
  const found: { text: string; to: string }[] = []
  for (const [node, { load }] of Object.entries(nodes)) {
    const share = load ? load.disk_free_bytes / load.disk_total_bytes : 1
    if (load && share < LITTLE_DISK) found.push({ text: T.overview.fullDisk(node, bytes(load.disk_free_bytes), Math.floor(share * 100)), to: href(['nodes']) })
  }
  for (const { role, id, lost } of gone.value) found.push({ text: T.overview.lostWorker(id, role, lost.length), to: href(['workers']) })
  for (const { type, counts } of jobs?.types ?? []) {
    if (counts.failed > 0) found.push({ text: T.overview.failedJobs(type, counts.failed), to: href(['jobs', type], { state: 'failed' }) })
  }
  const design = (id: string) => id.replace('_design/', '')
  for (const { design_document, database, type, why, error = '' } of ken?.waiting ?? []) {
    if (why !== 'failed') continue
    found.push(type === 'triggers' ? { text: T.overview.failedTrigger(design(design_document), database, error), to: href(['triggers']) } : { text: T.overview.failedIndex(design(design_document), database), to: href(['indexes']) })
  }
  for (const { design_document, database, type, left_out } of ken?.left_out ?? []) {
    found.push(type === 'triggers' ? { text: T.overview.leftOutTrigger(design(design_document), database, left_out.documents), to: href(['triggers']) } : { text: T.overview.leftOut(design(design_document), database), to: href(['indexes']) })
  }
  for (const { type, last_error } of deliveries?.nodes.flatMap(({ types }) => types) ?? []) found.push({ text: T.overview.pausedDelivery(type, last_error), to: href(['triggers']) })
  const texts = new Map(found.map((each) => [each.text, each]))
  return (
    <Card title={T.overview.attention}>
      {texts.size === 0 ? <p class="muted">{jobs && ken && deliveries ? T.overview.calm : T.common.loading}</p> : <ul class="list">{[...texts.values()].slice(0, MOST_FOUND).map(({ text, to }) => <li key={text}><a class="notice" style={{ display: 'block' }} href={to}>{visible(text)}</a></li>)}{texts.size > MOST_FOUND && <li class="muted">{T.common.more(texts.size - MOST_FOUND)}</li>}</ul>}
    </Card>
  )
}

export function Overview() {
  const members = useResource<Membership>('/_membership', 2000)
  const jobs = useResource<JobTypes>('/_jobs', 2000)
  const ken = useResource<Ken>('/_ken', 2000)
  const deliveries = useResource<Deliveries>('/_deliver', 2000)
  const workers = useWorkers(2000)
  const tasks = useResource<Task[]>('/_active_tasks', 2000)
  const nodes = Object.entries(members.data?.nodes ?? {})
  const requests = nodes.reduce((sum, [, node]) => sum + (node.load?.requests_per_second ?? 0), 0)
  const memory = nodes.reduce((sum, [, node]) => sum + (node.load?.memory_bytes ?? 0), 0)
  const failed = [members, jobs, ken, deliveries, workers].find(({ error }) => error)?.error
  const sum = (state: 'pending' | 'running') => jobs.data?.types.reduce((all, { counts }) => all + counts[state], 0) ?? 0
  return (
    <>
      <Head title={T.overview.title} />
      {failed && <Problem error={failed} />}
      <div class="tiles">
        <div class="tile"><b>{compact(requests)}</b>{T.overview.requests}</div>
        <div class="tile"><b>{compact(sum('pending'))}</b>{T.overview.jobsPending}</div>
        <div class="tile"><b>{compact(sum('running'))}</b>{T.overview.running}</div>
        <div class="tile"><b>{nodes.length}</b>{T.overview.nodes}</div>
        <div class="tile"><b>{bytes(memory)}</b>{T.nodes.memory}</div>
      </div>
      <ServerCharts />
      <div class="grid">
        <Attention nodes={members.data?.nodes ?? {}} jobs={jobs.data} ken={ken.data} deliveries={deliveries.data} />
        <Updates />
      </div>
      <Card title={T.overview.chores}>
        <Loaded of={tasks}>
          {(all) => all.length === 0 ? <p class="muted">{T.overview.idle}</p> : (
            <Table label={T.overview.chores} columns={[T.common.type, T.indexes.database, T.indexes.index, number('%'), T.common.node]}>
              {all.map((task, i) => <tr key={i}><td>{task.type}</td><td>{task.database ?? (task.source !== undefined && task.target !== undefined && T.overview.replicates(task.source, task.target))}</td><td>{task.design_document?.replace('_design/', '')}</td><td class="number">{task.progress ?? '–'}</td><td>{task.node}</td></tr>)}
            </Table>
          )}
        </Loaded>
      </Card>
      {jobs.data?.types.every(({ own }) => own) && <Empty title={T.jobs.empty} hint={T.jobs.emptyHint} command={DECLARE} />}
    </>
  )
}
