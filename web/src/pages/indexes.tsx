import { Bar, Card, Empty, Head, Loaded, number, State, Table, Time } from '../components/basics'
import { compact, count, duration } from '../format'
import { useResource } from '../resource'
import { href } from '../router'
import { T } from '../texts'

interface IndexName {
  database: string
  design_document: string
  type: string
  signature: string
}
interface Progress {
  changes_done: number
  total_changes: number
  started_on: number
  updated_on: number
}
interface Active extends IndexName {
  state: string
  behind: number
  asked_at: number
  started_at?: number
  age?: number
  worker?: { id: string }
  progress?: Progress
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

const EXAMPLE = `curl -X PUT $D/shop/_design/orders -d '{"views": {"by_day": {"map": "function (doc) { if (doc.day) emit(doc.day) }"}}}'`

function Index({ of }: { of: IndexName }) {
  return <><td><a href={href(['databases', of.database])}>{of.database}</a></td><td>{of.design_document.replace('_design/', '')} <span class="muted small">{of.type}</span></td></>
}

function ActiveRow({ of }: { of: Active }) {
  const { progress } = of
  const seconds = progress && Math.max(1, progress.updated_on - progress.started_on)
  const rate = progress && seconds ? progress.changes_done / seconds : 0
  const left = progress && rate > 0 ? ((progress.total_changes - progress.changes_done) / rate) * 1000 : undefined
  return (
    <tr>
      <Index of={of} />
      <td><State name={of.state} /></td>
      <td class="number">{count(of.behind)}</td>
      <td>{progress && <Bar label={`${of.database} ${of.design_document}`} share={progress.total_changes ? progress.changes_done / progress.total_changes : 1} />}</td>
      <td class="number">{rate ? compact(rate) : '–'}</td>
      <td class="number">{left === undefined ? '–' : duration(left)}</td>
      <td>{of.worker?.id}</td>
    </tr>
  )
}

export function Indexes() {
  const ken = useResource<Ken>('/_ken', 1000)
  return (
    <>
      <Head title={T.indexes.title} />
      <Loaded of={ken}>
        {({ active, waiting, queue, left_out, channels, builders }) => (
          <>
            <p class="muted">{T.indexes.channels(channels.used, channels.batch + channels.incremental)}{builders && `, ${T.indexes.busy(builders.busy, builders.threads)}`}</p>
            {active.length === 0 && waiting.length === 0 && left_out.length === 0 && <Empty title={T.indexes.calm} hint={T.indexes.calmHint} command={EXAMPLE} />}
            {active.length > 0 && (
              <Card title={T.indexes.building}>
                <Table label={T.indexes.building} columns={[T.indexes.database, T.indexes.index, T.common.state, number(T.triggers.behind), T.indexes.progress, number(T.indexes.rate), number(T.indexes.left), T.jobs.worker]}>
                  {active.map((each) => <ActiveRow key={`${each.database} ${each.signature}`} of={each} />)}
                </Table>
              </Card>
            )}
            {waiting.length > 0 && (
              <Card title={T.indexes.waiting}>
                <Table label={T.indexes.waiting} columns={[T.indexes.database, T.indexes.index, number(T.triggers.behind), T.common.state, T.common.error, T.triggers.retryAt]}>
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
                      <td><ul>{each.left_out.examples.slice(0, 5).map(({ id, reason }) => <li key={id}><a href={href(['databases', each.database, 'documents', id])}>{id}</a>: {reason}</li>)}</ul></td>
                    </tr>
                  ))}
                </Table>
              </Card>
            )}
            {queue.length > 0 && <Card title={T.indexes.queued}><p>{queue.slice(0, 50).join(', ')}{queue.length > 50 && ' …'}</p></Card>}
          </>
        )}
      </Loaded>
    </>
  )
}
