// What all design documents of all databases define.
import { documentPath, encode, get, ifFound } from './api'

export interface Design {
  database: string
  id: string
  body: { language?: string; views?: Record<string, unknown>; indexes?: Record<string, unknown>; st_indexes?: Record<string, unknown>; triggers?: Record<string, unknown> }
}

// Those of more would take too many requests.
export const MOST_DATABASES = 500
const LANES = 4

/** The results of `map` for each element, with a few requests at a time. */
export async function mapAll<From, To>(from: readonly From[], map: (each: From) => Promise<To>): Promise<To[]> {
  const results: To[] = []
  let next = 0
  const lane = async () => {
    for (let i = next++; i < from.length; i = next++) results[i] = await map(from[i]!)
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  return results
}

export async function allDesigns(signal: AbortSignal): Promise<{ designs: Design[]; isAll: boolean }> {
  const names = await get<string[]>('/_all_dbs', signal)
  const lists = await mapAll(names.slice(0, MOST_DATABASES), async (database) => {
    const found = await get<{ rows: { id: string; doc: Design['body'] }[] }>(`/${encode(database)}/_design_docs?include_docs=true`, signal).catch(ifFound)
    return (found?.rows ?? []).map(({ id, doc }) => ({ database, id, body: doc }))
  })
  return { designs: lists.flat(), isAll: names.length <= MOST_DATABASES }
}

/** The path of what a design document defines. */
export const designPath = ({ database, id }: { database: string; id: string }, ...rest: string[]) => `/${[documentPath(database, id), ...rest.map(encode)].join('/')}`
