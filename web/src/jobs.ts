// Jobs and workers, as several pages show them.
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { encode, get, getExact, ifFound, request } from './api'
import { useFeed, useResource, type Resource } from './resource'

export type JobState = 'pending' | 'running' | 'finished' | 'failed' | 'cancelled'
export const STATES: JobState[] = ['pending', 'running', 'finished', 'failed', 'cancelled']
export const ENDED: JobState[] = ['finished', 'failed', 'cancelled']

export interface JobType {
  type: string
  /** Whether the server uses it itself: such a type cannot be changed. */
  own: boolean
  settings: Record<string, unknown> & { paused: boolean }
  counts: Record<JobState, number>
}
export interface JobTypes {
  types: JobType[]
}
interface WorkerName {
  role: string
  id: string
}
export interface Attempt {
  attempt: number
  epoch: number
  started_at: number
  ended_at?: number
  worker?: WorkerName
  outcome?: string
  error?: string
}
export interface Job {
  type: string
  id: string
  state: JobState
  /** An exact number: only to be shown. */
  priority: number
  scheduled_at: number
  due_at?: number
  deadline?: number
  attempt: number
  epoch: number
  failures: number
  lost?: number
  resubmit?: boolean
  cancel?: boolean
  schedule?: { cron: string; time_zone?: string }
  added_at: number
  started_at?: number
  finished_at?: number
  worker?: WorkerName
  last_error?: string
  progress?: unknown
  data?: unknown
  result?: unknown
  history?: Attempt[]
}
export interface JobPage {
  jobs: Job[]
  next?: string
}
export interface JobEvent {
  type: string
  id: string
  state: JobState | 'removed'
  attempt: number
  outcome?: string
  worker?: WorkerName
  time: number
  /** Instead of all others: so many events were left out. */
  lagged?: number
  last_seq?: string
}

/** How to declare a type and add a job to it. */
export const DECLARE = `curl -X PUT $D/_jobs/mail -d '{}'\ncurl -X PUT $D/_jobs/mail/welcome -d '{"data": {"to": "ann@example.com"}}'`
export const jobsPath = (type: string, ...rest: string[]) => `/_jobs/${[type, ...rest].map(encode).join('/')}`

const PAUSE_MS = 500

/**
 * Follows the events of jobs, which are those of this node's own transactions: pages also poll. Calls `onChange` if some
 * match, at most twice a second.
 */
export function useJobEvents(matches: (event: JobEvent) => boolean, onChange: (events: JobEvent[]) => void): void {
  const latest = useRef(onChange)
  latest.current = onChange
  const waiting = useRef<JobEvent[]>([])
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  useFeed<JobEvent>(() => '/_jobs/_events?heartbeat=20000', (events) => {
    const found = events.filter((event) => event.lagged !== undefined || matches(event))
    if (found.length === 0) return
    waiting.current.push(...found)
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      latest.current(waiting.current.splice(0))
    }, PAUSE_MS)
  })
}

const PAGE = 1000

/** The jobs in these states whose ids begin with the prefix, in pages: reads all jobs with such ids. */
export async function* jobsWith(type: string, prefix: string, states: readonly JobState[], signal?: AbortSignal): AsyncGenerator<Job[]> {
  for (let start: string | undefined; ; ) {
    const query = new URLSearchParams({ limit: String(PAGE), ...(start === undefined ? { start_id: prefix } : { start }) })
    const { jobs, next } = await getExact<JobPage>(`${jobsPath(type, '_list')}?${query}`, signal)
    const found = jobs.filter(({ id }) => id.startsWith(prefix))
    yield found.filter(({ state }) => states.includes(state))
    if (next === undefined || found.length < jobs.length) return
    start = next
  }
}

export interface Worker {
  role: string
  id: string
  incarnation: string
  timeout: number
  /** For how long the server has waited for its next heartbeat; the server's own workers have none. */
  silence?: number
  opts: Record<string, unknown>
  /** What it runs. */
  jobs: Job[]
}
/** A registration that has ended in the last minute, while the page was open. */
export interface Gone extends Worker {
  at: number
  /** The jobs that it has lost, in their present states. */
  lost: { type: string; id: string; state: string }[]
}
/** What a worker has done since the page was opened. */
export interface Activity {
  ended: number
  at: number
}
interface Roles {
  roles: { role: string; workers: Omit<Worker, 'role' | 'jobs'>[] }[]
}

const SHOWN_MS = 60_000
// Of a worker that has gone, so many jobs are checked.
const MOST_CHECKED = 100

// What pages have seen of workers; kept when the user goes to another page.
let last: { at: number; workers: Worker[] } | undefined
let lostEvents: JobEvent[] = []
export const gone = signal<Gone[]>([])
/** The types of which more jobs run than were read. */
export const cutTypes = signal<string[]>([])
export const workerEvents = signal<{ at: number; worker: Worker; lost?: Gone['lost'] }[]>([])

