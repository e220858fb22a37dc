// The dashboard: its built files, from its sources in web/, and tests of its pages.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { noBrowser, withPage } from './browser.mjs'
import { testWithServer } from './server.mjs'

const web = fileURLToPath(new URL('../../web/', import.meta.url))

// The time of the last change below a folder, or of a file.
const changedAt = (name) =>
  statSync(name).isDirectory() ? Math.max(0, ...readdirSync(name).map((entry) => changedAt(path.join(name, entry)))) : statSync(name).mtimeMs

/** The folder of the files; builds them if the sources have changed. Two processes may build at the same time. */
export function dashboardFolder() {
  const folder = path.join(web, 'dist')
  const index = path.join(folder, 'index.html')
  const sources = ['src', 'public', 'index.html', 'package-lock.json', 'tsconfig.json', 'vite.config.ts'].map((name) => path.join(web, name))
  const isCurrent = () => existsSync(index) && statSync(index).mtimeMs > Math.max(...sources.map(changedAt))
  if (isCurrent()) return folder
  const own = `${folder}.${process.pid}`
  try {
    execFileSync('npm', ['run', 'build', '--silent', '--', '--outDir', own], { cwd: web, stdio: ['ignore', 'ignore', 'inherit'] })
    if (isCurrent()) return folder
    rmSync(folder, { recursive: true, force: true })
    renameSync(own, folder)
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
  return folder
}

/** The options of a server with the dashboard. */
export const options = noBrowser ? {} : { args: ['--fauxton', dashboardFolder()] }

export async function logIn(page, name = 'admin', password = 'secret') {
  await page.goto('/_utils/')
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('link', { name: 'Databases' }).waitFor()
}

/** A test of a page after the login. Whatever the page complains about fails it, except `problems`. */
export function onPage(name, body, problems = []) {
  if (noBrowser) return test(`dashboard: ${name}`, { skip: noBrowser }, () => {})
  testWithServer(name, options, async (server) => {
    await withPage(server.url, async (page) => {
      await logIn(page)
      await body(page, server)
      assert.deepEqual([...new Set(page.problems)], problems)
    })
  })
}

export const open = (page, hash) => page.goto(`/_utils/#/${hash}`)
export const seen = (page, text) => page.getByText(text).first().waitFor()
const axe = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8')
/** Takes a screenshot, and checks the page's accessibility. */
export async function inspect(page, name) {
  await page.shoot(name.replaceAll('/', '_'))
  await page.evaluate(axe)
  const { violations } = await page.evaluate(() => window.axe.run(document))
  assert.deepEqual(violations.map(({ id, nodes }) => `${name}: ${id}: ${nodes[0].html}`), [])
}
export const main = (page) => page.locator('main')

/** Replaces the text of the (first) editor. */
export async function edit(page, text) {
  const editor = page.locator('.cm-content').first()
  await editor.waitFor()
  await editor.click()
  await page.keyboard.press('Control+A')
  await page.keyboard.insertText(text)
}
