import { useState } from 'preact/hooks'
import { encode, request } from '../api'
import { attempt, Empty, Field, Filter, FormDialog, Head, Loaded, Opens, Table } from '../components/basics'
import { visible } from '../format'
import { useResource } from '../resource'
import { href } from '../router'
import { T } from '../texts'

interface UserDocument {
  _id: string
  _rev: string
  name: string
  roles: string[]
}
const PREFIX = 'org.couchdb.user:'
const MOST_SHOWN = 200
const rolesOf = (text: string) => text.split(',').map((role) => role.trim()).filter(Boolean)

function New({ close, reload }: { close: () => void; reload: () => void }) {
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const [roles, setRoles] = useState('')
  return (
    <FormDialog title={T.users.new} action={T.common.create} onClose={close} submit={() => attempt(async () => {
      await request('PUT', `/_users/${encode(PREFIX + name)}`, { name, password, roles: rolesOf(roles), type: 'user' })
      reload()
    }, T.users.created(visible(name)))}>
      <Field label={T.common.name}><input autoFocus required autocomplete="off" value={name} onInput={(event) => setName(event.currentTarget.value)} /></Field>
      <Field label={T.users.password}><input type="password" required autocomplete="new-password" value={password} onInput={(event) => setPassword(event.currentTarget.value)} /></Field>
      <Field label={T.users.roles} hint={T.users.rolesHint}><input value={roles} onInput={(event) => setRoles(event.currentTarget.value)} /></Field>
    </FormDialog>
  )
}

export function Users() {
  const [filter, setFilter] = useState('')
  const from = encode(JSON.stringify(PREFIX + filter))
  const users = useResource<{ rows: { doc: UserDocument }[] }>(`/_users/_all_docs?include_docs=true&limit=${MOST_SHOWN + 1}&startkey=${from}&endkey=${encode(JSON.stringify(`${PREFIX}${filter}\u{10ffff}`))}`)
  return (
    <>
      <Head title={T.users.title}><Filter value={filter} onChange={setFilter} /><Opens label={T.users.new} primary isNew>{(close) => <New close={close} reload={users.reload} />}</Opens></Head>
      <Loaded of={users}>
        {({ rows }) => rows.length === 0 ? <Empty title={T.users.empty} hint={T.users.emptyHint} command={`curl -X PUT $D/_users/${PREFIX}ann -d '{"name": "ann", "password": "…", "roles": [], "type": "user"}'`} /> : (
          <>
            {rows.length > MOST_SHOWN && <p class="muted small">{T.users.first(MOST_SHOWN)}</p>}
            <Table label={T.users.title} columns={[T.common.name, T.users.roles, '']}>
              {rows.slice(0, MOST_SHOWN).map(({ doc }) => (
                <tr key={doc._id}>
                  <td><a href={href(['databases', '_users', 'documents', doc._id])}>{visible(doc.name)}</a></td><td>{doc.roles?.map(visible).join(', ')}</td>
                  <td><Opens label={T.common.delete} danger>{(close) => (
                    <FormDialog title={T.users.delete} action={T.common.delete} danger onClose={close} submit={() => attempt(async () => {
                      await request('DELETE', `/_users/${encode(doc._id)}?rev=${doc._rev}`)
                      users.reload()
                    })}><p>{T.users.deleteText(visible(doc.name))}</p></FormDialog>
                  )}</Opens></td>
                </tr>
              ))}
            </Table>
          </>
        )}
      </Loaded>
    </>
  )
}
