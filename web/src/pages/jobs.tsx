import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, get, getExact, parseExact, request } from '../api'
import { attempt, Bar, Card, Crumbs, Dialog, Empty, Field, Filter, FormDialog, Head, Loaded, number, Opens, Problem, State, Table, Tabs, Time } from '../components/basics'
import { JobCharts } from '../components/history'
import { JsonEditor } from '../components/json'
import { count, duration, visible } from '../format'
import { DECLARE, ENDED, jobsPath, jobsWith, STATES, useJobEvents, type Attempt, type Job, type JobPage, type JobState, type JobType, type JobTypes } from '../jobs'
import { useResource } from '../resource'
import { go, href, route } from '../router'
import { T } from '../texts'

const parsed = (text: string): unknown => (text.trim() ? parseExact(text) : {})

function NewType({ close }: { close: () => void }) {
  const [name, setName] = useState('')
  return (
    <FormDialog title={T.jobs.newType} action={T.common.create} onClose={close} submit={() => attempt(async () => {
      await request('PUT', jobsPath(name), {})
      go(['jobs', name])
    })}>
      <Field label={T.common.name}><input autoFocus required value={name} onInput={(event) => setName(event.currentTarget.value)} /></Field>
    </FormDialog>
  )
}

function Types() {
  const types = useResource<JobTypes>('/_jobs', 2000)
  useJobEvents(() => true, types.reload)
  const [filter, setFilter] = useState('')
  const row = ({ type, settings, counts }: JobType) => (
    <tr key={type}>
      <td><a href={href(['jobs', type])}>{visible(type)}</a> {settings.paused && <State name={T.jobs.paused} mood="warn" />}</td>
      {STATES.map((state) => <td key={state} class="number">{counts[state] > 0 ? <a href={href(['jobs', type], { state })}>{count(counts[state])}</a> : <span class="muted">0</span>}</td>)}
    </tr>
  )
  const columns = [T.jobs.type, ...STATES.map((state) => number(T.jobs[state]))]
  return (
    <>
      <Head title={T.jobs.title}><Filter value={filter} onChange={setFilter} /><Opens label={T.jobs.newType} primary isNew>{(close) => <NewType close={close} />}</Opens></Head>
      <Loaded of={types}>
        {({ types: all }) => {
          const found = all.filter(({ type }) => type.includes(filter))
          const users = found.filter((each) => !each.own)
          const own = found.filter((each) => each.own)
          return (
            <>
              {users.length > 0 ? <Table label={T.jobs.title} columns={columns}>{users.map(row)}</Table> : !filter && <Empty title={T.jobs.empty} hint={T.jobs.emptyHint} command={DECLARE} />}
              <Card title={T.jobs.own}><Table label={T.jobs.own} columns={columns}>{own.map(row)}</Table></Card>
            </>
          )
        }}
      </Loaded>
    </>
  )
}

function AddJob({ type, close }: { type: string; close: () => void }) {
  const [id, setId] = useState('')
  const [data, setData] = useState('{}')
  const [priority, setPriority] = useState('0')
  const [at, setAt] = useState('')
  const submit = () =>
    attempt(async () => {
      const job = { data: parsed(data), priority: Number(priority), ...(at && { scheduled_at: new Date(at).getTime() }) }
      await (id ? request('PUT', jobsPath(type, id), job) : request('POST', jobsPath(type), job))
    }, T.jobs.added_)
  return (
    <FormDialog title={T.jobs.addJob} action={T.common.add} submit={submit} onClose={close}>
      <Field label={T.jobs.idOptional}><input autoFocus value={id} onInput={(event) => setId(event.currentTarget.value)} /></Field>
      <Field label={T.jobs.data}><textarea rows={6} spellcheck={false} value={data} onInput={(event) => setData(event.currentTarget.value)} /></Field>
      <div class="rowline">
        <Field label={T.jobs.priority}><input type="number" value={priority} onInput={(event) => setPriority(event.currentTarget.value)} /></Field>
        <Field label={T.jobs.scheduledAt}><input type="datetime-local" value={at} onInput={(event) => setAt(event.currentTarget.value)} /></Field>
      </div>
    </FormDialog>
  )
}

