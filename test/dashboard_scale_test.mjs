// The dashboard with much data, with hostile data, and with a server that fails. docs/administration.md
import assert from 'node:assert/strict'
import http from 'node:http'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { noBrowser, withPage } from './support/browser.mjs'
import { logIn, onPage } from './support/dashboard.mjs'
import { testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const axe = readFileSync(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8')
const encode = encodeURIComponent

/** As onPage(), through a proxy, which responds instead of the server while `proxy.fault(path)` returns {status, body}, or waits for its promise. */
function onFaultyPage(name, body) {
  if (noBrowser) return test(`dashboard_scale: ${name}`, { skip: noBrowser }, () => {})
  testWithServer(name, {}, async (server) => {
    const proxy = await startProxy(server)
    try {
      await withPage(proxy.url, async (page) => {
        await logIn(page)
        await body(page, server, proxy)
        assert.deepEqual(page.problems.filter((problem) => !/^50[03] /.test(problem)), [])
      })
    } finally {
      proxy.close()
    }
  })
}

async function startProxy(server) {
  const proxy = { fault: () => undefined }
  const listener = http.createServer(async (request, response) => {
    const fault = await proxy.fault(request.url)
    if (fault) return response.writeHead(fault.status, { 'Content-Type': 'application/json' }).end(fault.body)
    const upstream = http.request(server.url + request.url, { method: request.method, headers: request.headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers)
      response.flushHeaders()
      answer.on('error', () => {}).pipe(response)
    })
    upstream.on('error', () => response.destroy())
    response.on('close', () => upstream.destroy())
    request.pipe(upstream)
  })
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve))
  proxy.url = `http://127.0.0.1:${listener.address().port}`
  proxy.close = () => {
    listener.close()
    listener.closeAllConnections()
  }
  return proxy
}

const open = (page, hash) => page.goto(`/_utils/#/${hash}`)
const seen = (page, text) => page.getByText(text).first().waitFor()
const elements = (page) => page.evaluate(() => document.querySelectorAll('*').length)
const padded = (n) => String(n).padStart(6, '0')
const scrollTo = (page, share) => page.locator('.scroll').evaluate((element, share) => element.scrollTo(0, element.scrollHeight * share), share)

