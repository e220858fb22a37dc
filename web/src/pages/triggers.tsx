import { get, ifFound } from '../api'
import { Card, Empty, Head, Loaded, number, State, Table, Time } from '../components/basics'
import { allDesigns, designPath, mapAll, MOST_DATABASES } from '../designs'
import { count } from '../format'
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
interface Shown extends Trigger {
  database: string
  design: string
}
export interface Deliveries {
  nodes: { node: string; requests: number; delivered: number; failed: number; types: { type: string; state: string; failures: number; retry_at: number | null; last_error: string }[] }[]
}

// The triggers that design documents define.
async function triggers(signal: AbortSignal): Promise<{ found: Shown[]; isAll: boolean }> {
  const { designs, isAll } = await allDesigns(signal)
  const names = designs.flatMap((design) => Object.keys(design.body.triggers ?? {}).map((name) => ({ design, name })))
  const found = await mapAll(names, async ({ design, name }) => {
    const trigger = await get<Trigger>(designPath(design, '_trigger', name), signal).catch(ifFound)
    return trigger ? [{ ...trigger, database: design.database, design: design.id }] : []
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
            {found.map((each) => (
              <tr key={`${each.database} ${each.design} ${each.name}`}>
                <td><a href={href(['databases', each.database])}>{each.database}</a></td>
                <td><a href={href(['databases', each.database, 'documents', each.design])}>{each.design.slice(8)}/{each.name}</a></td>
                <td class="number">{count(each.behind)}</td><td class="number">{count(each.jobs_added)}</td><td class="number">{count(each.left_out.documents)}</td>
                <td>{each.last_error && <><Time ms={each.last_error.time} /><div class="small">{each.last_error.id}: {each.last_error.reason}</div></>}</td><td>{each.waits && <><Time ms={each.waits.retry_at} /><div class="small">{each.waits.error}</div></>}</td>
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
                      <tr key={`${each.node} ${each.type}`}><td>{each.node}</td><td><a href={href(['jobs', each.type])}>{each.type}</a></td><td><State name={each.state} /></td><td class="number">{each.failures}</td><td><Time ms={each.retry_at} /></td><td>{each.last_error}</td></tr>
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
