// Small parts of all pages.
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { isConnected, urlOf } from '../api'
import { clip, exactTime, time, visible } from '../format'
import type { Resource } from '../resource'
import { user } from '../session'
import { T } from '../texts'

export function Head({ title, children }: { title: ComponentChildren; children?: ComponentChildren }) {
  return <div class="head"><h1>{typeof title === 'string' ? visible(title) : title}</h1>{children}</div>
}

export function Crumbs({ of }: { of: [string, string?][] }) {
  return <nav class="crumbs" aria-label={T.common.path}>{of.map(([text, to], i) => <span key={i}>{i > 0 && '/ '}{to ? <a href={to}>{visible(text)}</a> : visible(text)}</span>)}</nav>
}

export function Card({ title, children }: { title?: string; children: ComponentChildren }) {
  return <section class="card">{title && <h2>{title}</h2>}{children}</section>
}

/** The content of a resource: what is shown while it loads, and if it cannot be loaded. */
export function Loaded<V>({ of, children }: { of: Resource<V>; children: (data: V) => ComponentChildren }) {
  if (of.data !== undefined) return <>{of.error && <Problem error={of.error} />}{children(of.data)}</>
  return of.error ? <Problem error={of.error} /> : <p class="muted" role="status">{T.common.loading}</p>
}

/** Nothing while the server does not respond: the banner of all pages says so. */
export function Problem({ error }: { error: Error }) {
  if (!isConnected.value) return null
  return <p class="problem" role="alert">{T.common.failed(error.message)}</p>
}

/** Says that there is nothing yet, and what to do. */
export function Empty({ title, hint, command, children }: { title: string; hint?: string; command?: string; children?: ComponentChildren }) {
  return <div class="empty"><strong>{title}</strong>{hint && <span>{hint}</span>}{command && <Command text={command} />}{children}</div>
}