async function violations(page) {
  await page.evaluate(axe)
  const result = await page.evaluate(() => window.axe.run(document))
  return result.violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 300)}`)
}

onPage('5,000 databases are listed, filtered and opened, with few requests', async (page, { client }) => {
  for (let i = 0; i < 5000; i += 50) await Promise.all(Array.from({ length: 50 }, (_, n) => client.ok('PUT', `/shop-${padded(i + n)}`)))
  const requests = []
  page.on('request', (request) => requests.push(new URL(request.url()).pathname))
  await open(page, 'databases')
  await page.getByRole('link', { name: 'shop-000000' }).getByText('0 documents').waitFor()
  await page.shoot('scale databases')
  await scrollTo(page, 0.5)
  await page.getByRole('link', { name: 'shop-002500' }).getByText('0 documents').waitFor()
  await scrollTo(page, 1)
  await page.getByRole('link', { name: 'shop-004999' }).getByText('0 documents').waitFor()
  assert.ok((await elements(page)) < 400)
  // Each reads a hundred.
  assert.ok(requests.filter((path) => path === '/_dbs_info').length <= 8, `${requests}`)
  await page.getByLabel('Filter by name').fill('4999')
  await page.getByRole('link', { name: 'shop-004999' }).getByText('0 documents').waitFor()
  assert.equal(await page.locator('.scroll .line').count(), 1)
  await page.getByRole('link', { name: 'shop-004999' }).click()
  await page.getByRole('heading', { name: 'shop-004999' }).waitFor()
  assert.deepEqual(requests.filter((path) => path.startsWith('/shop-') && !path.startsWith('/shop-004999')), [])
  await open(page, 'feeds')
  await page.getByRole('combobox', { name: 'Feed' }).selectOption('Changes of a database')
  await page.waitForFunction(() => document.querySelectorAll('datalist option').length > 0)
  assert.ok((await elements(page)) < 1500)
})

onPage('100,000 documents are read where they are looked at', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  for (let i = 0; i < 100; ++i) await client.ok('POST', '/shop/_bulk_docs', { docs: Array.from({ length: 1000 }, (_, n) => ({ _id: padded(i * 1000 + n) })) })
  let rows = 0
  page.on('response', async (response) => {
    if (response.url().includes('_all_docs')) rows += (await response.json().catch(() => ({ rows: [] }))).rows.length
  })
  await open(page, 'databases/shop')
  await page.getByRole('link', { name: '000000' }).waitFor()
  await scrollTo(page, 0.5)
  await page.getByRole('link', { name: '050000' }).waitFor()
  await scrollTo(page, 1)
  await page.getByRole('link', { name: '099999' }).waitFor()
  assert.ok((await elements(page)) < 400)
  // Rows that are shown stay while the list is read again because it has changed.
  await page.evaluate(() => {
    window.gaps = 0
    new MutationObserver(() => (window.gaps += document.querySelectorAll('.scroll .line.muted').length)).observe(document.querySelector('.scroll'), { childList: true, subtree: true })
  })
  const again = page.waitForResponse((response) => response.url().includes('_all_docs'))
  await client.ok('POST', '/shop/_bulk_docs', { docs: [{ _id: '000000-new' }, { ...(await client.ok('GET', '/shop/000000')), _deleted: true }] })
  await (await again).finished()
  assert.equal(await page.evaluate(() => window.gaps), 0)
  // How many follow an id is not known before the end is reached.
  await page.getByLabel('First id').fill('099850')
  await page.getByRole('link', { name: '099850' }).waitFor()
  await waitFor('the end of the list', async () => {
    await scrollTo(page, 1)
    return page.getByRole('link', { name: '099999' }).isVisible()
  })
  await page.waitForFunction(() => document.querySelector('.scroll .inner').clientHeight === 150 * 38)
  assert.equal(await page.locator('.scroll .line.muted').count(), 0)
  assert.ok(rows < 3000, `${rows} rows`)
})

onPage('a document of 5 MB is edited as text, of which only what is in view is rendered', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  const text = 'lorem ipsum '.repeat(5_000_000 / 12)
  await client.ok('PUT', '/shop/line', { text })
  await client.ok('PUT', '/shop/lines', { lines: Array.from({ length: 100_000 }, (_, n) => `line ${n}, ${'x'.repeat(30)}`) })
  for (const id of ['line', 'lines']) {
    await open(page, `databases/shop/documents/${id}`)
    await page.locator('.cm-content').waitFor()
    assert.equal(await page.locator('textarea').count(), 0)
    assert.ok((await page.locator('.cm-content').evaluate((element) => element.textContent.length)) < 100_000)
    // Neither colours nor the gutter of the linter.
    assert.equal(await page.locator('.cm-content span[class]').count(), 0)
    assert.equal(await page.locator('.cm-gutter-lint').count(), 0)
    await page.locator('.cm-content').click()
    await page.keyboard.press('Control+Home')
    await page.keyboard.press('ArrowRight')
    await page.keyboard.type('"n": 17,')
    await page.shoot(`scale 5 MB ${id}`)
    await page.getByRole('button', { name: 'Save' }).click()
    // The message that it is saved may be gone before the page has read the document again.
    await waitFor('the document to be saved', async () => (await client.ok('GET', `/shop/${id}`)).n === 17)
    const stored = await client.ok('GET', `/shop/${id}`)
    if (id === 'line') assert.equal(stored.text, text)
    else assert.equal(stored.lines.length, 100_000)
  }
})

onPage('values stay as they are: nesting of 1,000 levels, numbers, and names of members of objects', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  const texts = { deep: `${'{"a":'.repeat(1000)}1${'}'.repeat(1000)}`, odd: '{"big":12345678901234567890,"one":1.0,"tiny":1e-7,"z":{"__proto__":{"a":1},"constructor":"x","toString":null}}' }
  for (const [id, text] of Object.entries(texts)) {
    await client.ok('PUT', `/shop/${id}`, text)
    await open(page, `databases/shop/documents/${id}`)
    const editor = page.locator('.cm-content')
    await editor.click()
    await page.keyboard.press('Control+Home')
    await page.keyboard.press('ArrowRight')
    await page.keyboard.type('"n": 17,')
    await page.getByRole('button', { name: 'Save' }).click()
    await seen(page, 'Saved.')
    const { text: stored } = await client.get(`/shop/${id}`)
    assert.ok(stored.includes('"n":17'), stored.slice(0, 300))
    assert.ok(stored.includes(text.slice(1, -1)), stored.slice(0, 300))
    await page.getByText('Saved.').waitFor({ state: 'detached' })
  }
})

const SCRIPT = '<img src=x onerror="window.hostile=1"><script>window.hostile=1</script>'
// What browsers, URLs, HTML or objects of JavaScript give a meaning to.
const NAMES = [SCRIPT, '"\'`', '%2F', 'a/b', 'a//b/', 'a?b#c', 'a b', ' a ', 'a\nb', '\u202eabc', 'a\u200bb', '\ufeff', '👩‍👧 %F0', 'עברית', 'constructor', 'toString', 'a\\b', '{id}', '$&', 'a&amp;b', ';,@=+!*()', 'ü', '\u0000', 'x'.repeat(900)]
const ESCAPED = new Map(Object.entries({ '_design/ a ': '_design/ a\\u0020', ' a ': '\\u0020a\\u0020', 'a\nb': 'a\\u000ab', '\u202eabc': '\\u202eabc', 'a\u200bb': 'a\\u200bb', '\ufeff': '\\ufeff', '\u0000': '\\u0000' }))
const shown = (name) => ESCAPED.get(name) ?? (name.startsWith('_design/') ? `_design/${shown(name.slice(8))}` : name)

