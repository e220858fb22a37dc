// The links of all Markdown files, as a web host of the repository shows them, and in the site (docs/site).
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { describe } from '../docs/openapi/build.mjs'
import { reference } from '../docs/openapi/reference.mjs'
import { brokenLinks, prose } from './support/links.mjs'
import { METHODS } from './support/openapi.mjs'
import { temporaryDirectory } from './support/server.mjs'

const root = fileURLToPath(new URL('../', import.meta.url))
const read = (file) => readFileSync(path.join(root, file), 'utf8')
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], { cwd: root, encoding: 'utf8' }).trim().split('\n')

const api = describe()
const operations = Object.entries(api.paths).flatMap(([route, item]) => METHODS.filter((method) => item[method]).map((method) => `${method.toUpperCase()} ${route}`))
const ofReference = new Map(reference(api).map(([name, text]) => [`docs/api/${name}`, text]))

test('docs_links: the links of all Markdown files lead to files and headings that exist', () => {
  assert.ok(files.includes('README.md') && files.length > 50)
  assert.deepEqual(brokenLinks(root, files), [])
})

test('docs_links: so do those of the documentation that the package installs', () => {
  const folder = temporaryDirectory()
  execFileSync('node', [path.join(root, 'deploy/documentation.mjs'), folder])
  const installed = readdirSync(folder, { recursive: true })
  for (const file of ['CHANGELOG.md', 'docs/operations.md', 'docs/architecture.svg', 'docs/api/jobs.md', 'deploy/kubernetes/divan.yaml']) assert.ok(installed.includes(file), file)
  assert.deepEqual(brokenLinks(folder, installed.filter((name) => name.endsWith('.md'))), [])
})

// Python's Markdown, which makes the site, requires four spaces before what is in a list item, and an empty line before a list.
test('docs_links: lists are indented so that the site shows what others show', () => {
  for (const file of files) {
    const text = read(file).replace(/^```[^]*?^```$/gm, '')
    assert.doesNotMatch(text, /^ {1,3}([-*]|\d\.) /m, `nested lists of ${file}`)
    assert.doesNotMatch(text, /\n\n( {1,3}| {7})\S/, `paragraphs and code in lists of ${file}`)
  }
})

test('docs_links: the navigation of the site has each page of docs once', () => {
  const listed = [...read('docs/site/mkdocs.yml').matchAll(/^ *- (?:.*: )?(docs\/(?:api\/)?[^/]*\.md)$/gm)].map(([, file]) => file)
  const pages = [...files.filter((file) => /^docs\/[^/]*\.md$/.test(file)), ...ofReference.keys()]
  assert.deepEqual(listed.sort(), pages.sort())
})

test('docs_links: the reference of the HTTP API has each operation', () => {
  const written = [...ofReference.values()].flatMap((text) => [...text.matchAll(/^```\n([A-Z]+ \/.*)\n```$/gm)].map(([, operation]) => operation))
  assert.ok(operations.length > 100)
  assert.deepEqual(written.sort(), [...operations].sort())
})

const withoutMkdocs = spawnSync('mkdocs', ['--version']).status !== 0 && 'there is no mkdocs'
test('docs_links: the site builds, its links hold, and it loads nothing from elsewhere', { skip: withoutMkdocs }, () => {
  const site = temporaryDirectory()
  const { status, stderr } = spawnSync('mkdocs', ['build', '--strict', '--quiet', '-f', path.join(root, 'docs/site/mkdocs.yml'), '-d', site], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)

  const pages = new Map()
  for (const name of readdirSync(site, { recursive: true }).filter((name) => name.endsWith('.html'))) {
    pages.set(name, readFileSync(path.join(site, name), 'utf8'))
  }
  for (const [file, text] of [...files.map((file) => [file, read(file)]), ...ofReference]) {
    const page = pages.get(file.replace(/README\.md$/, 'index.md').replace(/md$/, 'html'))
    assert.ok(page, file)
    const items = prose(text).match(/^ *([-*]|\d\.) /gm) ?? []
    assert.equal(page.match(/<article[^]*<\/article>/)[0].match(/<li>/g)?.length ?? 0, items.length, `items of lists in ${file}`)
  }
  const broken = []
  for (const [name, html] of pages) {
    if (name === '404.html') continue // Its links are those of a site at the root of a host.
    for (const [, element, attribute, value] of html.matchAll(/<(\w+)\b[^>]*? (href|src)="([^"]*)"/g)) {
      const elsewhere = /^(https?:)?\/\//.test(value)
      if (elsewhere ? element === 'a' : /^(mailto|data):/.test(value)) continue
      const [target, anchor] = value.replaceAll('&amp;', '&').split('?')[0].split('#')
      const to = target ? path.join(path.dirname(name), decodeURIComponent(target)) : name
      const exists = !elsewhere && existsSync(path.join(site, to)) && statSync(path.join(site, to)).isFile()
      if (!exists || (anchor && pages.has(to) && !pages.get(to).includes(` id="${anchor}"`))) broken.push(`${name}: ${attribute} ${value}`)
    }
  }
  assert.deepEqual(broken, [])
  const search = JSON.parse(readFileSync(path.join(site, 'search/search_index.json'), 'utf8'))
  assert.ok(search.docs.some(({ location, text }) => location === 'docs/jobs.html#adding' && text.length > 100))
  const found = search.docs.filter(({ location }) => location.startsWith('docs/api/')).map(({ text }) => text.replaceAll(/<[^>]*>/g, '')).join('\n')
  assert.deepEqual(operations.filter((operation) => !found.includes(operation)), [])
})
