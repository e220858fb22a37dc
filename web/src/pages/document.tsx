import { useEffect, useState } from 'preact/hooks'
import { ApiError, documentPath, encode, getExact, parseExact, request, urlOf } from '../api'
import { attempt, Card, Crumbs, FormDialog, Head, Opens, Problem, State, tell } from '../components/basics'
import { JsonEditor } from '../components/json'
import { bytes } from '../format'
import { go, href } from '../router'
import { T } from '../texts'

const RETRY = 2000

interface Stored {
  _id: string
  _rev: string
  _conflicts?: string[]
  _attachments?: Record<string, { content_type: string; length: number }>
  [member: string]: unknown
}

// What the editor shows: without members that only describe the revision.
const textOf = ({ _conflicts, _attachments, ...rest }: Stored) => JSON.stringify(_attachments ? { ...rest, _attachments } : rest, null, 2)

/** A revision in conflict with the winner, and the document as it is there. */
function Conflict({ path, rev, onKeep }: { path: string; rev: string; onKeep: () => void }) {
  const [document, setDocument] = useState<Stored>()
  const [open, setOpen] = useState(false)
  useEffect(() => {
    if (open && !document) void getExact<Stored>(`${path}?rev=${rev}`).then(setDocument, (error: Error) => tell(error.message, true))
  }, [open])
  return (
    <li>
      <div class="rowline"><button type="button" class="link mono" aria-expanded={open} onClick={() => setOpen(!open)}>{rev}</button>
        <Opens label={T.document.keep}>{(close) => <FormDialog title={T.document.keep} action={T.document.keep} onClose={close} submit={async () => (onKeep(), true)}><p>{T.document.keepText}</p></FormDialog>}</Opens>
      </div>
      {open && document && <pre>{textOf(document)}</pre>}
    </li>
  )
}

export function Document({ database, id }: { database: string; id?: string }) {
  const isNew = id === undefined
  const path = `/${documentPath(database, id ?? '')}`
  const [stored, setStored] = useState<Stored>()
  const [text, setText] = useState(isNew ? '{\n  "_id": ""\n}' : '')
  const [error, setError] = useState<Error>()
  const [outdated, setOutdated] = useState(false)
  const load = async () => {
    try {
      const document = await getExact<Stored>(`${path}?conflicts=true`)
      setStored(document)
      setText(textOf(document))
      setOutdated(false)
      setError(undefined)
    } catch (failure) {
      setError(failure as Error)
    }
  }
  useEffect(() => {
    if (!isNew) void load()
  }, [path])
  // Until it is there.
  useEffect(() => {
    if (!error || stored) return
    const timer = setTimeout(() => void load(), RETRY)
    return () => clearTimeout(timer)
  }, [error])

  const save = async () => {
    try {
      const document = parseExact<Stored>(text)
      if (isNew) {
        if (!document._id) delete (document as { _id?: string })._id
        const { id: made } = await request<{ id: string }>('POST', `/${encode(database)}`, document)
        tell(T.document.saved)
        go(['databases', database, 'documents', made])
        return
      }
      await request('PUT', path, { ...document, _id: id })
      tell(T.document.saved)
      await load()
    } catch (failure) {
      if (failure instanceof ApiError && failure.status === 409) setOutdated(true)
      else tell((failure as Error).message, true)
    }
  }
  const remove = () =>
    attempt(async () => {
      await request('DELETE', `${path}?rev=${stored!._rev}`)
      go(['databases', database])
    })
  // The others are deleted, in one request.
  const keep = (rev: string) => {
    const others = [stored!._rev, ...(stored!._conflicts ?? [])].filter((other) => other !== rev)
    void attempt(async () => {
      await request('POST', `/${encode(database)}/_bulk_docs`, { docs: others.map((_rev) => ({ _id: id, _rev, _deleted: true })) })
      await load()
    }, T.document.saved)
  }
  const attach = (file: File | undefined) => {
    if (!file) return
    void attempt(async () => {
      await request('PUT', `${path}/${encode(file.name)}?rev=${stored!._rev}`, file)
      await load()
    })
  }
  const attachments = Object.entries(stored?._attachments ?? {})
  return (
    <>
      <Crumbs of={[[T.databases.title, href(['databases'])], [database, href(['databases', database])], [id ?? T.document.newTitle]]} />
      <Head title={id ?? T.document.newTitle}>
        {!isNew && stored && <Opens label={T.document.delete} danger>{(close) => <FormDialog title={T.document.delete} action={T.common.delete} danger onClose={close} submit={remove}><p>{T.document.deleteText}</p></FormDialog>}</Opens>}
        <button type="button" class="primary" disabled={!isNew && !stored} onClick={() => void save()}>{T.document.save}</button>
      </Head>
      {error && <Problem error={error} />}
      {outdated && <p class="notice rowline" role="alert">{T.document.conflict} <button type="button" onClick={() => void load()}>{T.document.reload}</button></p>}
      {(isNew || stored) && <JsonEditor label={T.database.content} text={text} onChange={setText} />}
      {stored && (
        <div class="grid">
          <Card title={T.document.conflicts}>
            {stored._conflicts?.length ? (
              <ul class="tree"><li><span class="mono">{stored._rev}</span> <State name={T.document.winner} mood="good" /></li>{stored._conflicts.map((rev) => <Conflict key={rev} path={path} rev={rev} onKeep={() => keep(rev)} />)}</ul>
            ) : <p class="muted">{T.document.noConflicts}</p>}
          </Card>
          <Card title={T.document.attachments}>
            <ul class="list">{attachments.map(([name, { content_type, length }]) => <li key={name} class="rowline spread"><a href={urlOf(`${path}/${encode(name)}`)} target="_blank" rel="noopener noreferrer" download={name}>{name}</a><span class="muted small">{content_type}, {bytes(length)}</span></li>)}</ul>
            <label class="field"><span>{T.document.upload}</span><input type="file" onChange={(event) => attach(event.currentTarget.files?.[0])} /></label>
          </Card>
        </div>
      )}
    </>
  )
}
