import { encode, request } from '../api'
import { attempt, Bar, Card, Empty, FormDialog, Head, Loaded, number, Opens, State, Table, Time } from '../components/basics'
import { count, duration, visible } from '../format'
import { cutTypes, gone, useWorkers, workerEvents, workerKey, type Activity, type Gone, type Worker } from '../jobs'
import { href } from '../router'
import { T } from '../texts'

const MOST_SHOWN = 10

function JobLinks({ of, withState = false }: { of: { type: string; id: string; state: string }[]; withState?: boolean }) {
  return (
    <ul class="list small">
      {of.slice(0, MOST_SHOWN).map(({ type, id, state }) => <li key={`${type} ${id}`} class="rowline"><a href={href(['jobs', type, id])}>{visible(type)}/{visible(id)}</a>{withState && <State name={state} />}</li>)}
      {of.length > MOST_SHOWN && <li class="muted">{T.workers.more(of.length - MOST_SHOWN)}</li>}
    </ul>
  )
}

/** How long its oldest job has run. */
const busyFor = (jobs: Worker['jobs']) => Date.now() - Math.min(...jobs.map(({ started_at }) => started_at ?? Date.now()))

function EndRegistration({ of, close, reload }: { of: Worker; close: () => void; reload: () => void }) {
  const { role, id, incarnation, jobs } = of
  return (
    <FormDialog title={T.workers.end} action={T.workers.end} danger onClose={close} submit={() => attempt(async () => {
      await request('DELETE', `/_workers/${encode(role)}/${encode(id)}?incarnation=${encode(incarnation)}`)
      reload()
    }, T.workers.endedText(visible(id)))}><p>{T.workers.endText(visible(id), jobs.length)}</p></FormDialog>
  )
}

function WorkerTable({ label, isOwn = false, workers, left = [], activity, reload }: { label: string; /** Whether they are the server's: these cannot be ended. */ isOwn?: boolean; workers: Worker[]; left?: Gone[]; activity: Map<string, Activity>; reload: () => void }) {
  return (
    <Table label={label} columns={[T.workers.role, T.common.id, T.common.state, T.workers.runs, number(T.workers.ended), T.workers.lastReport, T.workers.silence, ...(isOwn ? [] : [''])]}>
      {left.map(({ role, id, incarnation, at, lost }) => (
        <tr key={incarnation} class="lost">
          <td>{visible(role)}</td><td>{visible(id)}</td><td><div class="rowline"><State name={lost.length > 0 ? T.workers.lost : T.workers.gone} mood={lost.length > 0 ? 'bad' : 'warn'} /><span class="muted small"><Time ms={at} /></span></div></td>
          <td colSpan={isOwn ? 4 : 5}>{lost.length > 0 && <><span class="small">{T.workers.cameBack}</span><JobLinks of={lost} withState /></>}</td>
        </tr>
      ))}
      {workers.map((worker) => {
        const { role, id, incarnation, timeout, silence, opts, jobs } = worker
        const done = activity.get(workerKey(worker))
        return (
          <tr key={incarnation}>
            <td>{visible(role)}</td><td>{visible(id)}{Object.keys(opts).length > 0 && <span class="clip small muted" title={JSON.stringify(opts)}>{JSON.stringify(opts)}</span>}</td>
            <td>{jobs.length > 0 ? <><State name={T.workers.running(jobs.length)} mood="info" /><br /><span class="muted small nowrap">{T.workers.busyFor(duration(busyFor(jobs)))}</span></> : <State name={T.workers.idle} />}</td>
            <td><JobLinks of={jobs} /></td><td class="number">{count(done?.ended ?? 0)}</td><td><Time ms={done?.at} /></td><td>{silence === undefined ? <span class="muted">{T.workers.timesOut(duration(timeout))}</span> : <div class="barline"><Bar label={T.workers.silenceOf(id)} share={silence / timeout} isLate={silence > timeout / 2} /><span>{T.workers.silent(duration(silence), duration(timeout))}</span></div>}</td>
            {!isOwn && <td><Opens label={T.workers.end} danger>{(close) => <EndRegistration of={worker} close={close} reload={reload} />}</Opens></td>}
          </tr>
        )
      })}
    </Table>
  )
}

export function Workers() {
  const workers = useWorkers(1000)
  const isOwn = ({ role }: { role: string }) => role.startsWith('_')
  const common = { activity: workers.activity, reload: workers.reload }
  return (
    <>
      <Head title={T.workers.title} />
      <p class="muted small">{T.workers.since}</p>
      {cutTypes.value.length > 0 && <p class="muted small">{T.workers.cut(cutTypes.value.map(visible).join(', '))}</p>}
      <Loaded of={workers}>
        {(all) => {
          const own = all.filter(isOwn)
          const users = all.filter((worker) => !isOwn(worker))
          const left = gone.value.filter((worker) => !isOwn(worker))
          return (
            <>
              {users.length + left.length > 0 ? <WorkerTable label={T.workers.title} workers={users} left={left} {...common} /> : <Empty title={T.workers.empty} hint={T.workers.emptyHint} command={'curl -X PUT $D/_workers/mailer/host-1 -d \'{"timeout": 60000}\'\ncurl -X POST $D/_jobs/mail/_accept -H "Content-Type: application/json" -d \'{"worker": {"role": "mailer", "id": "host-1"}, "timeout": 30000}\''} />}
              {workerEvents.value.length > 0 && (
                <Card title={T.workers.events}>
                  <ul class="list">{workerEvents.value.map(({ at, worker: { id, role, incarnation }, lost }) => (
                    <li key={`${incarnation} ${lost !== undefined}`} class="rowline">
                      <Time ms={at} /><State name={lost?.length ? T.workers.lost : lost ? T.workers.gone : T.workers.joined} mood={lost?.length ? 'bad' : lost ? 'warn' : 'good'} />
                      {lost?.length ? T.overview.lostWorker(visible(id), visible(role), lost.length) : lost ? T.workers.leftText(visible(id), visible(role)) : T.workers.joinedText(visible(id), visible(role))}
                    </li>
                  ))}</ul>
                </Card>
              )}
              {own.length > 0 && <Card title={T.workers.own}><WorkerTable label={T.workers.own} isOwn workers={own} left={gone.value.filter(isOwn)} {...common} /></Card>}
            </>
          )
        }}
      </Loaded>
    </>
  )
}
