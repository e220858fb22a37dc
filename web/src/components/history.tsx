// Charts of what the node that serves the page has counted in the last hour.
import { encode } from '../api'
import { bytes, compact, duration } from '../format'
import { useResource } from '../resource'
import { T } from '../texts'
import { Card } from './basics'
import { Chart, type Line } from './chart'

interface History {
  interval: number
  times: number[]
  series: Record<'requests' | 'documents_written' | 'cpu_cores' | 'javascript_processes' | 'memory_bytes', number[]>
  jobs: Record<'started' | 'waited_ms' | 'ended' | 'ran_ms' | 'failed', number[]>
}

/** Null where there is nothing to divide by. */
const averages = (sums: number[], counts: number[]) => sums.map((sum, i) => (counts[i]! > 0 ? sum / counts[i]! : null))

function Charts({ type, charts }: { type?: string; charts: { title: string; lines: (history: History) => Line[]; unit?: (value: number) => string }[] }) {
  const history = useResource<History>(`/_node/_local/_history?type=${encode(type ?? '')}`, 5000)
  const { data } = history
  return (
    <div class="grid">
      {charts.map(({ title, lines, unit = compact }) => (
        <Card key={title} title={title}>
          {!data || data.times.length < 2 ? <p class="chart muted">{data && T.charts.soon}</p> : <Chart label={title} times={data.times} lines={lines(data)} unit={unit} />}
        </Card>
      ))}
    </div>
  )
}

const perSecond = ({ interval }: History, counts: number[]) => counts.map((n) => n / interval)

export function ServerCharts() {
  return <Charts charts={[
    { title: T.charts.requests, lines: ({ series }) => [{ name: T.charts.requestsLine, values: series.requests }, { name: T.charts.documents, values: series.documents_written }] },
    { title: T.charts.jobs, lines: (history) => [{ name: T.charts.ended, values: perSecond(history, history.jobs.ended) }, { name: T.charts.failed, values: perSecond(history, history.jobs.failed) }] },
  ]} />
}

export function JobCharts({ type }: { type: string }) {
  return <Charts type={type} charts={[
    { title: T.charts.jobs, lines: (history) => [{ name: T.charts.ended, values: perSecond(history, history.jobs.ended) }, { name: T.charts.failed, values: perSecond(history, history.jobs.failed) }] },
    { title: T.charts.times, unit: duration, lines: ({ jobs }) => [{ name: T.charts.waited, values: averages(jobs.waited_ms, jobs.started) }, { name: T.charts.ran, values: averages(jobs.ran_ms, jobs.ended) }] },
  ]} />
}

export function NodeCharts() {
  return <Charts charts={[
    { title: T.charts.processor, lines: ({ series }) => [{ name: T.charts.cpu, values: series.cpu_cores }, { name: T.charts.javascript, values: series.javascript_processes }] },
    { title: T.charts.memory, unit: bytes, lines: ({ series }) => [{ name: T.nodes.memory, values: series.memory_bytes }] },
  ]} />
}
