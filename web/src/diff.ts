// The lines in which two texts differ.
import { isRawJSON } from './api'

export interface Line {
  text: string
  /** In the old text only: -, in the new one only: +. */
  kind: '-' | '+' | ' '
}
// Pairs of lines that are compared; of larger texts, all lines between the first and the last difference differ.
const MOST_PAIRS = 4_000_000

export function diff(before: string, after: string): Line[] {
  const a = before.split('\n')
  const b = after.split('\n')
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) ++start
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) ++end
  const lines = (of: string[], kind: Line['kind']) => of.map((text): Line => ({ text, kind }))
  return [...lines(a.slice(0, start), ' '), ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)), ...lines(a.slice(a.length - end), ' ')]
}

// By the longest common subsequence.
function middle(a: string[], b: string[]): Line[] {
  const isLarge = a.length * b.length > MOST_PAIRS
  const width = b.length + 1
  const lengths = new Uint32Array(isLarge ? 0 : (a.length + 1) * width)
  if (!isLarge) for (let i = a.length - 1; i >= 0; --i) for (let j = b.length - 1; j >= 0; --j) lengths[i * width + j] = a[i] === b[j] ? lengths[(i + 1) * width + j + 1]! + 1 : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!)
  const out: Line[] = []
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (!isLarge && i < a.length && j < b.length && a[i] === b[j]) {
      out.push({ text: a[i]!, kind: ' ' })
      ++i
      ++j
    } else if (i < a.length && (isLarge || j === b.length || lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!)) out.push({ text: a[i++]!, kind: '-' })
    else out.push({ text: b[j++]!, kind: '+' })
  }
  return out
}

/** JSON with sorted members: their order is no difference. */
export function sortedText(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'object' && member !== null && !Array.isArray(member) && !isRawJSON(member) ? Object.fromEntries(Object.entries(member).sort(([x], [y]) => (x < y ? -1 : 1))) : member), 2)
}
