// JSON to be read or edited. The editor is loaded when it is first shown.
import { useEffect, useRef, useState } from 'preact/hooks'
import { T } from '../texts'

// Larger texts are shown without colours, which would take seconds.
const LARGE = 400_000

/** A page that will show an editor calls this first, so that it is loaded beside the page's data. */
export const loadEditor = () => import('./editor')

/** `rows`: its least height. */
export function JsonEditor({ text, onChange, label, readOnly = false, rows = readOnly ? 5 : 17 }: { text: string; onChange?: (text: string) => void; label: string; readOnly?: boolean; rows?: number }) {
  const box = useRef<HTMLDivElement>(null)
  const change = useRef(onChange)
  change.current = onChange
  const editor = useRef<{ set: (text: string) => void; destroy: () => void } | undefined>(undefined)
  const shown = useRef(text)
  // What was typed since the page last had the latest text. It may be given an earlier one, if typing is faster than rendering.
  const typed = useRef<string[]>([])
  const changed = (next: string) => {
    shown.current = next
    typed.current.push(next)
    change.current?.(next)
  }
  const [ready, setReady] = useState(false)
  // A text that has been large stays so: what is typed at the limit must not replace the editor again and again.
  const large = useRef(false)
  const isLarge = (large.current ||= text.length > LARGE)
  useEffect(() => {
    let ended = false
    void loadEditor().then(({ createEditor }) => {
      if (ended || !box.current) return
      editor.current = createEditor(box.current, shown.current, { label, readOnly, plain: isLarge, onChange: changed })
      setReady(true)
    })
    return () => {
      ended = true
      editor.current?.destroy()
      editor.current = undefined
      setReady(false)
    }
  }, [isLarge, readOnly])
  useEffect(() => {
    if (text === shown.current) typed.current = []
    if (text === shown.current || typed.current.includes(text)) return
    shown.current = text
    editor.current?.set(text)
    typed.current = []
  }, [text])
  return (
    <div class="editor" style={{ '--editor': `${rows * 19}px` }}>
      <div ref={box} />
      {!ready && (isLarge ? <p class="muted" role="status">{T.common.loading}</p> : (
        <textarea aria-label={label} readOnly={readOnly} spellcheck={false} rows={Math.min(30, Math.max(rows, text.split('\n').length))} value={text} onInput={(event) => changed(event.currentTarget.value)} />
      ))}
    </div>
  )
}
