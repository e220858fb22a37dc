import { ApiError, get } from '../api'
import { Card, Empty, Head, Loaded, number, State, Table, Time } from '../components/basics'
import { allDesigns, designPath, mapAll, MOST_DATABASES } from '../designs'
import { count, visible } from '../format'
import { useResource } from '../resource'
import { href } from '../router'
import { T } from '../texts'

interface Trigger {
  name: string
  behind: number
  jobs_added: number
  left_out: { documents: number }
  last_error: { id: string; reason: string; time: number } | null
  waits: { error: string; retry_at: number } | null
}
interface Shown {
  database: string
  design: string
  name: string
  state?: Trigger
  error?: string
}
export interface Deliveries {
  nodes: { node: string; requests: number; delivered: number; failed: number; types: { type: string; state: string; failures: number; retry_at: number | null; last_error: string }[] }[]
}

// The triggers that design documents define.
async function triggers(signal: AbortSignal): Promise<{ found: Shown[]; isAll: boolean }> {
  const { designs, isAll } = await allDesigns(signal)
  const names = designs.flatMap((design) => Object.keys(design.body.triggers ?? {}).map((name) => ({ design, name })))
  const found = await mapAll(names, async ({ design, name }): Promise<Shown[]> => {
    const common = { database: design.database, design: design.id, name }
    try {
      return [{ ...common, state: await get<Trigger>(designPath(design, '_trigger', name), signal) }]
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      // It has been removed meanwhile.
      return error.status === 404 ? [] : [{ ...common, error: error.message }]
    }
  })
  return { found: found.flat(), isAll }
}

const EXAMPLE = `curl -X PUT $D/shop
curl -X PUT $D/_jobs/mail -d '{}'
curl -X PUT $D/shop/_design/mails -d '{"triggers": {"welcome": {
  "selector": {"type": "customer"}, "on": ["created"], "job": {"type": "mail", "data": {"to": "{email}"}}}}}'`

export function Triggers() {
  const all = useResource('triggers', 10_000, (_, signal) => triggers(signal))
  const deliveries = useResource<Deliveries>('/_deliver', 2000)
  return (
    <>
      <Head title={T.triggers.title} />
      {all.data?.isAll === false && <p class="notice">{T.triggers.some(MOST_DATABASES)}</p>}
      <Loaded of={all}>
        {({ found }) => found.length === 0 ? <Empty title={T.triggers.noTriggers} hint={T.triggers.emptyHint} command={EXAMPLE} /> : (
          <Table label={T.triggers.title} columns={[T.indexes.database, T.triggers.trigger, number(T.triggers.behind), number(T.triggers.jobsAdded), number(T.triggers.leftOut), T.triggers.lastError, T.triggers.retryAt]}>
            {found.map(({ database, design, name, state, error }) => (
              <tr key={`${database} ${design} ${name}`}>
                <td><a href={href(['databases', database])}>{database}</a></td>
                <td><a href={href(['databases', database, 'documents', design])}>{visible(design.slice(8))}/{visible(name)}</a></td>
                {state ? (
                  <>
                    <td class="number">{count(state.behind)}</td><td class="number">{count(state.jobs_added)}</td><td class="number">{count(state.left_out.documents)}</td>
                    <td>{state.last_error && <><Time ms={state.last_error.time} /><div class="small">{visible(state.last_error.id)}: {state.last_error.reason}</div></>}</td><td>{state.waits && <><Time ms={state.waits.retry_at} /><div class="small">{state.waits.error}</div></>}</td>
                  </>
                ) : <td colSpan={5}>{error}</td>}
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
      <Card title={T.triggers.deliveries}>
        <Loaded of={deliveries}>
          {({ nodes }) => {
            const failing = nodes.flatMap(({ node, types }) => types.map((type) => ({ node, ...type })))
            return (
              <>
                <Table label={T.triggers.deliveries} columns={[T.common.node, number(T.triggers.underWay), number(T.triggers.delivered), number(T.triggers.failed)]}>
                  {nodes.map((node) => <tr key={node.node}><td>{node.node}</td><td class="number">{count(node.requests)}</td><td class="number">{count(node.delivered)}</td><td class="number">{count(node.failed)}</td></tr>)}
                </Table>
                <h3>{T.triggers.receivers}</h3>
                {failing.length === 0 ? <p class="muted">{T.triggers.calm}</p> : (
                  <Table label={T.triggers.receivers} columns={[T.common.node, T.common.type, T.triggers.breaker, number(T.triggers.failed), T.triggers.retryAt, T.triggers.lastError]}>
                    {failing.map((each) => (
                      <tr key={`${each.node} ${each.type}`}><td>{each.node}</td><td><a href={href(['jobs', each.type])}>{visible(each.type)}</a></td><td><State name={each.state} /></td><td class="number">{each.failures}</td><td><Time ms={each.retry_at} /></td><td>{each.last_error}</td></tr>
                    ))}
                  </Table>
                )}
              </>
            )
          }}
        </Loaded>
      </Card>
    </>
  )
}
