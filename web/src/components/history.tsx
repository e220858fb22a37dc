// Charts of what the node that serves the page has counted in the last hour.
import { useMemo } from 'preact/hooks'
import { encode } from '../api'
import { bytes, compact, duration } from '../format'
import { useResource } from '../resource'
import { T } from '../texts'
import { Card, Problem } from './basics'
import { Chart, type Line } from './chart'

interface History {
  interval: number
  times: number[]
  series: Record<'requests' | 'documents_written' | 'cpu_cores' | 'javascript_processes' | 'memory_bytes', number[]>
  jobs_of: string | null
  jobs: Record<'started' | 'waited_ms' | 'ended' | 'ran_ms' | 'failed', number[]>
}

/** Null where there is nothing to divide by. */
const averages = (sums: number[], counts: number[]) => sums.map((sum, i) => (counts[i]! > 0 ? sum / counts[i]! : null))

interface Definition {
  title: string
  lines: (history: History) => Line[]
  unit?: (value: number) => string
}

function Charts({ type = '', charts }: { type?: string; charts: Definition[] }) {
  const { data, error } = useResource<History>(`/_node/_local/_history?type=${encode(type)}`, 5000)
  // A chart is only drawn again if there is more to draw.
  const lines = useMemo(() => data && charts.map((chart) => chart.lines(data)), [data])
  return (
    <>
      {error && <Problem error={error} />}
      {type && data && data.jobs_of !== type && <p class="muted small">{T.charts.others}</p>}
      <div class="grid">
        {charts.map(({ title, unit = compact }, i) => (
          <Card key={title} title={title}>
            {!data || data.times.length < 2 ? <p class="chart muted">{data && T.charts.soon}</p> : <Chart label={title} times={data.times} lines={lines![i]!} unit={unit} />}
          </Card>
        ))}
      </div>
    </>
  )
}

// A sample of a busy process may be late.
const perSecond = ({ interval, times }: History, counts: number[]) => counts.map((n, i) => n / (i > 0 ? Math.max(times[i]! - times[i - 1]!, 0.001) : interval))

const REQUESTS: Definition = { title: T.charts.requests, lines: ({ series }) => [{ name: T.charts.requestsLine, values: series.requests }, { name: T.charts.documents, values: series.documents_written }] }
const ATTEMPTS: Definition = { title: T.charts.jobs, lines: (history) => [{ name: T.charts.ended, values: perSecond(history, history.jobs.ended) }, { name: T.charts.failed, values: perSecond(history, history.jobs.failed) }] }
const TIMES: Definition = { title: T.charts.times, unit: duration, lines: ({ jobs }) => [{ name: T.charts.waited, values: averages(jobs.waited_ms, jobs.started) }, { name: T.charts.ran, values: averages(jobs.ran_ms, jobs.ended) }] }
const PROCESSOR: Definition = { title: T.charts.processor, lines: ({ series }) => [{ name: T.charts.cpu, values: series.cpu_cores }, { name: T.charts.javascript, values: series.javascript_processes }] }
const MEMORY: Definition = { title: T.charts.memory, unit: bytes, lines: ({ series }) => [{ name: T.nodes.memory, values: series.memory_bytes }] }

export const ServerCharts = () => <Charts charts={[REQUESTS, ATTEMPTS]} />
export const JobCharts = ({ type }: { type: string }) => <Charts type={type} charts={[ATTEMPTS, TIMES]} />
export const NodeCharts = () => <Charts charts={[PROCESSOR, MEMORY]} />
