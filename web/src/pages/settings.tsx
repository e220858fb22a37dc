import { useState } from 'preact/hooks'
import { encode, request } from '../api'
import { attempt, Empty, Field, Filter, FormDialog, Head, Loaded, Opens, Table } from '../components/basics'
import { useResource } from '../resource'
import { T } from '../texts'

type Sections = Record<string, Record<string, string>>

function Change({ section, name, value, close, reload }: { section: string; name: string; value: string; close: () => void; reload: () => void }) {
  const [text, setText] = useState(value)
  return (
    <FormDialog title={`[${section}] ${name}`} action={T.common.save} onClose={close} submit={() => attempt(async () => {
      await request('PUT', `/_node/_local/_config/${encode(section)}/${encode(name)}`, JSON.stringify(text))
      reload()
    }, T.settings.saved(name))}>
      <Field label={T.common.value}><input autoFocus value={text} onInput={(event) => setText(event.currentTarget.value)} /></Field>
    </FormDialog>
  )
}

export function Settings() {
  const config = useResource<Sections>('/_node/_local/_config')
  const [filter, setFilter] = useState('')
  return (
    <>
      <Head title={T.settings.title}><Filter value={filter} onChange={setFilter} label={T.settings.filter} /></Head>
      <Loaded of={config}>
        {(sections) => {
          const found = Object.entries(sections).flatMap(([section, keys]) => Object.entries(keys).map(([name, value]) => ({ section, name, value }))).filter(({ section, name }) => `${section} ${name}`.includes(filter))
          return found.length === 0 ? <Empty title={T.settings.empty} /> : (
            <Table label={T.settings.title} columns={[T.settings.section, T.settings.setting, T.common.value, '']}>
              {found.map(({ section, name, value }) => (
                <tr key={`${section} ${name}`}>
                  <td class="muted">{section}</td><td>{name}</td><td class="mono">{value}</td>
                  <td><Opens label={T.common.edit}>{(close) => <Change section={section} name={name} value={value} close={close} reload={config.reload} />}</Opens></td>
                </tr>
              ))}
            </Table>
          )
        }}
      </Loaded>
    </>
  )
}
