import { useState } from 'preact/hooks'
import { request } from '../api'
import { attempt, Empty, Field, FormDialog, Head, Loaded, number, Opens, State, Table, tell, Time } from '../components/basics'
import { count } from '../format'
import { useResource } from '../resource'
import { T } from '../texts'

interface Replication {
  id: string
  source: string
  target: string
  doc_id: string | null
  info: { docs_read?: number; docs_written?: number; doc_write_failures?: number; changes_pending?: number | null; error?: string } | null
  history: { timestamp: string; type: string; reason?: string }[]
  start_time: string
}

function New({ close, reload }: { close: () => void; reload: () => void }) {
  const [source, setSource] = useState('')
  const [target, setTarget] = useState('')
  const [continuous, setContinuous] = useState(true)
  const [create, setCreate] = useState(true)
  const submit = () =>
    attempt(async () => {
      const started = request('POST', '/_replicate', { source, target, continuous, create_target: create })
      // One that ends by itself is answered at its end.
      if (continuous) await started
      else started.then(reload, (error: Error) => {
        tell(error.message, true)
        reload()
      })
      reload()
    }, T.replications.started)
  return (
    <FormDialog title={T.replications.new} action={T.replications.new} submit={submit} onClose={close}>
      <Field label={T.replications.source} hint="shop, https://example.com/shop"><input autoFocus required value={source} onInput={(event) => setSource(event.currentTarget.value)} /></Field>
      <Field label={T.replications.target}><input required value={target} onInput={(event) => setTarget(event.currentTarget.value)} /></Field>
      <label class="check"><input type="checkbox" checked={continuous} onChange={(event) => setContinuous(event.currentTarget.checked)} />{T.replications.continuous}</label>
      <label class="check"><input type="checkbox" checked={create} onChange={(event) => setCreate(event.currentTarget.checked)} />{T.replications.createTarget}</label>
    </FormDialog>
  )
}

const MOST_SHOWN = 200

export function Replications() {
  const list = useResource<{ total_rows: number; jobs: Replication[] }>(`/_scheduler/jobs?limit=${MOST_SHOWN}`, 2000)
  const stop = (id: string) => attempt(() => request('POST', '/_replicate', { replication_id: id, cancel: true }).then(list.reload), T.replications.cancelled)
  return (
    <>
      <Head title={T.replications.title}><Opens label={T.replications.new} primary isNew>{(close) => <New close={close} reload={list.reload} />}</Opens></Head>
      <Loaded of={list}>
        {({ jobs, total_rows }) => jobs.length === 0 ? <Empty title={T.replications.empty} hint={T.replications.emptyHint} command={`curl $D/_replicate -H 'Content-Type: application/json' -d '{"source": "https://example.com/shop", "target": "shop", "continuous": true}'`} /> : (
          <>
            {total_rows > jobs.length && <p class="muted small">{T.common.first(jobs.length, total_rows)}</p>}
            <Table label={T.replications.title} columns={[T.replications.source, T.replications.target, T.common.state, number(T.replications.read), number(T.replications.written), number(T.replications.failures), number(T.replications.pending), T.common.since, T.common.error, '']}>
              {jobs.map((one) => {
                const last = one.history[0]
                return (
                  <tr key={one.id}>
                    <td><span class="clip" title={one.source}>{one.source}</span></td><td><span class="clip" title={one.target}>{one.target}</span></td>
                    <td><State name={last?.type ?? 'pending'} /></td>
                    {[one.info?.docs_read, one.info?.docs_written, one.info?.doc_write_failures, one.info?.changes_pending].map((n, i) => <td key={i} class="number">{n == null ? '–' : count(n)}</td>)}
                    <td><Time ms={Date.parse(one.start_time)} /></td><td><span class="clip" title={last?.reason}>{one.info?.error ?? last?.reason}</span></td>
                    <td>{one.doc_id === null && <button type="button" onClick={() => void stop(one.id)}>{T.replications.stop}</button>}</td>
                  </tr>
                )
              })}
            </Table>
          </>
        )}
      </Loaded>
    </>
  )
}
