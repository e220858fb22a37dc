// A headless Chromium, that of the system (Debian's package `chromium`).
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
/** Why there is no browser; false if there is one. */
export const noBrowser = executablePath ? false : 'needs the package chromium'

// Generous: for a busy machine.
const LIMIT_MS = 60_000

/**
 * Calls body(page) with a page of `url`. page.problems lists its exceptions, what its policy has blocked, and responses with
 * an error ("404 GET /path"). A failure leaves a screenshot if DIVAN_SCREENSHOTS names a folder.
 */
export async function withPage(url, body) {
  // The sandbox needs a user that is not root; the pages are our own.
  const browser = await chromium.launch({ executablePath, chromiumSandbox: false, args: ['--disable-dev-shm-usage'] })
  const page = await browser.newPage({ baseURL: url, viewport: { width: 1400, height: 900 } })
  page.setDefaultTimeout(LIMIT_MS)
  page.problems = []
  page.on('pageerror', (error) => page.problems.push(`exception: ${error.message}`))
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) page.problems.push(message.text())
  })
  page.on('response', (response) => {
    const { pathname } = new URL(response.url())
    if (response.status() >= 400) page.problems.push(`${response.status()} ${response.request().method()} ${pathname}`)
  })
  page.shoot = async (name) => {
    if (process.env.DIVAN_SCREENSHOTS) await page.screenshot({ path: `${process.env.DIVAN_SCREENSHOTS}/${name}.png` })
  }
  try {
    return await body(page)
  } catch (error) {
    await page.shoot('failure')
    error.message += `\n${page.problems.join('\n')}`
    throw error
  } finally {
    await browser.close()
  }
}
