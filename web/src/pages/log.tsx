import { useState } from 'preact/hooks'
import { Empty, Field, Filter, Head, Loaded, State, Time } from '../components/basics'
import { useResource } from '../resource'
import { T } from '../texts'

const LEVELS = ['debug', 'info', 'warning', 'error']
const MOODS = { debug: '', info: 'info', warning: 'warn', error: 'bad' } as const
const SHOWN = 500

interface Line {
  time: number
  level: keyof typeof MOODS
  text: string
}

export function Log() {
  const [level, setLevel] = useState('debug')
  const [filter, setFilter] = useState('')
  const log = useResource<{ lines: Line[] }>('/_node/_local/_log', 2000)
  return (
    <>
      <Head title={T.log.title}>
        <Field label={T.log.level}><select value={level} onChange={(event) => setLevel(event.currentTarget.value)}>{LEVELS.map((each) => <option key={each}>{each}</option>)}</select></Field>
        <Filter value={filter} onChange={setFilter} label={T.log.filter} />
      </Head>
      <p class="muted small">{T.log.kept}</p>
      <Loaded of={log}>
        {({ lines }) => {
          const found = lines.filter((line) => LEVELS.indexOf(line.level) >= LEVELS.indexOf(level) && line.text.toLowerCase().includes(filter.toLowerCase()))
          return found.length === 0 ? <Empty title={T.log.empty} /> : (
            <>
              {found.length > SHOWN && <p class="muted small">{T.log.latest(SHOWN, found.length)}</p>}
              <div class="tablewrap" role="log" tabIndex={0} aria-label={T.log.title}>
                {found.slice(-SHOWN).reverse().map((line) => <div class="logline" key={`${line.time} ${line.text}`}><span class="muted small"><Time ms={line.time / 1000} /></span><span><State name={line.level} mood={MOODS[line.level]} /></span><code>{line.text}</code></div>)}
              </div>
            </>
          )
        }}
      </Loaded>
    </>
  )
}
