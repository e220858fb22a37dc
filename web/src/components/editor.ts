// CodeMirror for JSON. It is in a shadow root: there its styles are constructed style sheets, which the
// Content-Security-Policy allows.
import { json, jsonParseLinter } from '@codemirror/lang-json'
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { linter, lintGutter } from '@codemirror/lint'
import { Compartment, EditorState } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { effect } from '@preact/signals'
import { basicSetup } from 'codemirror'
import { isDark } from '../theme'

export interface EditorOptions {
  label: string
  readOnly: boolean
  /** Without colours, checks and wrapped lines: for a text that is large. */
  plain: boolean
  onChange: (text: string) => void
}

const colours = (dark: boolean) =>
  HighlightStyle.define([
    { tag: tags.propertyName, color: dark ? '#9db4ff' : '#2743a8' },
    { tag: tags.string, color: dark ? '#8fd6a5' : '#1b6b3a' },
    { tag: [tags.number, tags.bool, tags.null], color: dark ? '#f2b27a' : '#9a4a08' },
  ])
const rules = {
  '&': { fontSize: '13.5px', backgroundColor: 'var(--surface)', color: 'var(--text)', minHeight: 'var(--editor)', maxHeight: '68vh' },
  '.cm-scroller': { fontFamily: 'var(--mono)', overflow: 'auto' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--muted)', borderRight: '1px solid var(--line)' },
  // Instead of images in data: URLs, which the Content-Security-Policy forbids.
  '.cm-lint-marker-error': { content: 'normal', width: '.7em', height: '.7em', borderRadius: '50%', backgroundColor: 'var(--bad)' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--bad)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--raised) 60%, transparent)' },
}
const light = [EditorView.theme(rules, { dark: false }), syntaxHighlighting(colours(false))]
const dark = [EditorView.theme(rules, { dark: true }), syntaxHighlighting(colours(true))]

export function createEditor(parent: HTMLElement, text: string, { label, readOnly, plain, onChange }: EditorOptions) {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' })
  const theme = new Compartment()
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        basicSetup,
        plain ? [] : [json(), EditorView.lineWrapping],
        readOnly ? EditorState.readOnly.of(true) : plain ? [] : [linter(jsonParseLinter()), lintGutter()],
        EditorView.contentAttributes.of({ 'aria-label': label }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString())
        }),
        theme.of([]),
      ],
    }),
  })
  // The editor's colours change in the same task as the page's, so that no frame mixes them.
  const unsubscribe = effect(() => view.dispatch({ effects: theme.reconfigure(isDark.value ? dark : light) }))
  return {
    set: (next: string) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    destroy: () => {
      unsubscribe()
      view.destroy()
    },
  }
}
