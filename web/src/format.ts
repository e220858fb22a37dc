// Numbers, bytes and times as the reader's language writes them.
const integer = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })
const short = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3, notation: 'compact' })
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

export const count = (n: number) => integer.format(n)
export const compact = (n: number) => short.format(n)

export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let unit = 0
  while (n >= 1000 && unit < units.length - 1) {
    n /= 1000
    ++unit
  }
  return `${unit === 0 || n >= 100 ? n.toFixed(0) : n.toFixed(1)} ${units[unit]}`
}

/** Of milliseconds: "850 ms", "12.3 s", "4 min", "3 h". */
export function duration(ms: number): string {
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`
  const seconds = ms / 1000
  if (seconds < 100) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`
  const minutes = seconds / 60
  if (minutes < 100) return `${minutes.toFixed(0)} min`
  const hours = minutes / 60
  return hours < 72 ? `${hours.toFixed(0)} h` : `${(hours / 24).toFixed(0)} d`
}

/** Of milliseconds since 1970: the time of day, with the date if it is not today's. */
export function time(ms: number): string {
  const date = new Date(ms)
  return date.toDateString() === new Date().toDateString() ? clock.format(date) : full.format(date)
}

export const exactTime = (ms: number) => `${full.format(new Date(ms))} (${new Date(ms).toISOString()})`

/** The beginning of a text that may be very long. */
export const clip = (text: string, most = 1000) => (text.length > most ? `${text.slice(0, most)} …` : text)

// Control characters, those that change the direction of the text around them, invisible ones except joiners within scripts and
// emoji that need them, and spaces at the ends.
const HIDDEN = /[\0-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|(?<![^\x20-\x7e])[\u200c\u200d\u{e0000}-\u{e007f}]|^ +| +$/gu
/** A name as it is shown: invisible characters are escaped, so that two names that differ look different. */
export const visible = (name: string) => name.replace(HIDDEN, (found) => [...found].map((char) => `\\u${char.codePointAt(0)!.toString(16).padStart(4, '0')}`).join(''))
