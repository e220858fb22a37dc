import { useMemo, useState } from 'preact/hooks'
import { ApiError, encode, request } from '../api'
import { attempt, Empty, Field, Filter, FormDialog, Head, Loaded, Opens } from '../components/basics'
import { Scroll, type Source } from '../components/scroll'
import { bytes } from '../format'
import { useResource } from '../resource'
import { go, href } from '../router'
import { isAdmin } from '../session'
import { T } from '../texts'

export interface DatabaseInfo {
  db_name: string
  doc_count: number
  doc_del_count: number
  update_seq: string
  sizes: { file: number; external: number; active: number }
  props: { partitioned?: boolean }
}

function Create({ close }: { close: () => void }) {
  const [name, setName] = useState('')
  const [partitioned, setPartitioned] = useState(false)
  const submit = () =>
    attempt(async () => {
      await request('PUT', `/${encode(name)}${partitioned ? '?partitioned=true' : ''}`)
      go(['databases', name])
    }, T.databases.created(name))
  return (
    <FormDialog title={T.databases.create} action={T.common.create} submit={submit} onClose={close}>
      <Field label={T.databases.name} hint={T.databases.rule}><input autoFocus required value={name} onInput={(event) => setName(event.currentTarget.value)} /></Field>
      <label class="check"><input type="checkbox" checked={partitioned} onChange={(event) => setPartitioned(event.currentTarget.checked)} />{T.databases.partitioned}</label>
    </FormDialog>
  )
}

/** For users who may not see the list. */
function Open() {
  const [name, setName] = useState('')
  return (
    <form class="rowline" onSubmit={(event) => {
      event.preventDefault()
      go(['databases', name])
    }}>
      <Field label={T.databases.name}><input required value={name} onInput={(event) => setName(event.currentTarget.value)} /></Field>
      <button class="primary">{T.databases.open}</button>
    </form>
  )
}

export function Databases() {
  const [filter, setFilter] = useState('')
  const names = useResource<string[]>('/_all_dbs', 5000)
  const found = useMemo(() => names.data?.filter((name) => name.includes(filter)) ?? [], [names.data, filter])
  const isRefused = names.error instanceof ApiError && (names.error.status === 401 || names.error.status === 403)
  const key = found.join('\n')
  const source = useMemo<Source<DatabaseInfo>>(
    () => ({
      total: found.length,
      of: filter,
      load: async (start, _, signal) => {
        const keys = found.slice(start, start + 100)
        const rows = await request<{ key: string; info?: DatabaseInfo }[]>('POST', '/_dbs_info', { keys }, signal)
        return rows.map(({ key, info }) => info ?? { db_name: key, doc_count: 0, doc_del_count: 0, update_seq: '', sizes: { file: 0, external: 0, active: 0 }, props: {} })
      },
    }),
    [key, filter],
  )
  return (
    <>
      <Head title={T.databases.title}>
        {!isRefused && <Filter value={filter} onChange={setFilter} label={T.databases.filter} />}
        {isAdmin() && <Opens label={T.databases.create} primary isNew>{(close) => <Create close={close} />}</Opens>}
      </Head>
      {isRefused ? <><p class="muted">{T.databases.unlisted}</p><Open /></> : <Loaded of={names}>
        {(all) =>
          all.length === 0 ? (
            <Empty title={T.databases.empty} hint={T.databases.emptyHint} command="curl -X PUT $D/shop" />
          ) : (
            <Scroll source={source} label={T.databases.title}>
              {(info, i, style) => {
                const name = found[i]!
                return (
                  <a key={name} class="line" style={style} href={href(['databases', name])}>
                    <span class="grow">{name}</span>
                    <span class="small muted">{info?.db_name === name && `${T.database.total(info.doc_count)}, ${bytes(info.sizes.active)}`}</span>
                  </a>
                )
              }}
            </Scroll>
          )
        }
      </Loaded>}
    </>
  )
}
