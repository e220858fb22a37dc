// The frame of all pages: navigation, login, connection, keyboard.
import { signal } from '@preact/signals'
import type { ComponentChildren, ComponentType } from 'preact'
import { useEffect, useErrorBoundary, useState } from 'preact/hooks'
import { isConnected, waiting } from './api'
import { attempt, Dialog, Field, Head, Problem, Toasts } from './components/basics'
import { Databases } from './pages/databases'
import { Database } from './pages/database'
import { Feeds } from './pages/feeds'
import { Indexes } from './pages/indexes'
import { Jobs } from './pages/jobs'
import { Log } from './pages/log'
import { Nodes } from './pages/nodes'
import { Overview } from './pages/overview'
import { Replications } from './pages/replications'
import { Settings } from './pages/settings'
import { Triggers } from './pages/triggers'
import { Users } from './pages/users'
import { Workers } from './pages/workers'
import { visible } from './format'
import { go, href, route } from './router'
import { isAdmin, loadSession, login, logout, user } from './session'
import { T } from './texts'
import { theme, type Theme } from './theme'

interface Page {
  name: keyof typeof T.nav
  key: string
  component: ComponentType
  /** Also for users who are no administrators of the server. */
  forAll?: boolean
}

const PAGES: Page[] = [
  { name: 'overview', key: 'o', component: Overview },
  { name: 'databases', key: 'd', component: Databases, forAll: true },
  { name: 'indexes', key: 'i', component: Indexes },
  { name: 'jobs', key: 'j', component: Jobs },
  { name: 'workers', key: 'w', component: Workers },
  { name: 'replications', key: 'r', component: Replications },
  { name: 'triggers', key: 't', component: Triggers },
  { name: 'feeds', key: 'f', component: Feeds, forAll: true },
  { name: 'nodes', key: 'n', component: Nodes },
  { name: 'settings', key: 's', component: Settings },
  { name: 'users', key: 'u', component: Users },
  { name: 'log', key: 'l', component: Log },
]
const pagesOfUser = () => PAGES.filter(({ forAll }) => forAll || isAdmin())

const showsKeys = signal(false)

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.shadowRoot !== null)
}

/** ? shows the keys, / goes to the filter, n adds, g and a letter go to a page. */
function useKeys(): void {
  useEffect(() => {
    let goes = false
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector('dialog[open]')) return
      if (goes) {
        goes = false
        const page = pagesOfUser().find(({ key }) => key === event.key)
        if (page) go([page.name])
        return
      }
      if (event.key === 'g') goes = true
      else if (event.key === '?') showsKeys.value = true
      else if (event.key === '/' || event.key === 'n') {
        const found = document.querySelector<HTMLElement>(event.key === '/' ? '[data-filter]' : '[data-new]')
        if (!found) return
        event.preventDefault()
        if (event.key === '/') found.focus()
        else found.click()
      }
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}

function Keys() {
  if (!showsKeys.value) return null
  const rows: [string, string][] = [['?', T.keys.help], ['/', T.keys.filter], ['n', T.keys.new], ['Esc', T.keys.escape], ['g', T.keys.pages]]
  return (
    <Dialog title={T.keys.title} onClose={() => (showsKeys.value = false)}>
      <dl class="facts">
        {rows.map(([key, what]) => <><dt><kbd>{key}</kbd></dt><dd>{what}</dd></>)}
        {pagesOfUser().map(({ name, key }) => <><dt><kbd>g</kbd> <kbd>{key}</kbd></dt><dd>{T.nav[name]}</dd></>)}
      </dl>
      <form method="dialog"><div class="buttons"><button class="primary">{T.common.close}</button></div></form>
    </Dialog>
  )
}

function Login() {
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  return (
    <main class="login">
      <form class="card" onSubmit={(event) => {
        event.preventDefault()
        void attempt(() => login(name, password))
      }}>
        <div class="brand"><img src="./icon.svg" alt="" />{T.product}</div>
        <h1>{T.session.title}</h1>
        <Field label={T.session.name}><input autoFocus required autocomplete="username" value={name} onInput={(event) => setName(event.currentTarget.value)} /></Field>
        <Field label={T.session.password}><input type="password" required autocomplete="current-password" value={password} onInput={(event) => setPassword(event.currentTarget.value)} /></Field>
        <button class="primary">{T.session.submit}</button>
        <p class="muted small">{T.session.hint}</p>
      </form>
      <Toasts />
    </main>
  )
}

function Nav({ current }: { current: string }) {
  const [open, setOpen] = useState(false)
  const name = user.value?.name
  return (
    <header class={`nav ${open ? 'open' : ''}`}>
      <a class="brand" href={href(['overview'])}><img src="./icon.svg" alt="" />{T.product}</a>
      <button type="button" class="menu" aria-expanded={open} onClick={() => setOpen(!open)}>{T.nav.menu}</button>
      <nav class="pages" aria-label={T.nav.label}>
        {pagesOfUser().map((page) => (
          <a key={page.name} class="page" href={href([page.name])} aria-current={page.name === current ? 'page' : undefined} onClick={() => setOpen(false)}>{T.nav[page.name]}</a>
        ))}
      </nav>
      <div class="foot">
        <Field label={T.theme.label}>
          <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value as Theme)}>
            {(['system', 'light', 'dark'] as const).map((each) => <option key={each} value={each}>{T.theme[each]}</option>)}
          </select>
        </Field>
        <div class="rowline spread small"><span>{name ?? T.session.anonymous}</span>{name && <button type="button" class="link" onClick={() => void attempt(logout)}>{T.session.logout}</button>}</div>
        <button type="button" class="link small" onClick={() => (showsKeys.value = true)}>{T.keys.title} <kbd>?</kbd></button>
      </div>
    </header>
  )
}