// A name as a word of a shell.
const quoted = (name: string) => (/^[\w.@-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`)

/** Commands with curl, which asks for the user's password. $D is the server's address. */
export function Command({ text: template }: { text: string }) {
  const [copied, setCopied] = useState(false)
  const text = template.replaceAll('$D', () => urlOf('/').slice(0, -1)).replace(/^curl /gm, () => `curl -u ${quoted(user.value?.name ?? '')} `)
  // Only pages of a secure origin have a clipboard.
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(true), () => {})
  return <div class="command"><pre>{text}</pre>{navigator.clipboard && <button type="button" onClick={copy}>{copied ? T.common.copied : T.common.copy}</button>}</div>
}

type Mood = 'good' | 'warn' | 'bad' | 'info' | ''
const MOODS: Record<string, Mood> = {
  finished: 'good', completed: 'good', running: 'info', pending: '', failed: 'bad', error: 'bad', cancelled: 'warn', paused: 'warn', open: 'bad', half_open: 'warn',
  added: '', lost: 'bad', started: 'info', crashed: 'bad', crashing: 'bad',
}
export function State({ name, mood }: { name: string; mood?: Mood }) {
  return <span class={`state ${mood ?? MOODS[name] ?? ''}`}>{name}</span>
}

export function Time({ ms }: { ms: number | undefined | null }) {
  return ms ? <time dateTime={new Date(ms).toISOString()} title={exactTime(ms)}>{time(ms)}</time> : <>–</>
}

export function Bar({ share, label, isLate = false }: { share: number; label: string; isLate?: boolean }) {
  const percent = Math.max(0, Math.min(100, share * 100))
  return <div class={`bar ${isLate ? 'late' : ''}`} role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(percent)}><i style={{ width: `${percent}%` }} /></div>
}

type Column = string | { text: string; number: true }
/** A column of numbers. */
export const number = (text: string): Column => ({ text, number: true })

export function Table({ columns, children, label }: { columns: Column[]; children: ComponentChildren; label: string }) {
  return (
    <div class="tablewrap" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead><tr>{columns.map((column, i) => (typeof column === 'string' ? <th key={i} scope="col">{column || <span class="hidden">{T.common.actions}</span>}</th> : <th key={i} scope="col" class="number">{column.text}</th>))}</tr></thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

export function Tabs({ of, current }: { of: [string, string, string][]; current: string }) {
  const box = useRef<HTMLElement>(null)
  // On a narrow page, the tabs scroll.
  useEffect(() => {
    const { offsetLeft = 0, offsetWidth = 0 } = box.current!.querySelector<HTMLElement>('[aria-current]') ?? {}
    box.current!.scrollLeft = offsetLeft - (box.current!.clientWidth - offsetWidth) / 2
  }, [current])
  return <nav ref={box} class="tabs" aria-label={T.common.tabs}>{of.map(([name, text, to]) => <a key={name} href={to} aria-current={name === current ? 'page' : undefined}>{text}</a>)}</nav>
}

export function Field({ label, children, hint }: { label: string; hint?: string; children: ComponentChildren }) {
  return <label class="field"><span>{label}</span>{children}{hint && <span>{hint}</span>}</label>
}

/** The filter of a page, which the key / goes to. */
export function Filter({ value, onChange, label = T.common.filter }: { value: string; onChange: (value: string) => void; label?: string }) {
  return <input type="search" data-filter placeholder={label} aria-label={label} value={value} onInput={(event) => onChange(event.currentTarget.value)} />
}

// Messages that go away by themselves.
interface Toast { id: number; text: string; bad: boolean }
const toasts = signal<Toast[]>([])
let lastToast = 0
export function tell(text: string, bad = false): void {
  const id = ++lastToast
  toasts.value = [...toasts.value.slice(-3), { id, text: clip(text, 300), bad }]
  setTimeout(() => (toasts.value = toasts.value.filter((toast) => toast.id !== id)), bad ? 10_000 : 4_000)
}
export function Toasts() {
  return <div class="toasts" role="status" aria-live="polite">{toasts.value.map(({ id, text, bad }) => <div key={id} class={`toast ${bad ? 'bad' : ''}`}>{text}</div>)}</div>
}

/** Runs an action of the user, and tells why it has failed. Returns true if it has not. */
export async function attempt(action: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await action()
    if (done) tell(done)
    return true
  } catch (error) {
    tell((error as Error).message, true)
    return false
  }
}

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const heading = useId()
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null
    dialog.current!.showModal()
    return () => before?.focus()
  }, [])
  return <dialog ref={dialog} aria-labelledby={heading} onClose={onClose}><h2 id={heading}>{title}</h2>{children}</dialog>
}

/** A form in a dialog. `submit` returns true if the dialog may close. */
export function FormDialog({ title, action, danger = false, disabled = false, submit, onClose, children }: {
  title: string; action: string; danger?: boolean; disabled?: boolean; submit: () => Promise<boolean>; onClose: () => void; children: ComponentChildren
}) {
  const [busy, setBusy] = useState(false)
  const onSubmit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    if (await submit()) onClose()
    else setBusy(false)
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={onSubmit}>
        {children}
        <div class="buttons"><button type="button" onClick={onClose}>{T.common.cancel}</button><button class={danger ? 'danger' : 'primary'} disabled={busy || disabled}>{action}</button></div>
      </form>
    </Dialog>
  )
}

/** A button that opens a dialog. `isNew`: the key n does, too. */
export function Opens({ label, danger, primary, isNew, children }: { label: string; danger?: boolean; primary?: boolean; isNew?: boolean; children: (close: () => void) => ComponentChildren }) {
  const [open, setOpen] = useState(false)
  return (
    <>
      <button type="button" class={danger ? 'danger' : primary ? 'primary' : ''} data-new={isNew ? '' : undefined} onClick={() => setOpen(true)}>{label}</button>
      {open && children(() => setOpen(false))}
    </>
  )
}
