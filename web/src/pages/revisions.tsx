// The revisions of a document as a tree, and how each differs from the winner.
import { useEffect, useState } from 'preact/hooks'
import { ApiError, get, getExact } from '../api'
import { Card, FormDialog, Opens, Problem, State } from '../components/basics'
import { diff, sortedText } from '../diff'
import { T } from '../texts'

export interface Stored {
  _id: string
  _rev: string
  _deleted?: boolean
  _conflicts?: string[]
  _deleted_conflicts?: string[]
  _revs_info?: RevisionInfo[]
  _attachments?: Record<string, { content_type: string; length: number }>
  [member: string]: unknown
}
interface RevisionInfo {
  rev: string
  status: 'available' | 'missing' | 'deleted'
}
/** Without members that only describe the revision. */
export function contentOf({ _conflicts, _deleted_conflicts, _revs_info, _attachments, ...rest }: Stored): Record<string, unknown> {
  return _attachments ? { ...rest, _attachments } : rest
}

interface Leaf {
  rev: string
  kind: 'winner' | 'conflict' | 'deleted'
}
interface Node extends RevisionInfo {
  lane: number
  parent?: string
  children: number
  leaf?: Leaf
  /** How many revisions this row stands for. */
  count: number
}
const MOST_LEAVES = 20
// A longer chain of revisions that are not stored is one row.
const SHORTEST_GAP = 4
const generation = (rev: string) => Number.parseInt(rev, 10)

/** The rows of the tree, the newest generations first. `paths`: from each leaf to the first revision. */
function rowsOf(leaves: Leaf[], paths: RevisionInfo[][]): Node[] {
  const nodes = new Map<string, Node>()
  paths.forEach((path, lane) => path.forEach(({ rev, status }, i) => {
    const known = nodes.get(rev)
    // The paths from here on are the same.
    if (known) return void (status === 'missing' || (known.status = status))
    const parent = path[i + 1]?.rev
    const leaf = i === 0 ? leaves[lane] : undefined
    nodes.set(rev, { rev, status, lane, children: 0, count: 1, ...(parent && { parent }), ...(leaf && { leaf }) })
  }))
  for (const { parent } of nodes.values()) if (parent) ++nodes.get(parent)!.children
  const isPlain = (node: Node | undefined) => node?.status === 'missing' && node.children === 1 && !node.leaf
  for (const node of [...nodes.values()].sort((a, b) => generation(b.rev) - generation(a.rev))) {
    if (!nodes.has(node.rev) || !isPlain(node)) continue
    const chain = [node]
    for (let next = nodes.get(node.parent ?? ''); next && isPlain(next) && next.lane === node.lane; next = nodes.get(next.parent ?? '')) chain.push(next)
    if (chain.length < SHORTEST_GAP) continue
    for (const { rev } of chain.slice(1)) nodes.delete(rev)
    node.count = chain.length
    const { parent } = chain.at(-1)!
    if (parent) node.parent = parent
    else delete node.parent
  }
  return [...nodes.values()].sort((a, b) => generation(b.rev) - generation(a.rev) || a.lane - b.lane)
}

const ROW = 34
const LANE = 20
const xOf = (lane: number) => 14 + lane * LANE
const yOf = (row: number) => ROW / 2 + row * ROW

function Graph({ rows, chosen }: { rows: Node[]; chosen: string | undefined }) {
  const places = new Map(rows.map(({ rev }, i) => [rev, i]))
  const kinds = rows.reduce<string[]>((all, { lane, leaf }) => (leaf && (all[lane] = leaf.kind), all), [])
  return (
    <svg class="graph" width={xOf(Math.max(...rows.map(({ lane }) => lane))) + 14} height={rows.length * ROW} aria-hidden="true">
      {rows.map(({ rev, lane, parent }, i) => {
        const to = places.get(parent ?? '')
        if (to === undefined) return null
        const [x, y, px, py] = [xOf(lane), yOf(i), xOf(rows[to]!.lane), yOf(to)]
        return <path key={rev} class={kinds[lane]} d={x === px ? `M${x} ${y}V${py}` : `M${x} ${y}V${py - ROW}C${x} ${py - ROW / 3} ${px} ${py - (ROW * 2) / 3} ${px} ${py}`} />
      })}
      {rows.map(({ rev, lane, status, count }, i) => <circle key={rev} class={`${kinds[lane]} ${status === 'missing' ? 'gone' : ''}`} cx={xOf(lane)} cy={yOf(i)} r={rev === chosen ? 7 : count > 1 ? 3 : 5} />)}
    </svg>
  )
}

