// Requests to the server, which is the one that serves this page.
import { signal } from '@preact/signals'
import { clip } from './format'
import { T } from './texts'

/** A response with an error status; with the status 0, of a request that browsers cannot send. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly error: string,
    readonly reason: string,
  ) {
    super(clip(reason || error || T.connection.status(status)))
  }
}

/** Whether the last request had a response. */
export const isConnected = signal(true)
/** How many requests for what a page shows have had no response for a while. */
export const waiting = signal(0)
/** How many responses said that the user may not do this, perhaps because the session has ended. */
export const unauthorized = signal(0)

// Pages are below /_utils/.
const base = new URL('..', document.baseURI)

export const encode = encodeURIComponent
/** The path of a document; `_design/` and `_local/` keep their slash. */
export function documentPath(database: string, id: string): string {
  const special = /^(_design|_local)\/(.*)$/s.exec(id)
  return `${encode(database)}/${special ? `${special[1]}/${encode(special[2]!)}` : encode(id)}`
}

// Browsers take such a segment of a path, also if it is percent-encoded, for one of folders: the request would be another one.
const DOTS = /^(\.|%2e){1,2}$/i

export const canRequest = (path: string) => !path.split('?')[0]!.split('/').some((segment) => DOTS.test(segment))

export function urlOf(path: string): string {
  if (!canRequest(path)) throw new ApiError(0, 'bad_request', T.common.dots)
  return new URL(path.replace(/^\//, ''), base).href
}

async function send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { Accept: 'application/json' }
  if (body instanceof Blob) headers['Content-Type'] = body.type || 'application/octet-stream'
  else if (method !== 'GET') headers['Content-Type'] = 'application/json'
  const url = urlOf(path)
  let response: Response
  try {
    response = await fetch(url, {
      method, headers, signal: signal ?? null, cache: 'no-store', credentials: 'same-origin',
      body: body === undefined ? null : typeof body === 'string' || body instanceof Blob ? body : JSON.stringify(body),
    })
  } catch (error) {
    if (!signal?.aborted) isConnected.value = false
    throw error
  }
  isConnected.value = true
  if (response.ok) return response
  const { error = '', reason = '' } = await response.json().catch(() => ({}))
  if (response.status === 401) ++unauthorized.value
  throw new ApiError(response.status, error || response.statusText, reason)
}

// Of ECMAScript 2026.
const { rawJSON, isRawJSON = () => false } = JSON as { rawJSON?: (text: string) => unknown; isRawJSON?: (value: unknown) => boolean }
export { isRawJSON }
// What such a number has; other texts are parsed in a fifth of the time.
const CHANGED = /\d[eE]|[\d.]{16}|\.\d*0(?!\d)|0\.0{6}|-0(?![\d.])/
/** As JSON.parse; numbers that JavaScript would change (1.0, and integers of more than 53 bits) stay as they are when they are written again. */
export const parseExact = <T>(text: string): T =>
  JSON.parse(text, !rawJSON || !CHANGED.test(text) ? undefined : ((_: string, value: unknown, context?: { source: string }) => (context && typeof value === 'number' && String(value) !== context.source ? rawJSON(context.source) : value)) as (key: string, value: unknown) => unknown) as T
export const getExact = async <T>(path: string, signal?: AbortSignal) => parseExact<T>(await (await send('GET', path, undefined, signal)).text())
/** As request(); `exact`: the same response, by parseExact(). For what is shown only: such numbers are objects. */
export async function requestExact<T>(method: string, path: string, body?: unknown): Promise<T & { exact: T }> {
  const text = await (await send(method, path, body)).text()
  return { ...(JSON.parse(text) as T), exact: parseExact<T>(text) }
}

/** `body`: JSON as text, a file, or what is sent as JSON. Returns the response's JSON. Throws ApiError, or TypeError if there is no response. */
export async function request<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await send(method, path, body, signal)
  return (await response.json()) as T
}

export const get = <T>(path: string, signal?: AbortSignal) => request<T>('GET', path, undefined, signal)

/** For catch(): undefined if what was requested has been removed meanwhile, or cannot be requested. */
export function ifFound(error: unknown): undefined {
  if (!(error instanceof ApiError) || (error.status !== 404 && error.status !== 0)) throw error
}

/**
 * Calls `onRow` with each line of a continuous feed, and resolves when the feed ends. Lines that are empty (heartbeats) are
 * skipped. Calls `onOpen` when the response begins.
 */
export async function follow<T>(path: string, onOpen: () => void, onRow: (row: T) => void, signal: AbortSignal): Promise<void> {
  const response = await send('GET', path, undefined, signal)
  onOpen()
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      const lines = (rest + value).split('\n')
      rest = lines.pop()!
      for (const line of lines) if (line.trim()) onRow(JSON.parse(line) as T)
    }
  } finally {
    // After a line that is not JSON, the rest is not read.
    await reader.cancel().catch(() => {})
  }
}