interface Named {
  type: string
  id: string
}
const isSameJob = (a: Named, b: Named) => a.type === b.type && a.id === b.id
export const workerKey = ({ role, id }: WorkerName) => JSON.stringify([role, id])
const isSameWorker = (a: WorkerName | undefined, b: WorkerName) => a?.role === b.role && a.id === b.id

async function runningJobs(signal: AbortSignal): Promise<Job[]> {
  const { types } = await get<JobTypes>('/_jobs', signal)
  const running = types.filter(({ counts }) => counts.running > 0)
  const pages = await Promise.all(running.map(({ type }) => get<JobPage>(`${jobsPath(type, '_list')}?state=running&limit=${PAGE}`, signal).catch(ifFound)))
  cutTypes.value = running.filter((_, i) => pages[i]?.next !== undefined).map(({ type }) => type)
  return pages.flatMap((page) => page?.jobs ?? [])
}

/** The jobs that ran when the worker was last seen, and were lost. */
async function lostJobs(worker: Worker, signal: AbortSignal): Promise<Gone['lost']> {
  const now = await Promise.all(worker.jobs.slice(0, MOST_CHECKED).map(({ type, id, epoch }) => get<Job>(jobsPath(type, id), signal).then(({ state, history = [] }) => ({ type, id, state, isLost: history.some((each) => each.epoch === epoch && each.outcome === 'lost') })).catch(ifFound)))
  return now.flatMap((job) => (job?.isLost ? [{ type: job.type, id: job.id, state: job.state }] : []))
}

async function loadWorkers(_: string, signal: AbortSignal): Promise<Worker[]> {
  const [{ roles }, running] = await Promise.all([get<Roles>('/_workers', signal), runningJobs(signal)])
  const workers = roles.flatMap(({ role, workers }) => workers.map((worker) => ({ ...worker, role, jobs: running.filter((job) => isSameWorker(job.worker, { role, id: worker.id })) })))
  const at = Date.now()
  const before = last && at - last.at < SHOWN_MS ? last.workers : workers
  const has = (list: Worker[], { incarnation }: Worker) => list.some((each) => each.incarnation === incarnation)
  const left = before.filter((worker) => !has(workers, worker))
  const ended = await Promise.all(left.map(async (worker): Promise<Gone> => ({ ...worker, at, lost: await lostJobs(worker, signal) })))
  const all = [...ended, ...gone.value.filter((each) => at - each.at < SHOWN_MS)]
  // Events may come before or after the list that lacks the worker.
  const isOver = ({ worker, type, id, state, time }: JobEvent) => {
    const of = all.find((each) => isSameWorker(worker, each))
    if (of && !of.lost.some((job) => isSameJob(job, { type, id }))) of.lost.push({ type, id, state })
    return of !== undefined || at - time > SHOWN_MS
  }
  lostEvents = lostEvents.filter((event) => !isOver(event))
  const jobs = all.flatMap(({ lost }) => lost).slice(0, PAGE)
  if (jobs.length > 0) {
    const names = jobs.filter((job, i) => jobs.findIndex((each) => isSameJob(each, job)) === i).map(({ type, id }) => ({ type, id }))
    const { jobs: now } = await request<{ jobs: Gone['lost'] }>('POST', '/_jobs/_wait', { jobs: names, timeout: 0 }, signal)
    for (const job of jobs) job.state = now.find((each) => isSameJob(each, job))?.state ?? job.state
  }
  const events = [
    ...ended.map((worker) => ({ at, worker, lost: worker.lost })),
    ...workers.filter((worker) => !has(before, worker)).map((worker) => ({ at, worker })),
  ]
  last = { at, workers }
  gone.value = all.map((each) => ({ ...each }))
  if (events.length > 0) workerEvents.value = [...events, ...workerEvents.value].slice(0, 50)
  return workers
}

/** The registered workers and what they run; notes in `gone` and `workerEvents` who comes and goes. */
export function useWorkers(every: number): Resource<Worker[]> & { activity: Map<string, Activity> } {
  const workers = useResource('workers', every, loadWorkers)
  const activity = useRef(new Map<string, Activity>())
  useJobEvents(({ worker }) => worker !== undefined, (events) => {
    lostEvents.push(...events.filter(({ outcome }) => outcome === 'lost'))
    for (const { worker, outcome, time } of events) {
      if (!worker || outcome === 'lost') continue
      const key = workerKey(worker)
      const ended = activity.current.get(key)?.ended ?? 0
      activity.current.set(key, { ended: ended + (outcome ? 1 : 0), at: time })
    }
    workers.reload()
  })
  return { ...workers, activity: activity.current }
}
