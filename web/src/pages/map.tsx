// A map of a spatial index: the features in view. No tiles: nothing is requested but of this server. docs/spatial.md
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { documentPath, get, getExact } from '../api'
import { Card, Loaded, Problem } from '../components/basics'
import { type DesignFunction, FunctionSelect, IndexState, Sample, useFunctions } from '../components/designs'
import { bboxOf, type Bounds, boundsOf, degrees, fitted, type Geometry, limited, normal, pathOf, type Shape, shapeOf, smallestScale, stepOf, type View, xOf, yOf, zoomed } from '../geo'
import { visible } from '../format'
import { useResource } from '../resource'
import { href } from '../router'
import { T } from '../texts'

interface Row {
  id: string
  geometry: Geometry
}
interface Feature extends Row {
  shape: Shape
  bounds: Bounds
}
const LIMIT = 200
const LISTED = 1000

const SAMPLE = { st_indexes: { position: { index: 'function (doc) { if (doc.geometry) st_index(doc.geometry); }' } } }
const SAMPLE_DOCUMENT = { geometry: { type: 'Point', coordinates: [8.55, 47.37] } }

function useFeatures(index: DesignFunction, bbox: string) {
  const [state, setState] = useState<{ bbox: string; features: Feature[]; bookmark?: string; hasMore: boolean }>({ bbox: '', features: [], hasMore: false })
  const [error, setError] = useState<Error>()
  // Of the present box.
  const current = useRef<AbortSignal>(undefined)
  const load = async (after: string | undefined, before: Feature[], signal = current.current!) => {
    try {
      const params = new URLSearchParams({ bbox, limit: String(LIMIT), ...(after && { bookmark: after }) })
      const { rows, bookmark } = await get<{ rows: Row[]; bookmark?: string }>(`${index.path}?${params}`, signal)
      const more = rows.map((row) => {
        const shape = shapeOf(row.geometry)
        return { ...row, shape, bounds: boundsOf(shape) }
      })
      setState({ bbox, features: [...before, ...more], hasMore: rows.length === LIMIT, ...(bookmark && { bookmark }) })
      setError(undefined)
    } catch (failure) {
      if (!signal.aborted) setError(failure as Error)
    }
  }
  useEffect(() => {
    if (!bbox) return
    const abort = new AbortController()
    current.current = abort.signal
    // Of a map that is being moved, only places where it stays are requested.
    const timer = setTimeout(() => void load(undefined, [], abort.signal), 150)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [index.path, bbox])
  const isCurrent = state.bbox === bbox && bbox !== ''
  return { ...state, error, isCurrent, more: () => void (isCurrent && load(state.bookmark, state.features)) }
}

function Graticule({ view }: { view: View }) {
  const step = stepOf(view)
  const digits = Math.max(0, Math.ceil(-Math.log10(step)))
  const halfWidth = view.width / 2 / view.scale
  const halfHeight = view.height / 2 / view.scale
  const lines = (from: number, to: number) => Array.from({ length: Math.max(0, Math.floor(to / step) - Math.ceil(from / step) + 1) }, (_, i) => (Math.ceil(from / step) + i) * step)
  const [top, bottom] = [Math.max(0, yOf(view, 90)), Math.min(view.height, yOf(view, -90))]
  return (
    <>
      <rect class="sea" x={0} y={top} width={view.width} height={Math.max(0, bottom - top)} />
      {lines(view.lon - halfWidth, view.lon + halfWidth).map((lon) => {
        const x = xOf(view, lon)
        return <g key={`x${lon}`}><line class={normal(lon) === 0 ? 'axis' : ''} x1={x} x2={x} y1={top} y2={bottom} />{x > 60 && x < view.width - 20 && <text x={x + 4} y={bottom - 6}>{degrees(normal(lon), ['E', 'W'], digits)}</text>}</g>
      })}
      {lines(Math.max(-90, view.lat - halfHeight), Math.min(90, view.lat + halfHeight)).map((lat) => {
        const y = yOf(view, lat)
        return <g key={`y${lat}`}><line class={lat === 0 ? 'axis' : ''} x1={0} x2={view.width} y1={y} y2={y} />{y > top + 12 && y < bottom - 24 && <text x={6} y={y - 4}>{degrees(lat, ['N', 'S'], digits)}</text>}</g>
      })}
    </>
  )
}

function Drawn({ feature, view, isChosen, onChoose }: { feature: Feature; view: View; isChosen: boolean; onChoose: () => void }) {
  const half = view.width / 2 / view.scale
  const { points, lines, rings } = feature.shape
  // The world repeats to the east and the west.
  const shifts = [-360, 0, 360].filter((shift) => feature.bounds[2] + shift >= view.lon - half && feature.bounds[0] + shift <= view.lon + half)
  return (
    <g class={`feature ${isChosen ? 'chosen' : ''}`} onClick={onChoose}>
      <title>{visible(feature.id)}</title>
      {shifts.map((shift) => (
        <g key={shift}>
          {rings.length > 0 && <path class="area" d={pathOf(view, rings, shift, true)} />}
          {lines.length > 0 && <path class="linear" d={pathOf(view, lines, shift, false)} />}
          {points.map(([lon, lat], i) => <circle key={i} cx={xOf(view, lon + shift)} cy={yOf(view, lat)} r={isChosen ? 7 : 5} />)}
        </g>
      ))}
    </g>
  )
}

// A press of an arrow, as a share of what is in view.
const ARROWS: Record<string, [number, number]> = { ArrowLeft: [-0.2, 0], ArrowRight: [0.2, 0], ArrowUp: [0, 0.2], ArrowDown: [0, -0.2] }

/** Moves and scales the view by pointer, wheel and keyboard. */
function Frame({ features, chosen, onChoose, view, setView }: { features: Feature[]; chosen: string | undefined; onChoose: (id: string) => void; view: View | undefined; setView: (change: (before: View) => View) => void }) {
  const box = useRef<HTMLDivElement>(null)
  const pointers = useRef(new Map<number, [number, number]>())
  const moved = useRef(0)
  useEffect(() => {
    const element = box.current!
    const measured = () => {
      const { clientWidth: width, clientHeight: height } = element
      if (width > 0) setView((before) => limited(before.width ? { ...before, width, height } : { lon: 0, lat: 0, scale: 0, width, height }))
    }
    const observer = new ResizeObserver(measured)
    observer.observe(element)
    const onWheel = (event: WheelEvent) => {
      event.preventDefault()
      const { left, top } = element.getBoundingClientRect()
      const pixels = event.deltaY * (event.deltaMode === 0 ? 1 : 30)
      setView((before) => zoomed(before, Math.exp(-Math.max(-200, Math.min(200, pixels)) / 300), event.clientX - left, event.clientY - top))
    }
    element.addEventListener('wheel', onWheel, { passive: false })
    return () => {
      observer.disconnect()
      element.removeEventListener('wheel', onWheel)
    }
  }, [])
  // The middle of the pointers that are down, and the distance of two.
  const grip = () => {
    const [a, b = a] = [...pointers.current.values()]
    return { x: (a![0] + b![0]) / 2, y: (a![1] + b![1]) / 2, spread: Math.hypot(a![0] - b![0], a![1] - b![1]) }
  }
  const onPointerMove = (event: PointerEvent) => {
    if (!pointers.current.has(event.pointerId)) return
    const before = grip()
    pointers.current.set(event.pointerId, [event.clientX, event.clientY])
    const after = grip()
    moved.current += Math.hypot(after.x - before.x, after.y - before.y)
    // A click stays one until the pointer has moved; a captured one does not reach the feature.
    if (moved.current > 4) box.current!.setPointerCapture(event.pointerId)
    const { left, top } = box.current!.getBoundingClientRect()
    setView((view) => zoomed(limited({ ...view, lon: view.lon - (after.x - before.x) / view.scale, lat: view.lat + (after.y - before.y) / view.scale }), before.spread > 0 && after.spread > 0 ? after.spread / before.spread : 1, after.x - left, after.y - top))
  }
  const release = (event: PointerEvent) => void pointers.current.delete(event.pointerId)
  const onKeyDown = (event: KeyboardEvent) => {
    const arrow = ARROWS[event.key]
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (arrow) setView((before) => limited({ ...before, lon: before.lon + (arrow[0] * before.width) / before.scale, lat: before.lat + (arrow[1] * before.height) / before.scale }))
    else if (event.key === '+' || event.key === '=') setView((before) => zoomed(before, 2))
    else if (event.key === '-') setView((before) => zoomed(before, 0.5))
    else if (event.key === '0') setView(whole)
    else return
    event.preventDefault()
  }
  return (
    <div ref={box} class="map" tabIndex={0} role="application" aria-label={T.map.label} aria-describedby="map-keys" onKeyDown={onKeyDown} onPointerDown={(event) => {
      if (event.button !== 0) return
      if (pointers.current.size === 0) moved.current = 0
      pointers.current.set(event.pointerId, [event.clientX, event.clientY])
    }} onPointerMove={onPointerMove} onPointerUp={release} onPointerCancel={release} onPointerLeave={release}>
      {view && (
        <svg width={view.width} height={view.height} aria-hidden="true">
          <Graticule view={view} />
          {features.map((feature, i) => <Drawn key={`${feature.id} ${i}`} feature={feature} view={view} isChosen={feature.id === chosen} onChoose={() => moved.current <= 4 && onChoose(feature.id)} />)}
        </svg>
      )}
    </div>
  )
}

const whole = (view: View): View => limited({ ...view, lon: 0, lat: 0, scale: smallestScale(view) })

/** The document of a feature. */
function Chosen({ database, id, onClose }: { database: string; id: string; onClose: () => void }) {
  const document = useResource<unknown>(`/${documentPath(database, id)}`, 0, getExact)
  return (
    <section class="card" aria-label={visible(id)}>
      <div class="rowline spread"><h2><a href={href(['databases', database, 'documents', id])}>{visible(id)}</a></h2><button type="button" onClick={onClose}>{T.common.close}</button></div>
      <Loaded of={document}>{(data) => <pre tabIndex={0} class="content">{JSON.stringify(data, null, 2)}</pre>}</Loaded>
    </section>
  )
}

function place({ bounds: [west, south, east, north] }: Feature): string {
  const at = (lon: number, lat: number) => `${degrees(lat, ['N', 'S'], 3)}, ${degrees(normal(lon), ['E', 'W'], 3)}`
  return west === east && south === north ? at(west, south) : `${at(west, south)} – ${at(east, north)}`
}

function IndexMap({ database, index }: { database: string; index: DesignFunction }) {
  const [view, setStoredView] = useState<View>()
  const [chosen, setChosen] = useState<string>()
  const setView = (change: (before: View) => View) => setStoredView((before) => change(before ?? { lon: 0, lat: 0, scale: 0, width: 0, height: 0 }))
  const bbox = view ? bboxOf(view).map((bound) => Number(bound.toFixed(6))).join(',') : ''
  const { features, hasMore, isCurrent, error, more } = useFeatures(index, bbox)
  const all = useMemo(() => boundsOf({ points: features.flatMap(({ bounds: [west, south, east, north] }): Shape['points'] => [[west, south], [east, north]]), lines: [], rings: [] }), [features])
  return (
    <>
      <div class="rowline">
        <button type="button" aria-label={T.map.zoomIn} title={T.map.zoomIn} onClick={() => setView((before) => zoomed(before, 2))}>+</button>
        <button type="button" aria-label={T.map.zoomOut} title={T.map.zoomOut} onClick={() => setView((before) => zoomed(before, 0.5))}>−</button>
        <button type="button" onClick={() => setView(whole)}>{T.map.world}</button>
        <button type="button" disabled={features.length === 0} onClick={() => setView((before) => fitted(before, all))}>{T.map.fit}</button>
        <span role="status" class="small">{isCurrent ? T.map.shown(features.length, hasMore) : T.common.loading}</span>
        {isCurrent && hasMore && <button type="button" onClick={more}>{T.map.more}</button>}
      </div>
      {error && <Problem error={error} />}
      <div class="mapbox">
        <Frame features={features} chosen={chosen} onChoose={setChosen} view={view} setView={setView} />
        {chosen !== undefined && <Chosen key={chosen} database={database} id={chosen} onClose={() => setChosen(undefined)} />}
      </div>
      <p class="muted small" id="map-keys">{T.map.keys}</p>
      <IndexState of={index} />
      <Card title={T.map.list}>
        {features.length === 0 ? <p class="muted">{T.map.nothing}</p> : (
          <><ul class="list places">{features.slice(0, LISTED).map((feature, i) => <li key={`${feature.id} ${i}`} class="rowline spread"><button type="button" class="link" aria-pressed={feature.id === chosen} onClick={() => setChosen(feature.id)}>{visible(feature.id)}</button><span class="muted small">{feature.geometry.type}, {place(feature)}</span></li>)}</ul>{features.length > LISTED && <p class="muted small">{T.map.firstListed(LISTED)}</p>}</>
        )}
      </Card>
    </>
  )
}

export function SpatialMap({ name }: { name: string }) {
  const indexes = useFunctions(name, 'st_indexes')
  const [path, setPath] = useState<string>()
  return (
    <Loaded of={indexes}>
      {(all) => {
        const index = all.find((each) => each.path === path) ?? all[0]
        if (!index) return <Sample database={name} title={T.map.none} hint={T.map.noneHint} id="_design/map" design={SAMPLE} onCreated={indexes.reload}><span>{T.map.example} <code>{JSON.stringify(SAMPLE_DOCUMENT)}</code></span></Sample>
        return (
          <>
            {all.length > 1 && <div class="rowline"><FunctionSelect label={T.map.index} of={all} value={index} onChange={setPath} /></div>}
            <IndexMap key={index.path} database={name} index={index} />
          </>
        )
      }}
    </Loaded>
  )
}
