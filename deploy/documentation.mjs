// Writes the documentation that the package installs: docs/ with CHANGELOG.md, the files that they link to, and the reference of the
// HTTP API, at the paths of the repository. So each link leads to a file.
//   node deploy/documentation.mjs FOLDER
import { cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeReference } from '../docs/openapi/reference.mjs'

const folder = process.argv[2]
if (!folder) {
  console.error('usage: node deploy/documentation.mjs FOLDER')
  process.exit(2)
}
const root = fileURLToPath(new URL('../', import.meta.url))

const files = new Set(['CHANGELOG.md'])
for (const at of ['docs', 'docs/decisions'])
  for (const name of readdirSync(path.join(root, at))) if (name.endsWith('.md')) files.add(path.join(at, name))
// Also those that are added meanwhile.
for (const file of files) {
  const links = file.endsWith('.md') ? readFileSync(path.join(root, file), 'utf8').matchAll(/\]\(([^)\s:#]+)/g) : []
  for (const [, link] of links) {
    const target = path.join(path.dirname(file), link)
    if (existsSync(path.join(root, target)) && statSync(path.join(root, target)).isFile()) files.add(target)
  }
}
for (const file of files) cpSync(path.join(root, file), path.join(folder, file))
writeReference(path.join(folder, 'docs/api'))
