// Links of Markdown files.
import { existsSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'

/** The text without blocks of code. */
export const prose = (text) => text.replace(/^```[^]*?^```$/gm, '').replace(/(?<=\n\n)(?: {4}.*\n|\n)+/g, '')
const links = (text) => [...prose(text).replace(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target)

/** The anchors of a text's headings. Of headings with the same text, only the first one has an anchor that is the same everywhere. */
const anchors = (text) =>
  new Set(
    [...prose(text).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
      heading
        .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_\- ]/gu, '')
        .replaceAll(' ', '-')
    )
  )

/** The links of Markdown files, whose paths are below a folder, that lead to no file there or to no heading: "FILE: LINK". */
export function brokenLinks(folder, files) {
  const read = (file) => readFileSync(path.join(folder, file), 'utf8')
  const broken = []
  for (const file of files) {
    for (const link of links(read(file)).filter((link) => !/^[a-z]+:/.test(link))) {
      const [target, anchor] = link.split('#')
      const to = target ? path.join(path.dirname(file), target) : file
      const exists = !to.startsWith('..') && existsSync(path.join(folder, to)) && statSync(path.join(folder, to)).isFile()
      if (!exists || (anchor !== undefined && !anchors(read(to)).has(anchor))) broken.push(`${file}: ${link}`)
    }
  }
  return broken
}
