import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, canRequest, documentPath, encode, getExact, isRawJSON, parseExact, request, urlOf } from '../api'
import { attempt, Card, Crumbs, FormDialog, Head, Opens, Problem, tell } from '../components/basics'
import { useMayDesign } from '../components/designs'
import { JsonEditor, loadEditor } from '../components/json'
import { bytes, visible } from '../format'
import { go, href } from '../router'
import { T } from '../texts'
import { contentOf, Revisions, type Stored } from './revisions'

const RETRY = 2000

const textOf = (stored: Stored) => JSON.stringify(contentOf(stored), null, 2)

export function Document({ database, id }: { database: string; id?: string }) {
  const isNew = id === undefined
  const path = `/${documentPath(database, id ?? '')}`
  const [stored, setStored] = useState<Stored>()
  const [text, setText] = useState(isNew ? '{\n  "_id": ""\n}' : '')
  const [error, setError] = useState<Error>()
  const [deleted, setDeleted] = useState<Stored>()
  const [outdated, setOutdated] = useState(false)
  const [busy, setBusy] = useState(false)
  // The text of the stored revision, and the present one, which may change while a request is under way.
  const [storedText, setStoredText] = useState('')
  const latest = useRef(text)
  latest.current = text
  const isLeft = useRef(false)
  useEffect(() => () => void (isLeft.current = true), [])
  // All leaves of its tree are deleted; the winner comes first.
  const loadDeleted = async () => {
    const leaves = (await getExact<{ ok?: Stored }[]>(`${path}?open_revs=all`)).flatMap(({ ok }) => ok ?? [])
    if (leaves[0]) setDeleted({ ...leaves[0], _deleted_conflicts: leaves.slice(1).map(({ _rev }) => _rev) })
    setError(undefined)
  }
  /** `saved`: the text that was saved; what was typed since then stays, with the new revision. */
  const load = async (saved?: string) => {
    try {
      const document = await getExact<Stored>(`${path}?conflicts=true&deleted_conflicts=true&revs_info=true`)
      setStored(document)
      setStoredText(textOf(document))
      setText(saved === undefined || saved === latest.current ? textOf(document) : latest.current.replace(/("_rev"\s*:\s*)"[^"]*"/, `$1"${document._rev}"`))
      setDeleted(undefined)
      setOutdated(false)
      setError(undefined)
    } catch (failure) {
      setError(failure as Error)
      if (failure instanceof ApiError && failure.reason === 'deleted') await loadDeleted().catch(setError)
    }
  }
  useEffect(() => {
    void loadEditor()
    if (!isNew) void load()
  }, [path])
  // Until it is there.
  useEffect(() => {
    if (!error || stored) return
    const timer = setTimeout(() => void load(), RETRY)
    return () => clearTimeout(timer)
  }, [error])

  const save = async () => {
    setBusy(true)
    try {
      const document = parseExact<Stored>(text)
      if (typeof document !== 'object' || document === null || Array.isArray(document) || isRawJSON(document)) throw new Error(T.document.noObject)
      if (isNew) {
        if (!document._id) delete (document as { _id?: string })._id
        const { id: made } = await request<{ id: string }>('POST', `/${encode(database)}`, document)
        tell(T.document.saved)
        // It stays busy, so that it does not create another one before its page is replaced.
        if (!isLeft.current) go(['databases', database, 'documents', made])
        return
      }
      await request('PUT', path, { ...document, _id: id })
      tell(T.document.saved)
      await load(text)
    } catch (failure) {
      if (failure instanceof ApiError && failure.status === 409 && !isNew) setOutdated(true)
      else tell((failure as Error).message, true)
    }
    setBusy(false)
  }
  // What changes the document in another way reads it again.
  const checkSaved = () => {
    if (text !== storedText) throw new Error(T.document.unsaved)
  }
  const remove = () =>
    attempt(async () => {
      await request('DELETE', `${path}?rev=${stored!._rev}`)
      go(['databases', database])
    })
  // The others are deleted, in one request.
  const keep = (rev: string) => {
    const others = [stored!._rev, ...(stored!._conflicts ?? [])].filter((other) => other !== rev)
    return attempt(async () => {
      checkSaved()
      const results = await request<{ reason?: string }[]>('POST', `/${encode(database)}/_bulk_docs`, { docs: others.map((_rev) => ({ _id: id, _rev, _deleted: true })) })
      await load()
      const failed = results.find(({ reason }) => reason !== undefined)
      if (failed) throw new Error(failed.reason)
    }, T.document.saved)
  }
  const attach = async (input: HTMLInputElement) => {
    const file = input.files?.[0]
    if (!file) return
    await attempt(async () => {
      checkSaved()
      await request('PUT', `${path}/${encode(file.name)}?rev=${stored!._rev}`, file)
      await load()
    })
    // The same file may be chosen again.
    input.value = ''
  }
  const detach = (name: string) =>
    attempt(async () => {
      checkSaved()
      await request('DELETE', `${path}/${encode(name)}?rev=${stored!._rev}`)
      await load()
    })
  const mayDesign = useMayDesign(database)
  const mayWrite = mayDesign || !id?.startsWith('_design/')
  const isMissing = error instanceof ApiError && error.reason === 'missing'
  const attachments = Object.entries(stored?._attachments ?? {})
  return (
    <>
      <Crumbs of={[[T.databases.title, href(['databases'])], [database, href(['databases', database])], [id ?? T.document.newTitle]]} />
      <Head title={id ?? T.document.newTitle}>
        {!isNew && stored && mayWrite && <Opens label={T.document.delete} danger>{(close) => <FormDialog title={T.document.delete} action={T.common.delete} danger onClose={close} submit={remove}><p>{T.document.deleteText}</p></FormDialog>}</Opens>}
        {mayWrite && !isMissing && <button type="button" class="primary" disabled={busy || (!isNew && !stored)} onClick={() => void save()}>{T.document.save}</button>}
      </Head>
      {error && (isMissing ? <p class="problem" role="alert">{T.document.missing}</p> : <Problem error={error} />)}
      {outdated && <p class="notice rowline" role="alert">{T.document.conflict} <button type="button" onClick={() => void load()}>{T.document.reload}</button></p>}
      {(isNew || stored) && <JsonEditor label={T.database.content} text={text} onChange={setText} readOnly={!mayWrite} rows={17} />}
      {deleted && <p class="notice">{T.document.isDeleted}</p>}
      {(stored?._revs_info || deleted) && <Revisions path={path} winner={(stored ?? deleted)!} onKeep={keep} />}
      {stored && (
        <div class="grid">
          <Card title={T.document.attachments}>
            {attachments.length === 0 && <p class="muted">{T.document.noAttachments}</p>}
            <ul class="list">{attachments.map(([name, { content_type, length }]) => <li key={name} class="rowline spread">{canRequest(encode(name)) ? <a href={urlOf(`${path}/${encode(name)}`)} target="_blank" rel="noopener noreferrer" download={name}>{visible(name)}</a> : <span title={T.common.dots}>{visible(name)}</span>}<span class="rowline"><span class="muted small">{content_type}, {bytes(length)}</span>{mayWrite && canRequest(encode(name)) && <Opens label={T.common.delete} danger>{(close) => <FormDialog title={T.document.detach} action={T.common.delete} danger onClose={close} submit={() => detach(name)}><p>{T.document.detachText(visible(name))}</p></FormDialog>}</Opens>}</span></li>)}</ul>
            {mayWrite && <label class="field"><span>{T.document.upload}</span><input type="file" onChange={(event) => void attach(event.currentTarget)} /></label>}
          </Card>
        </div>
      )}
    </>
  )
}
