import { useState } from 'preact/hooks'
import { encode, get, request } from '../api'
import { attempt, Empty, Field, Filter, FormDialog, Head, Loaded, Opens, State, Table } from '../components/basics'
import { useResource } from '../resource'
import { T } from '../texts'

interface Setting {
  section: string
  key: string
  default: string
  unit: string
  /** Whether a change takes effect while the server runs. */
  live: boolean
  description: string
}
type Row = Setting & { value: string | undefined }

/** The settings with their descriptions, and those whose keys are names, which have none. */
async function load(path: string, signal: AbortSignal): Promise<Row[]> {
  const [settings, sections] = await Promise.all([get<Setting[]>('/_node/_local/_settings', signal), get<Record<string, Record<string, string>>>(path, signal)])
  const known = new Set(settings.map(({ section, key }) => `${section} ${key}`))
  const others = Object.entries(sections).flatMap(([section, keys]) => Object.keys(keys).filter((key) => !known.has(`${section} ${key}`)).map((key) => ({ section, key, default: '', unit: '', live: true, description: '' })))
  return [...settings, ...others].map((setting) => ({ ...setting, value: sections[setting.section]?.[setting.key] }))
}

function Change({ row, close, reload }: { row: Row; close: () => void; reload: () => void }) {
  const [text, setText] = useState(row.value ?? '')
  const path = `/_node/_local/_config/${encode(row.section)}/${encode(row.key)}`
  const change = (value: string) => attempt(async () => {
    await request('PUT', path, JSON.stringify(value))
    reload()
  }, T.settings.saved(row.key))
  return (
    <FormDialog title={`[${row.section}] ${row.key}`} action={T.common.save} onClose={close} submit={() => change(text)}>
      {row.description && <p>{row.description}</p>}
      <Field label={row.unit ? `${T.common.value}, ${T.settings.unit(row.unit)}` : T.common.value} hint={T.settings.defaultIs(row.default)}><input autoFocus value={text} onInput={(event) => setText(event.currentTarget.value)} /></Field>
      <div><button type="button" class="link" onClick={() => setText(row.default)}>{T.settings.reset}</button></div>
    </FormDialog>
  )
}

export function Settings() {
  const config = useResource<Row[]>('/_node/_local/_config', 0, load)
  const [filter, setFilter] = useState('')
  const [onlyChanged, setOnlyChanged] = useState(false)
  const isChanged = ({ value, default: fallback }: Row) => value !== undefined && value !== fallback
  return (
    <>
      <Head title={T.settings.title}>
        <label class="check"><input type="checkbox" checked={onlyChanged} onChange={(event) => setOnlyChanged(event.currentTarget.checked)} />{T.settings.onlyChanged}</label>
        <Filter value={filter} onChange={setFilter} label={T.settings.filter} />
      </Head>
      <Loaded of={config}>
        {(rows) => {
          const found = rows.filter((row) => `${row.section} ${row.key} ${row.description}`.toLowerCase().includes(filter.toLowerCase()) && (!onlyChanged || isChanged(row)))
          return found.length === 0 ? <Empty title={T.settings.empty} /> : (
            <Table label={T.settings.title} columns={[T.settings.setting, T.common.value, T.settings.meaning, '']}>
              {found.map((row) => (
                <tr key={`${row.section} ${row.key}`}>
                  <td><span class="muted">[{row.section}]</span> {row.key}</td>
                  <td class="value"><span class="mono">{row.value}</span> <span class="muted small">{row.unit}</span> {isChanged(row) && <State name={T.settings.changed} mood="info" />}</td>
                  <td>{row.description}{isChanged(row) && <div class="muted small">{T.settings.defaultIs(row.default)}</div>}</td>
                  <td>{row.live ? <Opens label={T.common.edit}>{(close) => <Change row={row} close={close} reload={config.reload} />}</Opens> : <span class="muted small nowrap" title={T.settings.restart}>{T.settings.atStart}</span>}</td>
                </tr>
              ))}
            </Table>
          )
        }}
      </Loaded>
    </>
  )
}