function Revision({ path, node: { rev, leaf }, winner, onKeep, hasConflicts }: { path: string; node: Node; winner: Stored; onKeep: (rev: string) => Promise<boolean>; hasConflicts: boolean }) {
  const [document, setDocument] = useState<Stored>()
  const [error, setError] = useState<Error>()
  const isWinner = rev === winner._rev
  useEffect(() => {
    const abort = new AbortController()
    if (isWinner) setDocument(winner)
    else getExact<Stored>(`${path}?rev=${rev}`, abort.signal).then(setDocument, (failure: Error) => abort.signal.aborted || setError(failure))
    return () => abort.abort()
  }, [])
  const text = (stored: Stored) => sortedText({ ...contentOf(stored), _rev: undefined })
  const lines = document && !isWinner ? diff(text(document), text(winner)) : []
  const canBeKept = hasConflicts && leaf && leaf.kind !== 'deleted'
  return (
    <section class="revision" aria-label={rev}>
      <div class="rowline spread"><h3 class="mono">{rev}</h3>
        {canBeKept && <Opens label={T.document.keep}>{(close) => <FormDialog title={T.document.keep} action={T.document.keep} onClose={close} submit={() => onKeep(rev)}><p>{T.document.keepText}</p></FormDialog>}</Opens>}
      </div>
      {error && (error instanceof ApiError && error.status === 404 ? <p class="notice">{T.revisions.goneText}</p> : <Problem error={error} />)}
      {document && (isWinner ? <pre tabIndex={0} class="content">{JSON.stringify(contentOf(document), null, 2)}</pre> : (
        <>
          {lines.every(({ kind }) => kind === ' ') ? <p>{T.revisions.same}</p> : (
            <>
              <p class="small muted">{T.revisions.legend}</p>
              <pre tabIndex={0} class="content diff">{lines.map(({ text: line, kind }, i) => (kind === ' ' ? <span key={i}>{`  ${line}\n`}</span> : kind === '-' ? <del key={i}>{`− ${line}\n`}</del> : <ins key={i}>{`+ ${line}\n`}</ins>))}</pre>
            </>
          )}
          <details><summary>{T.revisions.content}</summary><pre tabIndex={0} class="content">{JSON.stringify(contentOf(document), null, 2)}</pre></details>
        </>
      ))}
    </section>
  )
}

/** `winner`: with its _revs_info, conflicts and deleted conflicts. */
export function Revisions({ path, winner, onKeep }: { path: string; winner: Stored; onKeep: (rev: string) => Promise<boolean> }) {
  const [rows, setRows] = useState<Node[]>([])
  const [left, setLeft] = useState(0)
  const [chosen, setChosen] = useState<string>()
  const conflicts = winner._conflicts ?? []
  useEffect(() => {
    const abort = new AbortController()
    const leaves: Leaf[] = [
      { rev: winner._rev, kind: winner._deleted ? 'deleted' : 'winner' },
      ...conflicts.map((rev): Leaf => ({ rev, kind: 'conflict' })),
      ...(winner._deleted_conflicts ?? []).map((rev): Leaf => ({ rev, kind: 'deleted' })),
    ]
    const shown = leaves.slice(0, MOST_LEAVES)
    const load = async ({ rev }: Leaf): Promise<RevisionInfo[]> => {
      if (rev === winner._rev && winner._revs_info) return winner._revs_info
      const { _revs_info } = await get<Stored>(`${path}?rev=${rev}&revs_info=true`, abort.signal).catch((error: unknown) => {
        if (error instanceof ApiError) return { _revs_info: undefined }
        throw error
      })
      return _revs_info ?? [{ rev, status: 'missing' }]
    }
    Promise.all(shown.map(load)).then((paths) => {
      if (abort.signal.aborted) return
      setRows(rowsOf(shown, paths))
      setLeft(leaves.length - shown.length)
    }, () => {})
    return () => abort.abort()
  }, [path, winner])
  const node = rows.find(({ rev }) => rev === chosen)
  return (
    <Card title={T.revisions.title}>
      {conflicts.length === 0 ? <p class="muted">{T.document.noConflicts}</p> : <p class="notice">{T.revisions.conflicts(conflicts.length)}</p>}
      {rows.length > 0 && (
        <div class="revisions">
          <Graph rows={rows} chosen={chosen} />
          <ol>
            {rows.map(({ rev, status, leaf, count }) => (
              <li key={rev} style={{ height: `${ROW}px` }}>
                {count > 1 ? <span class="muted">{T.revisions.gap(count)}</span> : status === 'missing' ? <span class="mono muted name">{rev}</span> : <button type="button" class="link mono name" aria-pressed={rev === chosen} onClick={() => setChosen(rev === chosen ? undefined : rev)}>{rev}</button>}
                {rev === winner._rev && <State name={T.document.winner} mood="good" />}
                {leaf?.kind === 'conflict' && <State name={T.revisions.conflict} mood="warn" />}
                {leaf?.kind === 'deleted' && <State name={T.database.deleted} mood="bad" />}
                {status === 'missing' && count === 1 && <State name={T.revisions.gone} />}
              </li>
            ))}
          </ol>
        </div>
      )}
      {left > 0 && <p class="muted small">{T.revisions.left(left)}</p>}
      {node && <Revision key={`${winner._rev} ${node.rev}`} path={path} node={node} winner={winner} onKeep={onKeep} hasConflicts={conflicts.length > 0} />}
    </Card>
  )
}