function TypeSettings({ of, close, reload }: { of: JobType; close: () => void; reload: () => void }) {
  const [text, setText] = useState(JSON.stringify(of.settings, null, 2))
  // As the dialog began: what others change meanwhile, and is not changed here, stays.
  const [before] = useState(of.settings)
  const changes = () => {
    const next = parsed(text) as Record<string, unknown>
    return Array.isArray(next) ? next : Object.fromEntries(Object.entries(next).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])))
  }
  return (
    <FormDialog title={`${visible(of.type)}: ${T.jobs.settings}`} action={T.common.save} onClose={close} submit={() => attempt(async () => {
      await request('PUT', jobsPath(of.type), changes())
      reload()
    }, T.jobs.savedSettings)}>
      <Field label={`${T.jobs.settings} (JSON)`} hint={T.jobs.settingsHint}><textarea autoFocus rows={16} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} /></Field>
    </FormDialog>
  )
}

type BulkAction = '_resubmit' | '_cancel' | '_remove'
// The states that an action is offered for, in a list of one state; and in the list of all.
const BULK: Record<BulkAction, { states: JobState[]; ofAll: JobState[] }> = {
  _resubmit: { states: ENDED, ofAll: ['failed'] },
  _cancel: { states: ['pending', 'running'], ofAll: [] },
  _remove: { states: ENDED, ofAll: ENDED },
}
// One request changes at most so many jobs, so that the user sees progress and can stop.
const STEP = 1000
const LANES = 4
const RETRY_MS = 1000

interface Progress {
  changed: number
  refused: { id: string; reason: string }[]
  refusals: number
  /** It has ended; with the error that ended it. */
  ended?: 'all' | 'stopped' | Error
}
const MOST_REFUSALS_SHOWN = 100

