// Geometries on a map whose coordinates are longitude and latitude (equirectangular).
export type Position = [number, number, ...number[]]
export interface Geometry {
  type: string
  coordinates?: unknown
  geometries?: Geometry[]
  geometry?: Geometry | null
  features?: Geometry[]
}

/** What is drawn of a geometry: points, and lines of which some enclose an area. */
export interface Shape {
  points: Position[]
  lines: Position[][]
  /** The rings of all polygons. */
  rings: Position[][]
}

/** Places that are in view: its middle, and pixels for each degree. */
export interface View {
  lon: number
  lat: number
  scale: number
  width: number
  height: number
}

// An edge over the antimeridian continues beyond 180°.
function continued(line: Position[]): Position[] {
  let shift = 0
  return line.map((at, i) => {
    const before = line[i - 1]
    const step = before ? at[0] - before[0] : 0
    if (Math.abs(step) > 180 && Math.abs(step) < 360) shift -= Math.sign(step) * 360
    return [at[0] + shift, at[1]]
  })
}

export function shapeOf(geometry: Geometry | null | undefined, shape: Shape = { points: [], lines: [], rings: [] }): Shape {
  if (!geometry) return shape
  const coordinates = geometry.coordinates as never
  const lines = (of: Position[][]) => of.map(continued)
  if (geometry.type === 'Point') shape.points.push(coordinates)
  else if (geometry.type === 'MultiPoint') for (const point of coordinates as Position[]) shape.points.push(point)
  else if (geometry.type === 'LineString') shape.lines.push(continued(coordinates))
  else if (geometry.type === 'MultiLineString') for (const line of lines(coordinates)) shape.lines.push(line)
  else if (geometry.type === 'Polygon') for (const ring of lines(coordinates)) shape.rings.push(ring)
  else if (geometry.type === 'MultiPolygon') for (const ring of (coordinates as Position[][][]).flatMap(lines)) shape.rings.push(ring)
  else for (const part of [geometry.geometry, ...(geometry.geometries ?? []), ...(geometry.features ?? [])]) shapeOf(part, shape)
  return shape
}

/** Western, southern, eastern and northern bound. */
export type Bounds = [number, number, number, number]
export function boundsOf({ points, lines, rings }: Shape): Bounds {
  const bounds: Bounds = [Infinity, Infinity, -Infinity, -Infinity]
  for (const line of [points, ...lines, ...rings]) {
    for (const [x, y] of line) {
      bounds[0] = Math.min(bounds[0], x)
      bounds[1] = Math.min(bounds[1], y)
      bounds[2] = Math.max(bounds[2], x)
      bounds[3] = Math.max(bounds[3], y)
    }
  }
  return bounds
}

export const xOf = (view: View, lon: number) => (lon - view.lon) * view.scale + view.width / 2
export const yOf = (view: View, lat: number) => (view.lat - lat) * view.scale + view.height / 2

/** The longitude from -180 to 180. */
export const normal = (lon: number) => ((((lon + 180) % 360) + 360) % 360) - 180

/** The box in view, as a query has it. */
export function bboxOf({ lon, lat, scale, width, height }: View): Bounds {
  const half = width / 2 / scale
  const isAll = half >= 180
  return [isAll ? -180 : normal(lon - half), Math.max(-90, lat - height / 2 / scale), isAll ? 180 : normal(lon + half), Math.min(90, lat + height / 2 / scale)]
}

const LARGEST_SCALE = 4e6
/** The view within its limits: no smaller than the world, with a latitude in its middle. */
export function limited(view: View): View {
  const scale = Math.max(smallestScale(view), Math.min(LARGEST_SCALE, view.scale))
  const room = Math.max(0, 90 - view.height / 2 / scale)
  return { ...view, scale, lon: normal(view.lon), lat: Math.max(-room, Math.min(room, view.lat)) }
}
export const smallestScale = ({ width, height }: View) => Math.min(width / 360, height / 180)

/** Scaled by `factor`; what is at the pixel stays there. */
export function zoomed(view: View, factor: number, x = view.width / 2, y = view.height / 2): View {
  const scale = limited({ ...view, scale: view.scale * factor }).scale
  const change = 1 / view.scale - 1 / scale
  return limited({ ...view, scale, lon: view.lon + (x - view.width / 2) * change, lat: view.lat - (y - view.height / 2) * change })
}

/** The view of a box, with a margin. */
export function fitted(view: View, [west, south, east, north]: Bounds): View {
  const scale = 0.85 * Math.min(view.width / Math.max(east - west, 0.01), view.height / Math.max(north - south, 0.01))
  return limited({ ...view, scale, lon: (west + east) / 2, lat: (south + north) / 2 })
}

/** The data of an SVG path. Positions that are less than a pixel apart are one. `isClosed`: of rings. */
export function pathOf(view: View, lines: Position[][], shift: number, isClosed: boolean): string {
  let path = ''
  for (const line of lines) {
    let last: [number, number] | undefined
    line.forEach(([lon, lat], i) => {
      const x = Math.round(xOf(view, lon + shift) * 10) / 10
      const y = Math.round(yOf(view, lat) * 10) / 10
      if (last && i < line.length - 1 && Math.abs(x - last[0]) < 1 && Math.abs(y - last[1]) < 1) return
      path += `${last ? 'L' : 'M'}${x} ${y}`
      last = [x, y]
    })
    if (isClosed && last) path += 'Z'
  }
  return path
}

const STEPS = [90, 45, 30, 15, 10, ...[0, 1, 2, 3, 4, 5].flatMap((digits) => [5, 2, 1].map((n) => n / 10 ** digits))]
/** The degrees from one line of the graticule to the next: at least 90 pixels. */
export const stepOf = ({ scale }: View) => STEPS.filter((step) => step * scale >= 90).at(-1) ?? 90

/** A longitude or latitude with its direction: "8.5° E". */
export function degrees(value: number, [positive, negative]: [string, string], digits: number): string {
  const at = Number(value.toFixed(digits))
  return `${Math.abs(at).toFixed(digits)}°${at === 0 ? '' : ` ${at > 0 ? positive : negative}`}`
}
