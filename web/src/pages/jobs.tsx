import { useState } from 'preact/hooks'
import { encode, request } from '../api'
import { attempt, Card, Crumbs, Empty, Field, Filter, FormDialog, Head, Loaded, number, Opens, State, Table, Tabs, tell, Time } from '../components/basics'
import { JsonEditor } from '../components/json'
import { count, duration, visible } from '../format'
import { useResource } from '../resource'
import { go, href, route } from '../router'
import { T } from '../texts'

export type JobState = 'pending' | 'running' | 'finished' | 'failed' | 'cancelled'
const STATES: JobState[] = ['pending', 'running', 'finished', 'failed', 'cancelled']

interface JobType {
  type: string
  settings: Record<string, unknown> & { paused: boolean }
  counts: Record<JobState, number>
}
export interface JobTypes {
  types: JobType[]
}
interface Job {
  type: string
  id: string
  state: JobState
  priority: number
  due_at?: number
  attempt: number
  failures: number
  added_at: number
  started_at?: number
  ended_at?: number
  worker?: { role: string; id: string }
  error?: string
  progress?: unknown
  data?: unknown
  result?: unknown
  history?: { attempt: number; started_at: number; ended_at?: number; worker?: { role: string; id: string }; outcome?: string; error?: string }[]
}

// Types that the server uses itself: they cannot be changed.
const OWN = new Set(['views', 'indexes', 'st_indexes', 'triggers', 'replication'])
const jobsPath = (type: string, ...rest: string[]) => `/_jobs/${[type, ...rest].map(encode).join('/')}`
const parsed = (text: string): unknown => (text.trim() ? JSON.parse(text) : {})

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
  const types = useResource<JobTypes>('/_jobs', 1500)
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
          const users = found.filter(({ type }) => !OWN.has(type))
          const own = found.filter(({ type }) => OWN.has(type))
          return (
            <>
              {users.length > 0 ? <Table label={T.jobs.title} columns={columns}>{users.map(row)}</Table> : !filter && <Empty title={T.jobs.empty} hint={T.jobs.emptyHint} command={`curl -X PUT $D/_jobs/mail -d '{}'\ncurl -X PUT $D/_jobs/mail/welcome -d '{"data": {"to": "ann@example.com"}}'`} />}
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
  return (
    <FormDialog title={`${of.type}: ${T.jobs.settings}`} action={T.common.save} onClose={close} submit={() => attempt(async () => {
      await request('PUT', jobsPath(of.type), parsed(text))
      reload()
    }, T.jobs.savedSettings)}>
      <Field label={T.jobs.settings}><textarea autoFocus rows={16} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} /></Field>
    </FormDialog>
  )
}

