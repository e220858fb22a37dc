// The README's pictures of the dashboard: ./dev screenshots. Not a test.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { withPage } from './support/browser.mjs'
import { logIn } from './support/dashboard.mjs'
import { Server, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const folder = fileURLToPath(new URL('../docs/images/', import.meta.url))
const live = fileURLToPath(new URL('../demo/live.mjs', import.meta.url))
// A chart has a point every five seconds.
const POINTS = 24

const SECTIONS = ['admin', 'devel', 'editors', 'games', 'graphics', 'mail', 'net', 'science', 'sound', 'text', 'utils', 'web']
const packageOf = (n) => ({ _id: `package-${String(n).padStart(4, '0')}`, section: SECTIONS[n % SECTIONS.length], version: `1.${n % 40}-${n % 7}`, installed_size: 40 + ((n * 7919) % 9000) })

// Without the writes below in its charts.
const dataDir = temporaryDirectory()
const first = await Server.start({ dataDir })
{
  const { client } = first
  await client.ok('PUT', '/packages')
  await client.ok('POST', '/packages/_bulk_docs', { docs: Array.from({ length: 2000 }, (_, n) => packageOf(n)) })
  await client.ok('PUT', '/packages/_design/packages', { views: { by_section: { map: 'function (doc) { emit(doc.section, doc.installed_size) }', reduce: '_stats' } } })
  await client.ok('GET', '/packages/_design/packages/_view/by_section')
  await first.stop()
}
const server = await Server.start({ dataDir })
try {
  const { client } = server
  const child = spawn(process.execPath, [live, server.url, 'admin:secret'], { stdio: 'inherit' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  try {
    await waitFor('a chart', async () => (await client.ok('GET', `/_node/_local/_history?type=review&samples=${POINTS}`)).jobs.ended.filter((n) => n > 0).length >= POINTS - 6, { limit: 300_000 })
    await withPage(server.url, async (page) => {
      await page.setViewportSize({ width: 1280, height: 800 })
      await logIn(page)
      const shoot = async (name, hash, colorScheme, ready) => {
        await page.emulateMedia({ colorScheme })
        await page.goto(`/_utils/#/${hash}`)
        await ready()
        await page.waitForFunction(() => !document.querySelector('[role=status].muted'))
        await page.screenshot({ path: `${folder}${name}.png` })
      }
      await shoot('overview', 'overview', 'light', async () => {
        await page.locator('canvas').first().waitFor()
        // Below "Databases that change".
        await page.getByText('packages', { exact: true }).first().waitFor()
      })
      await shoot('jobs', 'jobs/review', 'dark', () => page.locator('canvas').first().waitFor())
      await shoot('database', 'databases/packages', 'light', () => page.getByText('package-0000').first().waitFor())
    })
  } finally {
    child.kill('SIGTERM')
    await ended
  }
} finally {
  await server.stop()
}
