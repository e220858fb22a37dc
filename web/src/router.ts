// The page is in the fragment of the address: #/jobs/mail/welcome?state=failed. Segments are percent-encoded.
import { computed, signal } from '@preact/signals'
import { encode } from './api'

const hash = signal(location.hash)
addEventListener('hashchange', () => (hash.value = location.hash))

export interface Route {
  segments: string[]
  query: URLSearchParams
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

export const route = computed<Route>(() => {
  const [path = '', query = ''] = hash.value.replace(/^#\/?/, '').split('?')
  return { segments: path.split('/').filter(Boolean).map(decoded), query: new URLSearchParams(query) }
})

/** The address of a page. */
export function href(segments: string[], query: Record<string, string | undefined> = {}): string {
  const members = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '')
  const text = new URLSearchParams(members).toString()
  return `#/${segments.map(encode).join('/')}${text && `?${text}`}`
}

export function go(segments: string[], query?: Record<string, string | undefined>): void {
  location.hash = href(segments, query)
}