function Type({ type }: { type: string }) {
  const state = (route.value.query.get('state') ?? '') as JobState | ''
  const [prefix, setPrefix] = useState('')
  const info = useResource<JobType>(jobsPath(type), 1500)
  const query = new URLSearchParams({ limit: '100', ...(state && { state }), ...(prefix && !state && { start_id: prefix }), ...(['finished', 'failed', 'cancelled'].includes(state) && { descending: 'true' }) })
  const list = useResource<{ jobs: Job[]; next?: string }>(`${jobsPath(type, '_list')}?${query}`, 2000)
  const isOwn = OWN.has(type)
  const resubmitFailed = async () => {
    let changed = 0
    for (let start: string | undefined; ; ) {
      const answer = await request<{ changed: number; done: boolean; next?: string }>('POST', jobsPath(type, '_resubmit'), { state: 'failed', ...(start && { start }) })
      changed += answer.changed
      start = answer.next
      if (answer.done || !start) break
    }
    tell(T.jobs.resubmitted(changed))
    info.reload()
  }
  return (
    <>
      <Crumbs of={[[T.jobs.title, href(['jobs'])], [type]]} />
      <Loaded of={info}>
        {(of) => (
          <>
            <Head title={<>{visible(type)} {of.settings.paused && <State name={T.jobs.paused} mood="warn" />}</>}>
              {!isOwn && (
                <>
                  <button type="button" onClick={() => void attempt(() => request('PUT', jobsPath(type), { paused: !of.settings.paused }).then(info.reload))}>{of.settings.paused ? T.jobs.resume : T.jobs.pause}</button>
                  <Opens label={T.jobs.settings}>{(close) => <TypeSettings of={of} close={close} reload={info.reload} />}</Opens>
                  {of.counts.failed > 0 && <button type="button" onClick={() => void attempt(resubmitFailed)}>{T.jobs.resubmitFailed}</button>}
                  <Opens label={T.jobs.addJob} primary isNew>{(close) => <AddJob type={type} close={close} />}</Opens>
                </>
              )}
            </Head>
            <Tabs current={state} of={[['', T.common.all, href(['jobs', type])], ...STATES.map((each): [string, string, string] => [each, `${T.jobs[each]} ${count(of.counts[each])}`, href(['jobs', type], { state: each })])]} />
          </>
        )}
      </Loaded>
      {!state && <div class="rowline"><Filter value={prefix} onChange={setPrefix} label={T.jobs.filterId} /></div>}
      <Loaded of={list}>
        {({ jobs }) => {
          const found = jobs.filter(({ id }) => state !== '' || id.startsWith(prefix))
          return found.length === 0 ? <Empty title={T.jobs.noJobs} /> : (
            <Table label={T.jobs.list} columns={[T.common.id, T.common.state, number(T.jobs.priority), number(T.jobs.attempt), T.jobs.due, T.jobs.worker, T.common.error]}>
              {found.map((job) => (
                <tr key={job.id}>
                  <td><a href={href(['jobs', type, job.id])}>{visible(job.id)}</a></td>
                  <td><State name={job.state} /></td><td class="number">{job.priority}</td><td class="number">{job.attempt}</td>
                  <td><Time ms={job.ended_at ?? job.due_at ?? job.started_at} /></td><td>{job.worker?.id}</td><td><span class="clip" title={job.error}>{job.error}</span></td>
                </tr>
              ))}
            </Table>
          )
        }}
      </Loaded>
    </>
  )
}

function OneJob({ type, id }: { type: string; id: string }) {
  const job = useResource<Job>(jobsPath(type, id), 1000)
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
      <Loaded of={job}>
        {(of) => (
          <>
            <Head title={<>{visible(id)} <State name={of.state} /></>}>
              {!OWN.has(type) && of.state !== 'running' && <button type="button" onClick={() => act('_resubmit')}>{T.jobs.resubmit}</button>}
              {(of.state === 'pending' || of.state === 'running') && <button type="button" onClick={() => act('_cancel')}>{T.jobs.cancel}</button>}
              <Opens label={T.jobs.remove} danger>{remove}</Opens>
            </Head>
            <div class="grid">
              <Card>
                <dl class="facts">
                  <dt>{T.jobs.added}</dt><dd><Time ms={of.added_at} /></dd>
                  <dt>{T.jobs.due}</dt><dd><Time ms={of.due_at} /></dd>
                  <dt>{T.jobs.priority}</dt><dd>{of.priority}</dd>
                  <dt>{T.jobs.attempt}</dt><dd>{of.attempt}</dd>
                  {of.worker && <><dt>{T.jobs.worker}</dt><dd>{of.worker.role}/{of.worker.id}</dd></>}
                  {of.error && <><dt>{T.common.error}</dt><dd>{of.error}</dd></>}
                </dl>
              </Card>
              {of.progress !== undefined && <Card title={T.jobs.progress}><pre>{json(of.progress)}</pre></Card>}
              {of.result !== undefined && <Card title={T.jobs.result}><pre>{json(of.result)}</pre></Card>}
            </div>
            <Card title={T.jobs.data}><JsonEditor label={T.jobs.data} readOnly text={json(of.data)} /></Card>
            {of.history && of.history.length > 0 && (
              <Card title={T.jobs.history}>
                <Table label={T.jobs.history} columns={[number(T.jobs.attempt), T.jobs.outcome, T.jobs.from, number(T.jobs.took), T.jobs.worker, T.common.error]}>
                  {[...of.history].reverse().map((each) => (
                    <tr key={`${each.attempt} ${each.started_at}`}>
                      <td class="number">{each.attempt}</td><td><State name={each.outcome ?? 'running'} /></td><td><Time ms={each.started_at} /></td>
                      <td class="number">{each.ended_at ? duration(each.ended_at - each.started_at) : '–'}</td><td>{each.worker?.id}</td><td>{each.error}</td>
                    </tr>
                  ))}
                </Table>
              </Card>
            )}
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