/** Repeats a request that has no response: all of these may be repeated. */
async function persistent<V>(send: () => Promise<V>, signal: AbortSignal): Promise<V> {
  for (;;) {
    try {
      return await send()
    } catch (error) {
      if (signal.aborted || error instanceof ApiError) throw error
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}

/** All jobs in a state: the server changes them. */
async function changeState(type: string, action: BulkAction, state: JobState, progress: Progress, show: () => void, signal: AbortSignal): Promise<void> {
  for (let start: string | undefined; ; ) {
    const body: Record<string, unknown> = { state, limit: STEP, ...(start !== undefined && { start }) }
    const answer = await persistent(() => request<{ changed: number; done: boolean; next?: string }>('POST', jobsPath(type, action), body, signal), signal)
    progress.changed += answer.changed
    show()
    start = answer.next
    if (answer.done || start === undefined) return
  }
}

/** Those whose ids begin with the prefix: one request for each. */
async function changeFound(type: string, action: BulkAction, states: JobState[], prefix: string, progress: Progress, show: () => void, signal: AbortSignal): Promise<void> {
  for await (const page of jobsWith(type, prefix, states, signal)) {
    const lane = async () => {
      for (let job = page.shift(); job; job = page.shift()) {
        const { id } = job
        try {
          // It may have changed since the list was read.
          const { state } = await persistent(() => get<Job>(jobsPath(type, id), signal), signal)
          if (!states.includes(state)) throw new ApiError(0, 'conflict', T.jobs.hasChanged(state))
          await persistent(() => (action === '_remove' ? request('DELETE', jobsPath(type, id), undefined, signal) : request('POST', jobsPath(type, id, action), {}, signal)), signal)
          ++progress.changed
        } catch (error) {
          if (!(error instanceof ApiError)) throw error
          ++progress.refusals
          if (progress.refused.length < MOST_REFUSALS_SHOWN) progress.refused.push({ id, reason: error.message })
        }
        show()
      }
    }
    await Promise.all(Array.from({ length: LANES }, lane))
  }
}

/** Confirms a change of all jobs of the list, makes it and says how it has ended. Closing it stops the change. */
function BulkDialog({ type, action, states, prefix, counts, onChange, onClose }: {
  type: string; action: BulkAction; states: JobState[]; prefix: string; counts: Record<JobState, number>; onChange: () => void; onClose: () => void
}) {
  const [total, setTotal] = useState(() => (prefix ? 0 : states.reduce((sum, state) => sum + counts[state], 0)))
  const [isCounting, setCounting] = useState(prefix !== '')
  const [error, setError] = useState<Error>()
  const [progress, setProgress] = useState<Progress>()
  const abort = useRef<AbortController>(undefined)
  useEffect(() => {
    const controller = (abort.current = new AbortController())
    const countAll = async () => {
      for await (const page of jobsWith(type, prefix, states, controller.signal)) setTotal((n) => n + page.length)
      setCounting(false)
    }
    if (prefix) countAll().catch((failure: Error) => !controller.signal.aborted && setError(failure))
    return () => abort.current?.abort()
  }, [])
  const isRunning = useRef(false)
  const run = async () => {
    if (isRunning.current) return
    isRunning.current = true
    const { signal } = (abort.current = new AbortController())
    const now: Progress = { changed: 0, refused: [], refusals: 0 }
    setProgress(now)
    let frame = 0
    const show = () => void (frame ||= requestAnimationFrame(() => {
      frame = 0
      setProgress({ ...now })
    }))
    try {
      if (prefix) await changeFound(type, action, states, prefix, now, show, signal)
      else for (const state of states) await changeState(type, action, state, now, show, signal)
      now.ended = 'all'
    } catch (failure) {
      now.ended = signal.aborted ? 'stopped' : (failure as Error)
    }
    show()
    onChange()
  }
  const text = T.jobs.bulk[action]
  const what = T.jobs.bulkOf(total, states, visible(prefix))
  let content: ComponentChildren
  if (!progress) {
    content = (
      <form onSubmit={(event) => {
        event.preventDefault()
        void run()
      }}>
        {error ? <Problem error={error} /> : <p role="status">{isCounting ? T.jobs.counting(total) : text.confirm(what)}</p>}
        <div class="buttons"><button type="button" onClick={onClose}>{T.common.cancel}</button><button class={action === '_resubmit' ? 'primary' : 'danger'} disabled={isCounting || total === 0 || error !== undefined}>{text.action}</button></div>
      </form>
    )
  } else {
    const { changed, refused, refusals, ended } = progress
    content = (
      <>
        {!ended && <Bar share={total ? (changed + refusals) / total : 1} label={text.title} />}
        {ended instanceof Error && <Problem error={ended} />}
        <p role="status">{ended ? `${text.done(changed)}${ended === 'stopped' ? ` ${T.jobs.stopped}` : ''}${refusals ? ` ${T.jobs.refused(refusals)}` : ''}` : T.jobs.changed(changed + refusals, total)}</p>
        {ended && refused.length > 0 && <ul class="list small refused">{refused.map(({ id, reason }) => <li key={id} class="rowline"><a href={href(['jobs', type, id])}>{visible(id)}</a><span>{reason}</span></li>)}</ul>}
        <div class="buttons">{ended ? <button type="button" class="primary" onClick={onClose}>{T.common.close}</button> : <button type="button" class="danger" onClick={() => abort.current?.abort()}>{T.jobs.stop}</button>}</div>
      </>
    )
  }
  return <Dialog title={text.title} onClose={onClose}><div class="stack">{content}</div></Dialog>
}

// With a prefix and a state, so many pages are searched.
const MOST_PAGES = 20
const LISTED = 100
const MOST_LISTED = 1000

/** `path`: of the list without a prefix; it identifies the list. */
async function listJobs(path: string, signal: AbortSignal, type: string, state: JobState | '', prefix: string, limit: number): Promise<JobPage> {
  if (!prefix) return getExact<JobPage>(path, signal)
  const jobs: Job[] = []
  let pages = 0
  for await (const page of jobsWith(type, prefix, state ? [state] : STATES, signal)) {
    jobs.push(...page)
    if (jobs.length > limit || ++pages === MOST_PAGES) return { jobs: jobs.slice(0, limit), next: '' }
  }
  return { jobs }
}

const timeOf = ({ state, due_at, started_at, finished_at }: Job) => (state === 'pending' ? due_at : state === 'running' ? started_at : finished_at)

function Type({ type }: { type: string }) {
  const state = (route.value.query.get('state') ?? '') as JobState | ''
  const [prefix, setPrefix] = useState('')
  const [limit, setLimit] = useState(LISTED)
  const info = useResource<JobType>(jobsPath(type), 2000)
  const query = new URLSearchParams({ limit: String(limit), ...(state && { state }), ...(prefix && { start_id: prefix }), ...(ENDED.includes(state as JobState) && { descending: 'true' }) })
  const list = useResource(`${jobsPath(type, '_list')}?${query}`, 2000, (path, signal) => listJobs(path, signal, type, state, prefix, limit))
  useJobEvents((event) => event.type === type, () => {
    info.reload()
    list.reload()
  })
  const isOwn = info.data?.own ?? true
  const [change, setChange] = useState<{ action: BulkAction; states: JobState[]; counts: Record<JobState, number> }>()
  const bulk = ({ counts }: JobType, action: BulkAction) => {
    const { states, ofAll } = BULK[action]
    const found = (state === '' ? ofAll : states.includes(state) ? [state] : []).filter((each) => counts[each] > 0)
    return found.length > 0 && <button key={action} type="button" class={action === '_resubmit' ? '' : 'danger'} onClick={() => setChange({ action, states: found, counts })}>{state ? T.jobs.bulk[action].title : action === '_resubmit' ? T.jobs.resubmitFailed : T.jobs.removeEnded}</button>
  }
  return (
    <>
      <Crumbs of={[[T.jobs.title, href(['jobs'])], [type]]} />
      {!info.data && <Head title={type} />}
      <Loaded of={info}>
        {(of) => (
          <>
            <Head title={<>{visible(type)} {of.settings.paused && <State name={T.jobs.paused} mood="warn" />}</>}>
              {!isOwn && (
                <>
                  <button type="button" onClick={() => void attempt(() => request('PUT', jobsPath(type), { paused: !of.settings.paused }).then(info.reload))}>{of.settings.paused ? T.jobs.resume : T.jobs.pause}</button>
                  <Opens label={T.jobs.settings}>{(close) => <TypeSettings of={of} close={close} reload={info.reload} />}</Opens>
                  <Opens label={T.jobs.addJob} primary isNew>{(close) => <AddJob type={type} close={close} />}</Opens>
                </>
              )}
            </Head>
            <JobCharts type={type} />
            <Tabs current={state} of={[['', T.common.all, href(['jobs', type])], ...STATES.map((each): [string, string, string] => [each, `${T.jobs[each]} ${count(of.counts[each])}`, href(['jobs', type], { state: each })])]} />
            <div class="rowline">
              <Filter value={prefix} onChange={setPrefix} label={T.jobs.filterId} />
              {!isOwn && (['_resubmit', '_cancel', '_remove'] as const).map((action) => bulk(of, action))}
            </div>
          </>
        )}
      </Loaded>
      <Loaded of={list}>
        {({ jobs, next }) => jobs.length === 0 ? isOwn || state || prefix ? <Empty title={next === undefined ? T.jobs.noJobs : T.jobs.noneSoFar} /> : <Empty title={T.jobs.none} hint={T.jobs.noneHint} command={`curl -X PUT '$D${jobsPath(type, 'first').replaceAll("'", '%27')}' -d '{"data": {"n": 1}}'`} /> : (
          <>
            <Table label={T.jobs.list} columns={[T.common.id, T.common.state, number(T.jobs.priority), number(T.jobs.attempt), T.jobs.when, T.jobs.worker, T.common.error]}>
              {jobs.map((job) => (
                <tr key={job.id}>
                  <td><a href={href(['jobs', type, job.id])}>{visible(job.id)}</a></td>
                  <td><State name={job.state} /></td><td class="number">{JSON.stringify(job.priority)}</td><td class="number">{job.attempt}</td>
                  <td><Time ms={timeOf(job)} /></td><td>{job.worker && visible(job.worker.id)}</td><td><span class="clip" title={job.last_error}>{job.last_error}</span></td>
                </tr>
              ))}
            </Table>
            {next !== undefined && <p class="rowline muted small">{T.jobs.first(jobs.length)} {limit < MOST_LISTED && <button type="button" onClick={() => setLimit(MOST_LISTED)}>{T.jobs.more}</button>}</p>}
          </>
        )}
      </Loaded>
      {change && <BulkDialog type={type} prefix={prefix} onChange={info.reload} onClose={() => setChange(undefined)} {...change} />}
    </>
  )
}

const MOODS: Record<string, string> = { finished: 'good', failed: 'bad', lost: 'bad', cancelled: 'warn', released: 'warn', running: 'info' }

/** What has happened to a job, in order. */
function Timeline({ of }: { of: Job }) {
  const { history = [], added_at, due_at, state } = of
  const points: { key: string; name: string; ms: number; mood?: string | undefined; of?: Attempt }[] = [
    { key: 'added', name: T.jobs.added, ms: added_at },
    ...history.map((each) => ({ key: String(each.epoch), name: T.jobs.attemptNumber(each.attempt), ms: each.started_at, mood: MOODS[each.outcome ?? 'running'], of: each })),
  ]
  // A job that was added again was added after its earlier attempts.
  points.sort((a, b) => a.ms - b.ms)
  if (state === 'pending' && due_at !== undefined) points.push({ key: 'next', name: due_at > Date.now() ? T.jobs.next : T.jobs.waits, ms: due_at })
  return (
    <ol class="timeline" aria-label={T.jobs.history}>
      {points.map(({ key, name, ms, mood = '', of: attempt }) => (
        <li key={key} class={mood}>
          <div class="rowline"><strong>{name}</strong><span class="muted small"><Time ms={ms} /></span></div>
          {attempt && <div class="rowline"><State name={attempt.outcome ?? 'running'} />{attempt.ended_at !== undefined && <span>{T.jobs.after(duration(attempt.ended_at - attempt.started_at))}</span>}{attempt.worker && <span class="muted">{visible(attempt.worker.role)}/{visible(attempt.worker.id)}</span>}</div>}
          {attempt?.error && <p>{attempt.error}</p>}
        </li>
      ))}
    </ol>
  )
}

function ReleaseDialog({ of, close, reload }: { of: Job; close: () => void; reload: () => void }) {
  // Of the attempt that is shown when the dialog opens, though others may follow.
  const [{ type, id, epoch, worker }] = useState(of)
  return (
    <FormDialog title={T.jobs.release} action={T.jobs.release} onClose={close} submit={() => attempt(() => request('POST', jobsPath(type, id, '_release'), { epoch }).then(reload), T.jobs.released)}>
      <p>{T.jobs.releaseText(worker ? `${worker.role}/${worker.id}` : '')}</p>
    </FormDialog>
  )
}

function OneJob({ type, id }: { type: string; id: string }) {
  const kind = useResource<JobType>(jobsPath(type))
  const job = useResource<Job>(jobsPath(type, id), 1000, getExact)
  useJobEvents((event) => event.type === type && event.id === id, job.reload)
  const act = (action: string, body: unknown = {}) => void attempt(() => request('POST', jobsPath(type, id, action), body).then(job.reload))
  const json = (value: unknown) => JSON.stringify(value, null, 2)
  const remove = (close: () => void) => (
    <FormDialog title={T.jobs.remove} action={T.jobs.remove} danger onClose={close} submit={() => attempt(async () => {
      await request('DELETE', jobsPath(type, id))
      go(['jobs', type])
    })}><p>{T.jobs.removeText}</p></FormDialog>
  )
  return (
    <>
      <Crumbs of={[[T.jobs.title, href(['jobs'])], [type, href(['jobs', type])], [id]]} />
      {!job.data && <Head title={id} />}
      <Loaded of={job}>
        {(of) => (
          <>
            <Head title={<>{visible(id)} <State name={of.state} /></>}>
              {kind.data?.own === false && of.state !== 'running' && <button type="button" onClick={() => act('_resubmit')}>{T.jobs.resubmit}</button>}
              {(of.state === 'pending' || of.state === 'running') && <button type="button" onClick={() => act('_cancel')}>{T.jobs.cancel}</button>}
              {of.state === 'running' && <Opens label={T.jobs.release}>{(close) => <ReleaseDialog of={of} close={close} reload={job.reload} />}</Opens>}
              <Opens label={T.jobs.remove} danger>{remove}</Opens>
            </Head>
            <div class="grid">
              <Card title={T.jobs.history}><Timeline of={of} /></Card>
              <Card title={T.jobs.about}>
                <dl class="facts">
                  <dt>{T.jobs.added}</dt><dd><Time ms={of.added_at} /></dd>
                  {of.due_at !== undefined && <><dt>{T.jobs.due}</dt><dd><Time ms={of.due_at} /></dd></>}
                  {of.finished_at !== undefined && <><dt>{T.jobs.ended}</dt><dd><Time ms={of.finished_at} /></dd></>}
                  <dt>{T.jobs.priority}</dt><dd>{JSON.stringify(of.priority)}</dd>
                  <dt>{T.jobs.attempt}</dt><dd>{of.attempt}</dd>
                  <dt>{T.jobs.failures}</dt><dd>{T.jobs.failuresAndLost(of.failures, of.lost ?? 0)}</dd>
                  {of.schedule && <><dt>{T.jobs.schedule}</dt><dd>{of.schedule.cron} {of.schedule.time_zone}</dd></>}
                  {of.deadline !== undefined && <><dt>{T.jobs.deadline}</dt><dd><Time ms={of.deadline} /></dd></>}
                  {of.worker && <><dt>{T.jobs.worker}</dt><dd><a href={href(['workers'])}>{visible(of.worker.role)}/{visible(of.worker.id)}</a></dd></>}
                  {of.last_error && <><dt>{T.triggers.lastError}</dt><dd>{of.last_error}</dd></>}
                </dl>
                {of.cancel && <p class="notice">{T.jobs.stopping}</p>}
                {of.resubmit && <p class="notice">{T.jobs.again}</p>}
              </Card>
              {of.progress !== undefined && <Card title={T.jobs.progress}><pre>{json(of.progress)}</pre></Card>}
              {of.result !== undefined && <Card title={T.jobs.result}><pre>{json(of.result)}</pre></Card>}
            </div>
            <Card title={T.jobs.data}><JsonEditor label={T.jobs.data} readOnly text={json(of.data) ?? ''} /></Card>
          </>
        )}
      </Loaded>
    </>
  )
}

export function Jobs() {
  const [, type, id] = route.value.segments
  if (type === undefined) return <Types />
  return id === undefined ? <Type key={type} type={type} /> : <OneJob key={`${type} ${id}`} type={type} id={id} />
}