onPage('documents, design documents and views may have any name', async (page, { client }) => {
  await client.ok('PUT', '/a+b%2Fc$')
  const home = 'databases/a%2Bb%2Fc%24'
  for (const name of NAMES) {
    await client.ok('PUT', `/a+b%2Fc$/${encode(name)}`, { name })
    await client.ok('PUT', `/a+b%2Fc$/_design/${encode(name)}`, { views: { [name]: { map: 'function (doc) { emit(doc.name, doc.name) }' } } })
  }
  await client.ok('PUT', '/a+b%2Fc$/_design/__proto__', { views: {} })
  for (const [prefix, isShown] of [['', 'First id'], ['_design/', 'Design documents only']]) {
    for (const name of NAMES) {
      await open(page, home)
      if (prefix) await page.getByLabel(isShown).check()
      // An input has no line feeds.
      else await page.getByLabel(isShown).fill(name.split('\n')[0])
      // By its address: the texts of other rows may contain the name.
      const hrefs = () => page.locator('.scroll a.line').evaluateAll((links, id) => links.filter(({ hash }) => decodeURIComponent(hash.split('/').at(-1)) === id).map((link) => link.getAttribute('href')), prefix + name)
      const href = await waitFor(`the row of ${JSON.stringify(prefix + name)}`, async () => {
        const [found] = await hrefs()
        if (found) return found
        await page.locator('.scroll').evaluate((element) => element.scrollTo(0, element.scrollTop >= element.scrollHeight - element.clientHeight ? 0 : element.scrollTop + 600))
        return false
      })
      await page.locator(`.scroll a.line[href="${href}"]`).click()
      await page.locator('.cm-content').waitFor()
      assert.equal(await page.evaluate(() => decodeURIComponent(location.hash.split('/').at(-1))), prefix + name)
      assert.equal(await page.locator('h1').textContent(), shown(prefix + name))
    }
  }
  await open(page, `${home}/views`)
  const views = page.getByRole('combobox', { name: 'View' })
  await views.waitFor()
  assert.equal(await views.locator('option').count(), NAMES.length)
  for (let i = 0; i < NAMES.length; ++i) {
    await views.selectOption({ index: i })
    await page.getByRole('button', { name: 'Run' }).click()
    await waitFor('the rows of the view', async () => (await page.locator('main tbody tr').count()) === NAMES.length)
  }
  await page.shoot('scale views')
  for (const view of [home, `${home}/views`, `${home}/documents/${encode(' a ')}`]) {
    await open(page, view)
    await page.waitForFunction(() => !document.querySelector('[role=status].muted'))
    assert.deepEqual(await violations(page), [])
    await page.shoot(`scale ${view.replaceAll('/', '_').slice(0, 60)}`)
  }
  // A browser would request another path.
  await client.ok('POST', '/a+b%2Fc$', { _id: '..' })
  await open(page, `${home}/documents/..`)
  await seen(page, 'Browsers cannot request a path')
  assert.equal(await page.evaluate(() => window.hostile), undefined)
})

