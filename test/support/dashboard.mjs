// For tests of the dashboard's pages.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { noBrowser, withPage } from './browser.mjs'
import { testWithServer } from './server.mjs'

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
  testWithServer(name, {}, async (server) => {
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

/** Replaces the text of the first editor. */
export async function edit(page, text) {
  const editor = page.locator('.cm-content').first()
  await editor.waitFor()
  await editor.click()
  await page.keyboard.press('Control+A')
  await page.keyboard.insertText(text)
}
