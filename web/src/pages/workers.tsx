import { useEffect, useRef, useState } from 'preact/hooks'
import { Card, Empty, Head, Loaded, number, State, Table, Time } from '../components/basics'
import { duration } from '../format'
import { useResource } from '../resource'
import { T } from '../texts'

interface Worker {
  id: string
  incarnation: string
  timeout: number
  opts: Record<string, unknown>
}
interface Roles {
  roles: { role: string; workers: Worker[] }[]
}

interface Happening {
  at: number
  text: string
  lost: boolean
}

/** What has changed between two lists of workers. */
function changes(before: Roles, after: Roles): Happening[] {
  const flat = (roles: Roles) => new Map(roles.roles.flatMap(({ role, workers }) => workers.map((worker) => [`${role}\n${worker.incarnation}`, { role, id: worker.id }])))
  const old = flat(before)
  const now = flat(after)
  const at = Date.now()
  return [
    ...[...old].filter(([key]) => !now.has(key)).map(([, { role, id }]) => ({ at, text: T.workers.leftText(id, role), lost: true })),
    ...[...now].filter(([key]) => !old.has(key)).map(([, { role, id }]) => ({ at, text: T.workers.joinedText(id, role), lost: false })),
  ]
}

export function Workers() {
  const workers = useResource<Roles>('/_workers', 1000)
  const before = useRef<Roles | undefined>(undefined)
  const [happened, setHappened] = useState<Happening[]>([])
  useEffect(() => {
    if (!workers.data) return
    const more = before.current ? changes(before.current, workers.data) : []
    before.current = workers.data
    if (more.length > 0) setHappened((all) => [...more, ...all].slice(0, 50))
  }, [workers.data])
  const table = (roles: Roles['roles'], label: string) => (
    <Table label={label} columns={[T.workers.role, T.common.id, number(T.workers.timeout), '']}>
      {roles.flatMap(({ role, workers }) => workers.map(({ id, incarnation, timeout, opts }) => (
        <tr key={incarnation}><td>{role}</td><td>{id}</td><td class="number">{duration(timeout)}</td><td class="small muted"><span class="clip" title={JSON.stringify(opts)}>{Object.keys(opts).length > 0 && JSON.stringify(opts)}</span></td></tr>
      )))}
    </Table>
  )
  return (
    <>
      <Head title={T.workers.title} />
      <Loaded of={workers}>
        {({ roles }) => {
          const own = roles.filter(({ role }) => role.startsWith('_'))
          const users = roles.filter(({ role, workers }) => !role.startsWith('_') && workers.length > 0)
          return (
            <>
              {users.length > 0 ? table(users, T.workers.title) : <Empty title={T.workers.empty} hint={T.workers.emptyHint} command={'divan work mail -- ./send-mail'} />}
              {happened.length > 0 && (
                <Card title={T.workers.events}>
                  <ul class="list">{happened.map(({ at, text, lost }, i) => <li key={i} class="rowline"><Time ms={at} /><State name={lost ? T.workers.lost : T.workers.joined} mood={lost ? 'warn' : 'good'} />{text}</li>)}</ul>
                </Card>
              )}
              {own.length > 0 && <Card title={T.workers.own}>{table(own, T.workers.own)}</Card>}
            </>
          )
        }}
      </Loaded>
    </>
  )
}