onPage('job types, jobs and users may have any name', async (page, { client }) => {
  for (const name of NAMES) {
    await client.ok('PUT', `/_jobs/${encode(name)}`, {})
    await client.ok('PUT', `/_jobs/${encode(name)}/${encode(name)}`, { data: { name } })
    await client.ok('PUT', `/_users/org.couchdb.user:${encode(name)}`, { name, password: 'pw', roles: [name], type: 'user' })
  }
  for (const name of NAMES) {
    await open(page, 'jobs')
    const here = () => page.evaluate(() => location.hash.split('/').slice(1).map(decodeURIComponent))
    const cell = page.locator('main td:first-child a').getByText(shown(name), { exact: true })
    await cell.first().click()
    await waitFor('the page of the type', async () => JSON.stringify(await here()) === JSON.stringify(['jobs', name]))
    await page.locator('main td:first-child a').getByText(shown(name), { exact: true }).click()
    await page.locator('h1').getByText('pending').waitFor()
    assert.deepEqual(await here(), ['jobs', name, name])
  }
  await open(page, 'users')
  await seen(page, 'עברית')
  const cells = await page.locator('tbody td:first-child').allTextContents()
  assert.deepEqual(cells.sort(), NAMES.map(shown).sort())
  await page.shoot('scale users')
  // A long name does not push the buttons out of view.
  assert.equal(await page.locator('.tablewrap').evaluate((element) => element.scrollWidth - element.clientWidth), 0)
  for (const view of ['jobs', `jobs/${encode('\ufeff')}`, 'users', 'overview']) {
    await open(page, view)
    await page.waitForFunction(() => !document.querySelector('[role=status].muted'))
    assert.deepEqual(await violations(page), [])
  }
  await page.shoot('scale jobs')
  assert.equal(await page.evaluate(() => window.hostile), undefined)
})

onPage('300 design documents, whose indexes all fail', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/shop/a', {})
  const docs = Array.from({ length: 300 }, (_, n) => ({ _id: `_design/d${String(n).padStart(3, '0')}`, views: { v: { map: `function (doc) { throw new Error('${n} ${'long '.repeat(200)}') }` } } }))
  await client.ok('POST', '/shop/_bulk_docs', { docs })
  await waitFor('the indexes', async () => (await client.ok('GET', '/_ken')).counts.left_out >= 300)
  await open(page, 'overview')
  await seen(page, 'and 288 more')
  await page.shoot('scale overview')
  await open(page, 'databases/shop')
  await page.getByLabel('Design documents only').check()
  await page.getByRole('link', { name: '_design/d000' }).waitFor()
  await waitFor('the last design document', async () => {
    await scrollTo(page, 1)
    return page.getByRole('link', { name: '_design/d299' }).isVisible()
  })
  assert.ok((await elements(page)) < 400)
  await open(page, 'databases/shop/views')
  await page.getByRole('combobox', { name: 'View' }).selectOption('d299/v')
  await page.getByRole('button', { name: 'Run' }).click()
  await seen(page, /^0 rows/)
  await open(page, 'indexes')
  await seen(page, 'd299')
  await page.shoot('scale indexes')
  assert.deepEqual(await violations(page), [])
})

const json = (error, reason) => JSON.stringify({ error, reason })