function Unknown({ name }: { name: string }) {
  const page = PAGES.find((each) => each.name === name)
  return <><Head title={page ? T.nav[page.name] : name} /><p class="problem" role="alert">{page ? T.session.denied : T.session.unknown}</p></>
}

/** If a page fails, the others stay usable. */
function Guarded({ at, children }: { at: string; children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary((failure: unknown) => console.error(failure))
  useEffect(() => void (error !== undefined && reset()), [at])
  return error === undefined ? <>{children}</> : <Problem error={error as Error} />
}

export function App() {
  useKeys()
  const [error, setError] = useState<Error>()
  useEffect(() => {
    // The first request tells who this is; until there is a response, it is repeated.
    const load = (): Promise<unknown> => loadSession().catch((failure: Error) => {
      setError(failure)
      setTimeout(load, 1000)
    })
    void load()
  }, [])
  const { segments } = route.value
  const name = segments[0] ?? (isAdmin() ? 'overview' : 'databases')
  const isDatabase = name === 'databases' && segments.length > 1
  const page = pagesOfUser().find((each) => each.name === name)
  const title = [...segments.slice(1).reverse().map(visible), page && T.nav[page.name], T.product].filter(Boolean).join(' · ')
  useEffect(() => void (document.title = title), [title])
  if (!user.value) return !isConnected.value ? <p class="banner" role="alert">{T.connection.lost}</p> : error ? <main><Problem error={error} /></main> : null
  if (user.value.name === null) return <Login />
  const Content = isDatabase ? Database : page?.component
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => {
        event.preventDefault()
        document.getElementById('content')?.focus()
      }}>{T.nav.skip}</a>
      <div class="shell">
        <Nav current={name} />
        <div>
          {!isConnected.value ? <p class="banner" role="alert">{T.connection.lost}</p> : waiting.value > 0 && <p class="banner slow" role="status">{T.connection.slow}</p>}
          <main id="content" tabIndex={-1} key={isDatabase ? segments.slice(0, 2).join('/') : name}>{Content ? <Guarded at={segments.join('/')}><Content /></Guarded> : <Unknown name={name} />}</main>
        </div>
      </div>
      <Keys />
      <Toasts />
    </>
  )
}