for (const [kind, fault, message] of [
  ['500', { status: 500, body: json('internal_error', 'The store is broken.') }, 'The store is broken.'],
  ['503 with a page of HTML', { status: 503, body: '<h1>Busy</h1>' }, 'Service Unavailable'],
  ['500 with a very long text', { status: 500, body: json('x', `Long: ${'<b>long</b> '.repeat(100_000)}`) }, 'Long: <b>long</b>'],
]) {
  onFaultyPage(`responses of ${kind}: each page shows the error, and its content when they end`, async (page, { client }, proxy) => {
    await client.ok('PUT', '/shop')
    await client.ok('PUT', '/shop/a', {})
    await client.ok('PUT', '/_jobs/mail', {})
    await client.ok('PUT', '/_jobs/mail/a', {})
    const views = { overview: 'Nothing needs attention.', databases: 'shop', indexes: 'No design document has indexes.', jobs: 'mail', workers: 'No workers', replications: 'There are no replications.', triggers: 'Deliveries', nodes: 'Version', settings: 'prune_interval', users: 'There are no users yet.', 'databases/shop': 'Design documents only', 'databases/shop/documents/a': 'No conflicts.', 'databases/shop/views': 'No design document has views.', 'databases/shop/changes': 'Changes appear here', 'databases/shop/permissions': 'Members', 'jobs/mail': 'Add a job', 'jobs/mail/a': 'Run again' }
    for (const [view, content] of Object.entries(views)) {
      proxy.fault = (path) => (path.startsWith('/_utils') || path.startsWith('/_session') ? undefined : fault)
      await open(page, view)
      await page.locator('main .problem').getByText(message).first().waitFor()
      assert.ok((await page.locator('main').evaluate((element) => element.textContent.length)) < 20_000)
      await page.shoot(`scale fault ${kind.slice(0, 20)} ${view.replaceAll('/', '_')}`)
      if (view === 'databases') assert.deepEqual(await violations(page), [])
      proxy.fault = () => undefined
      await page.locator('main').getByText(content).first().waitFor()
      await page.locator('main .problem').first().waitFor({ state: 'detached' })
    }
  })
}

onFaultyPage('rows of lists that could not be read are read again', async (page, { client }, proxy) => {
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/shop/a', {})
  proxy.fault = (path) => (/_all_docs|_dbs_info/.test(path) ? { status: 503, body: json('busy', 'Try again later.') } : undefined)
  await open(page, 'databases/shop')
  await page.locator('main .problem').getByText('Try again later.').waitFor()
  proxy.fault = () => undefined
  await page.locator('.scroll a.line').waitFor()
  await page.locator('main .problem').first().waitFor({ state: 'detached' })
})

onFaultyPage('an action that fails keeps what was entered, and its message has an end', async (page, { client }, proxy) => {
  await client.ok('PUT', '/shop')
  proxy.fault = (path) => (path === '/shop' ? { status: 500, body: json('x', 'no '.repeat(500_000)) } : undefined)
  await open(page, 'databases/shop/new')
  const editor = page.locator('.cm-content')
  await editor.click()
  await page.keyboard.press('Control+A')
  await page.keyboard.insertText('{"_id": "kept"}')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.locator('.toast.bad').waitFor()
  await page.shoot('scale toast')
  const { height } = await page.locator('.toast.bad').boundingBox()
  assert.ok(height < 900, `${height}`)
  proxy.fault = () => undefined
  await editor.getByText('kept').waitFor()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'kept' }).waitFor()
})

onFaultyPage('a notice is shown while a server does not respond, and then its response', async (page, { client }, proxy) => {
  await client.ok('PUT', '/shop')
  let respond
  const late = new Promise((resolve) => (respond = resolve))
  proxy.fault = (path) => (path.startsWith('/_all_dbs') ? late : undefined)
  await open(page, 'databases')
  await seen(page, 'The server has not responded for some seconds.')
  await page.shoot('scale slow')
  respond()
  await page.getByRole('link', { name: 'shop' }).waitFor()
  await page.getByText('The server has not responded for some seconds.').waitFor({ state: 'detached' })
})

onFaultyPage('a feed that fails resumes where it was', async (page, { client }, proxy) => {
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/shop/first', {})
  proxy.fault = (path) => (path.includes('_changes') ? { status: 500, body: json('x', 'The store is broken.') } : undefined)
  await open(page, 'feeds')
  await page.getByRole('combobox', { name: 'Feed' }).selectOption('Changes of a database')
  await page.getByRole('combobox', { name: 'Database', exact: true }).fill('shop')
  await page.getByRole('button', { name: 'Follow' }).click()
  await page.locator('main .problem').getByText('The store is broken.').waitFor()
  proxy.fault = () => undefined
  // Also without a row.
  await page.locator('main .problem').waitFor({ state: 'detached' })
  await client.ok('PUT', '/shop/second', {})
  await seen(page, /"id":"second"/)
})
