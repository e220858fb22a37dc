// The dashboard where requests overtake each other or fail, where data changes meanwhile, and where lists end at a limit. docs/administration.md
import assert from 'node:assert/strict'
import { edit, onPage, open, seen } from './support/dashboard.mjs'
import { waitFor } from './support/wait.mjs'

const button = (page, name) => page.getByRole('button', { name, exact: true })
const row = (page, text) => page.getByRole('row').filter({ hasText: text })
const toast = (page, text) => page.locator('.toast.bad').getByText(text).waitFor()
const editor = (page) => page.locator('.cm-content').first()

/** Holds the responses to the first `count` requests that match, until release(). `held` is a promise of the first such request. */
async function hold(page, pattern, method) {
  let release, arrived
  const released = new Promise((resolve) => (release = resolve))
  const held = new Promise((resolve) => (arrived = resolve))
  let isFirst = true
  await page.route(pattern, async (route) => {
    if (!isFirst || (method && route.request().method() !== method)) return route.continue()
    isFirst = false
    const response = await route.fetch()
    arrived()
    await released
    await route.fulfill({ response }).catch(() => {})
  })
  return { held, release }
}

const NUMBERS = '"a":12345678.123456789,"b":0.0000001,"c":9007199254740993,"d":1.50,"e":-0.0'

onPage('numbers of documents, results, revisions and jobs are exact', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/shop/n', `{${NUMBERS}}`)
  await client.ok('PUT', '/shop/other', '{"c":9007199254740992}')
  await open(page, 'databases/shop/documents/n')
  await editor(page).click()
  await page.keyboard.press('Control+Home')
  await page.keyboard.press('ArrowRight')
  await page.keyboard.type('"n": 1,')
  await button(page, 'Save').click()
  await waitFor('the document to be saved', async () => (await client.ok('GET', '/shop/n')).n === 1)
  assert.ok((await client.get('/shop/n')).text.includes(NUMBERS))
  // The revisions differ by this member only.
  const [, first] = (await client.ok('GET', '/shop/n?revs_info=true'))._revs_info
  await button(page, first.rev).click()
  const panel = page.getByRole('region', { name: first.rev })
  await panel.locator('ins').first().waitFor()
  assert.deepEqual((await panel.locator('del, ins').allInnerTexts()).map((line) => line.replace(/[−+,\s]/g, '')).sort(), ['"e":-0.0', '"e":-0.0', '"n":1'])
  assert.ok((await panel.locator('pre').first().innerText()).includes('"c": 9007199254740993'))
  // A selector and its results.
  await open(page, 'databases/shop/queries')
  await edit(page, '{"selector": {"c": 9007199254740993}}')
  await button(page, 'Run').click()
  await seen(page, '1 row')
  await page.locator('.conditions').getByText('c $eq 9007199254740993').waitFor()
  for (const text of ['12345678.123456789', '0.0000001', '9007199254740993', '1.50']) await page.locator('.cm-content').nth(1).getByText(text, { exact: true }).waitFor()
  // Data of a job.
  await client.ok('PUT', '/_jobs/mail', {})
  await open(page, 'jobs/mail')
  await button(page, 'Add a job').click()
  await page.getByLabel(/^Id/).fill('big')
  await page.getByLabel('Data (JSON)').fill('{"n": 12345678901234567890}')
  await button(page, 'Add').click()
  await row(page, 'big').waitFor()
  assert.ok((await client.get('/_jobs/mail/big')).text.includes('{"n":12345678901234567890}'))
  await client.ok('PUT', '/_jobs/mail/big', '{"priority":9007199254740993}')
  await row(page, 'big').getByText('9007199254740993').waitFor()
  await page.getByRole('link', { name: 'big' }).click()
  await page.getByRole('definition').getByText('9007199254740993').waitFor()
})

onPage('a document is created once, however often it is saved, and not over another one', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/shop/taken', { n: 1 })
  await open(page, 'databases/shop/new')
  await edit(page, '{"_id": "taken", "n": 2}')
  await button(page, 'Save').click()
  await toast(page, 'Document update conflict.')
  assert.equal(await page.getByText('It has been changed meanwhile.').count(), 0)
  for (const text of ['[1]', '[null]', '["a"]']) {
    await edit(page, text)
    await button(page, 'Save').click()
    await page.locator('.toast.bad').getByText('A document is a JSON object.').last().waitFor()
    await page.locator('.toast.bad').first().waitFor({ state: 'detached' })
  }
  // The policy allows no images of the editor's own.
  await edit(page, '{"n": ')
  await page.locator('.cm-lint-marker-error').waitFor()
  await edit(page, '{"n": 3}')
  const first = await hold(page, (url) => url.pathname === '/shop', 'POST')
  await button(page, 'Save').click()
  await first.held
  await button(page, 'Save').evaluate((element) => element.click())
  first.release()
  await page.getByRole('heading', { level: 1 }).getByText(/^[0-9a-f]{32}$/).waitFor()
  assert.equal((await client.ok('GET', '/shop')).doc_count, 2)
}, ['409 POST /shop'])

onPage('text that is typed while it is saved stays, and so does text that is not saved', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  const { rev } = await client.ok('PUT', '/shop/a', { n: 1 })
  await open(page, 'databases/shop/documents/a')
  await edit(page, JSON.stringify({ _id: 'a', _rev: rev, n: 2 }))
  const read = await hold(page, (url) => url.pathname === '/shop/a' && url.search.includes('revs_info'))
  await button(page, 'Save').click()
  await read.held
  const next = { _id: 'a', _rev: rev, n: 3 }
  await edit(page, JSON.stringify(next))
  read.release()
  await editor(page).getByText('"2-').waitFor()
  await button(page, 'Save').click()
  await waitFor('what was typed to be saved', async () => (await client.ok('GET', '/shop/a')).n === 3)
  await page.locator('.revisions li').filter({ hasText: /^3-/ }).waitFor()
  // An attachment would need the text to be read again.
  await edit(page, '{"typed": true}')
  const file = { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('hello') }
  await page.getByLabel('Attach a file').setInputFiles(file)
  await toast(page, 'The text has changes that are not saved.')
  await editor(page).getByText('typed').waitFor()
  assert.equal((await client.ok('GET', '/shop/a'))._attachments, undefined)
  await page.reload()
  await editor(page).getByText('"n"').waitFor()
  await page.getByLabel('Attach a file').setInputFiles(file)
  await page.getByRole('link', { name: 'a.txt' }).waitFor()
})

onPage('a conflict that was resolved meanwhile is reported', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  const docs = ['1-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '1-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'].map((_rev, n) => ({ _id: 'a', _rev, n }))
  await client.ok('POST', '/shop/_bulk_docs', { docs, new_edits: false })
  await open(page, 'databases/shop/documents/a')
  await button(page, docs[0]._rev).click()
  await button(page, 'Keep this revision').click()
  await client.ok('PUT', '/shop/a', { _rev: docs[1]._rev, n: 2 })
  await page.getByRole('dialog').getByRole('button', { name: 'Keep this revision' }).click()
  await toast(page, 'Document update conflict.')
  assert.equal(await page.getByText('Saved.').count(), 0)
})

onPage('what a browser cannot request is shown, and hides nothing else', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/_jobs/mail', {})
  const body = (name) => ({ _id: `_design/${name}`, views: { [name]: { map: 'function (doc) { emit(1) }' } }, indexes: { [name]: { index: 'function (doc) { index("default", "a") }' } }, triggers: { [name]: { selector: { none: true }, job: { type: 'mail' } } } })
  await client.ok('POST', '/shop/_bulk_docs', { docs: [body('..'), body('good')] })
  await client.ok('PUT', '/shop/a', { _attachments: { '..': { content_type: 'text/plain', data: 'aGk=' }, 'a\u202eb': { content_type: 'text/plain', data: 'aGk=' } } })
  await open(page, 'databases/shop/documents/a')
  await page.getByRole('link', { name: 'a\\u202eb' }).waitFor()
  await page.getByText('..', { exact: true }).waitFor()
  await open(page, 'triggers')
  await row(page, 'good/good').getByText('0').first().waitFor()
  await row(page, '../..').getByText('Browsers cannot request a path').waitFor()
  await open(page, 'indexes')
  const all = page.getByRole('region', { name: 'All indexes' })
  await all.getByRole('row').filter({ hasText: 'good' }).first().waitFor()
  await all.getByRole('row').filter({ hasText: '..' }).getByText('Browsers cannot request a path').first().waitFor()
  // A job in a list that is changed.
  await client.ok('POST', '/_jobs/mail/_bulk', { jobs: ['..', '..a'].map((id) => ({ id })) })
  await open(page, 'jobs/mail?state=pending')
  await page.getByLabel('Filter by the beginning of the id').fill('..')
  await button(page, 'Cancel all').click()
  await page.getByRole('dialog').getByText('This cancels 2 jobs').waitFor()
  await button(page, 'Cancel jobs').click()
  await page.getByRole('dialog').getByText('1 job was cancelled. The server refused 1 job:').waitFor()
  await page.getByRole('dialog').getByText('Browsers cannot request a path').waitFor()
})

onPage('the answer to the last of several requests is shown, whichever comes last', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await client.ok('POST', '/shop/_bulk_docs', { docs: [{ _id: 'a', n: 1, t: 'red' }, { _id: 'b', n: 2, t: 'blue' }] })
  await client.ok('PUT', '/shop/_design/d', {
    views: { one: { map: 'function (doc) { emit(doc.n, "one") }' }, two: { map: 'function (doc) { emit(doc.n, "two") }' } },
    indexes: { words: { index: 'function (doc) { index("default", doc.t) }' } }
  })
  /** Lets the first request that matches be answered after the second one, whose answer `second` waits for. */
  const overtake = async (pattern, first, second, isStill) => {
    const early = await hold(page, pattern)
    await first()
    await early.held
    await second()
    const late = page.waitForEvent('requestfinished', (request) => pattern(new URL(request.url())))
    early.release()
    await late
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))))
    assert.ok(await isStill())
    await page.unrouteAll({ behavior: 'ignoreErrors' })
  }
  await open(page, 'databases/shop/queries')
  const results = page.locator('.cm-content').nth(1)
  const find = (n) => async () => {
    await edit(page, `{"selector": {"n": ${n}}}`)
    await button(page, 'Run').click()
  }
  await overtake((url) => url.pathname === '/shop/_find', find(1), async () => {
    await find(2)()
    await results.getByText('blue').waitFor()
  }, () => results.getByText('blue').isVisible())
  await open(page, 'databases/shop/views')
  const cell = (text) => page.locator('main tbody').getByText(text).first()
  await overtake((url) => url.pathname.includes('/_view/'), () => button(page, 'Run').click(), async () => {
    await page.getByRole('combobox', { name: 'View' }).selectOption('d/two')
    await button(page, 'Run').click()
    await cell('"two"').waitFor()
  }, () => cell('"two"').isVisible())
  await open(page, 'databases/shop/search')
  const search = (word) => async () => {
    await page.getByLabel('Query').fill(word)
    await button(page, 'Search').click()
  }
  const result = (name) => page.locator('.results').getByRole('link', { name, exact: true })
  await overtake((url) => url.pathname.includes('/_search/'), search('red'), async () => {
    await search('blue')()
    await result('b').waitFor()
  }, () => result('b').isVisible())
})

onPage('a map that is moved while more is loaded shows what is in view, and its list says where it ends', async (page, { client }) => {
  await client.ok('PUT', '/places')
  await client.ok('PUT', '/places/_design/map', { st_indexes: { p: { index: 'function (doc) { st_index(doc.geometry); }' } } })
  const at = (_id, lon, lat) => ({ _id, geometry: { type: 'Point', coordinates: [lon, lat] }, n: 1 })
  await client.ok('POST', '/places/_bulk_docs', { docs: [at('middle', 0, 0), ...Array.from({ length: 1100 }, (_, n) => at(`m${n}`, -100 + n / 1000, 40))] })
  await client.ok('PUT', '/places/number', '{"geometry": {"type": "Point", "coordinates": [1, 1]}, "n": 9007199254740993}')
  await open(page, 'databases/places/map')
  const settled = (text) => page.getByRole('status').getByText(text, { exact: true }).waitFor()
  await settled('The first 200 features in view.')
  const more = await hold(page, (url) => url.searchParams.has('bookmark'))
  await button(page, 'Load more').click()
  await more.held
  for (let i = 0; i < 4; ++i) await button(page, 'Zoom in').click()
  await settled('2 features in view.')
  more.release()
  await button(page, 'number').click()
  await page.getByRole('region', { name: 'number' }).getByText('9007199254740993').waitFor()
  await settled('2 features in view.')
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await button(page, 'Whole world').click()
  for (let n = 200; n < 1000; n += 200) {
    await settled(`The first ${n} features in view.`)
    await button(page, 'Load more').click()
  }
  await settled('The first 1,000 features in view.')
  assert.equal(await page.getByText('are listed').count(), 0)
  await button(page, 'Load more').click()
  await seen(page, 'Only the first 1,000 features are listed.')
})

onPage('lists that end at a limit say so', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/shop/_design/d', { views: { v: { map: 'function (doc) { emit(doc._id) }' } } })
  const docs = Array.from({ length: 100 }, (_, n) => ({ _id: `d${n}` }))
  await client.ok('POST', '/shop/_bulk_docs', { docs })
  await open(page, 'databases/shop/views')
  await page.getByLabel('Limit').fill('101')
  await button(page, 'Run').click()
  await seen(page, '100 rows of 100 in the view')
  await page.getByLabel('Limit').fill('99')
  await button(page, 'Run').click()
  await seen(page, 'The first 99 rows.')
  assert.equal(await page.locator('main tbody tr').count(), 99)
  // Without a password, which takes long to hash.
  await client.ok('POST', '/_users/_bulk_docs', { docs: Array.from({ length: 201 }, (_, n) => ({ _id: `org.couchdb.user:u${n}`, name: `u${n}`, roles: [], type: 'user' })) })
  await open(page, 'users')
  await seen(page, 'Only the first 200 users are shown.')
  await page.getByLabel('Filter', { exact: true }).fill('u20')
  await page.getByText('Only the first').waitFor({ state: 'detached' })
  await row(page, 'u200').waitFor()
  await client.ok('PUT', '/_jobs/mail', { timeout: 3_600_000 })
  await client.ok('POST', '/_jobs/mail/_bulk', { jobs: Array.from({ length: 1001 }, (_, n) => ({ id: `${n}` })) })
  await client.ok('PUT', '/_workers/mailer/host-1', { timeout: 3_600_000 })
  const accept = (limit) => client.ok('POST', '/_jobs/mail/_accept', { limit, worker: { role: 'mailer', id: 'host-1' } })
  await accept(1000)
  await open(page, 'workers')
  await seen(page, '1,000 jobs')
  assert.equal(await page.getByText(/^More than 1,000 jobs of these types run/).count(), 0)
  await accept(1)
  await seen(page, 'More than 1,000 jobs of these types run: mail. Only 1,000 of each are shown.')
  await page.route('**/_node/_local/_log', (route) => route.fulfill({ json: { lines: Array.from({ length: 501 }, (_, n) => ({ time: n, level: 'info', text: `line ${n}` })) } }))
  await open(page, 'log')
  await seen(page, 'The latest 500 of 501 lines that match.')
  assert.equal(await page.getByText('line 0', { exact: true }).count(), 0)
  await page.route('**/_scheduler/jobs*', (route) => route.fulfill({ json: { total_rows: 201, offset: 0, jobs: Array.from({ length: 200 }, (_, n) => ({ id: `${n}`, source: 'a', target: 'b', doc_id: null, info: null, history: [], start_time: '2026-01-01T00:00:00Z' })) } }))
  await open(page, 'replications')
  await seen(page, 'The first 200 of 201.')
})

onPage('jobs whose state has changed since they were listed are left as they are', async (page, { client }) => {
  await client.ok('PUT', '/_jobs/mail', {})
  await client.ok('POST', '/_jobs/mail/_bulk', { jobs: ['a-1', 'a-2'].map((id) => ({ id })) })
  await client.ok('POST', '/_jobs/mail/_cancel', { state: 'pending' })
  await open(page, 'jobs/mail?state=cancelled')
  await page.getByLabel('Filter by the beginning of the id').fill('a-')
  await row(page, 'a-2').waitFor()
  await button(page, 'Remove all').click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('This removes 2 jobs').waitFor()
  await page.route('**/_jobs/mail/_list*', async (route) => {
    const response = await route.fetch()
    await client.ok('POST', '/_jobs/mail/a-1/_resubmit', {})
    await route.fulfill({ response })
  })
  await button(page, 'Remove jobs').click()
  await dialog.getByText('1 job was removed. The server refused 1 job:').waitFor()
  await dialog.getByText('Its state is now pending.').waitFor()
  assert.equal((await client.ok('GET', '/_jobs/mail/a-1')).state, 'pending')
  assert.equal((await client.get('/_jobs/mail/a-2')).status, 404)
})

onPage('settings of a type that others change meanwhile stay', async (page, { client }) => {
  await client.ok('PUT', '/_jobs/mail', {})
  await open(page, 'jobs/mail')
  await button(page, 'Settings').click()
  const text = page.getByRole('dialog').getByRole('textbox')
  const settings = JSON.parse(await text.inputValue())
  await client.ok('PUT', '/_jobs/mail', { paused: true })
  await text.fill(JSON.stringify({ ...settings, timeout: 12_345 }))
  await button(page, 'Save').click()
  await seen(page, 'The settings are in force.')
  const stored = (await client.ok('GET', '/_jobs/mail')).settings
  assert.deepEqual([stored.timeout, stored.paused], [12_345, true])
})

onPage('a hidden page sends no requests, and reads again when it is seen', async (page, { client }) => {
  await client.ok('PUT', '/_jobs/mail', {})
  await open(page, 'jobs/mail')
  await seen(page, 'There are no jobs of this type yet.')
  const show = (isShown) => page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden })
    document.dispatchEvent(new Event('visibilitychange'))
  }, !isShown)
  await show(false)
  // The page gets the event, and asks for nothing; after it, what it would ask for comes in order.
  const events = []
  await page.exposeFunction('noted', (text) => events.push(text))
  await page.evaluate(() => {
    const { fetch, setTimeout } = window
    window.fetch = (url, ...rest) => (window.noted(`fetch ${new URL(url).pathname}`), fetch(url, ...rest))
    // A reload that follows an event waits for half a second.
    window.setTimeout = (run, ms) => setTimeout(() => (run(), ms === 500 && window.noted('reload')), ms)
  })
  await client.ok('PUT', '/_jobs/mail/letter', {})
  await waitFor('the event', async () => events.includes('reload'))
  assert.deepEqual(events.filter((text) => text.startsWith('fetch')), [])
  assert.equal(await row(page, 'letter').count(), 0)
  await show(true)
  await row(page, 'letter').waitFor()
})

onPage('a page that fails, or whose user is not known, says so', async (page) => {
  await page.route('**/_membership', (route) => route.fulfill({ json: {} }))
  await open(page, 'nodes')
  await page.locator('main .problem').waitFor()
  await page.getByRole('link', { name: 'Users' }).click()
  await seen(page, 'There are no users yet.')
  assert.equal(await page.locator('main .problem').count(), 0)
  await page.route('**/_session', (route) => route.fulfill({ status: 500, json: { error: 'x', reason: 'The store is broken.' } }))
  await page.reload()
  await seen(page, 'The store is broken.')
  await page.unroute('**/_session')
  await seen(page, 'There are no users yet.')
}, ['500 GET /_session'])

onPage('a server that responds again is noticed on pages that request nothing by themselves', async (page, { client }) => {
  await client.ok('PUT', '/_users/org.couchdb.user:ann', { name: 'ann', roles: [], type: 'user' })
  await open(page, 'users')
  await row(page, 'ann').waitFor()
  await page.route('**/_*/**', (route) => route.abort())
  await page.route('**/_session', (route) => route.abort())
  await row(page, 'ann').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await seen(page, 'The server does not respond.')
  await page.unrouteAll()
  await page.getByText('The server does not respond.').waitFor({ state: 'detached' })
})

onPage('an overview that was not read does not say that nothing needs attention, and errors of charts and replications are shown', async (page, { client }) => {
  // Of the overview, nothing is known yet.
  await open(page, 'users')
  await seen(page, 'There are no users yet.')
  const broken = (text) => (route) => route.fulfill({ status: 500, json: { error: 'x', reason: text } })
  await page.route('**/_jobs', broken('No jobs.'))
  await page.route('**/_node/_local/_history*', broken('No history.'))
  await open(page, 'overview')
  await page.locator('main .problem').getByText('No jobs.').first().waitFor()
  await page.locator('main .problem').getByText('No history.').waitFor()
  assert.equal(await page.getByText('Nothing needs attention.').count(), 0)
  await page.unrouteAll()
  await seen(page, 'Nothing needs attention.')
  await client.ok('PUT', '/shop')
  await open(page, 'replications')
  await button(page, 'Replicate').click()
  await page.getByLabel('Source').fill('nothing')
  await page.getByLabel('Target', { exact: true }).fill('shop')
  await page.getByLabel('Continuous').uncheck()
  await page.getByRole('dialog').getByRole('button', { name: 'Replicate' }).click()
  await toast(page, /Database does not exist/)
  page.problems.sort()
}, ['500 GET /_jobs', '500 GET /_node/_local/_history', '500 POST /_replicate'])

onPage('names of workers, jobs and features show their invisible characters; the rate of a feed that rests is 0', async (page, { client }) => {
  await client.ok('PUT', '/_jobs/mail', {})
  const odd = 'a\u202eb'
  await client.ok('PUT', `/_workers/${encodeURIComponent(odd)}/${encodeURIComponent(odd)}`, { timeout: 600_000 })
  await client.ok('PUT', `/_jobs/mail/${encodeURIComponent(odd)}`, {})
  await client.ok('POST', '/_jobs/mail/_accept', { worker: { role: odd, id: odd } })
  await open(page, 'workers')
  await row(page, 'a\\u202eb').getByRole('link', { name: 'mail/a\\u202eb' }).waitFor()
  assert.ok(!(await page.locator('main').innerText()).includes('\u202e'))
  await client.ok('PUT', '/shop')
  await open(page, 'feeds')
  const follows = page.waitForResponse(/_db_updates\?feed=continuous/)
  await button(page, 'Follow').click()
  await follows
  await client.ok('PUT', '/shop/a', {})
  await seen(page, /"db_name":"shop"/)
  await seen(page, '0 rows a second')
})

onPage('a disk that is nearly full needs attention', async (page) => {
  const lower = async (route) => {
    const response = await route.fetch()
    const membership = await response.json()
    for (const { load } of Object.values(membership.nodes)) if (load) load.disk_free_bytes = Math.floor(load.disk_total_bytes / 20)
    await route.fulfill({ response, json: membership })
  }
  await page.route('**/_membership', lower)
  await open(page, 'overview')
  await seen(page, /^The disk of .* is nearly full: .* \([45] %\) are free\.$/)
})

onPage('the colours of an editor change with those of the page, at once, and what was typed can be undone', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await open(page, 'databases/shop/queries')
  const text = () => page.locator('.cm-content').innerText()
  await page.locator('.cm-content').waitFor()
  const before = await text()
  await edit(page, '{"selector": {"n": 1}}')
  await page.locator('.cm-line span').getByText('"selector"', { exact: true }).waitFor()
  const colours = await page.evaluate(() => {
    const choice = [...document.querySelectorAll('select')].find((each) => [...each.options].some(({ value }) => value === 'dark'))
    const root = [...document.querySelectorAll('main *')].find((each) => each.shadowRoot?.querySelector('.cm-content')).shadowRoot
    return ['light', 'dark', 'light'].map((value) => {
      choice.value = value
      choice.dispatchEvent(new Event('change', { bubbles: true }))
      const word = [...root.querySelectorAll('.cm-line span')].find(({ textContent }) => textContent === '"selector"')
      return [getComputedStyle(root.querySelector('.cm-editor')).backgroundColor, getComputedStyle(word).color]
    })
  })
  assert.deepEqual(colours, [['rgb(255, 255, 255)', 'rgb(39, 67, 168)'], ['rgb(26, 29, 37)', 'rgb(157, 180, 255)'], ['rgb(255, 255, 255)', 'rgb(39, 67, 168)']])
  await page.locator('.cm-content').click()
  await page.keyboard.press('Control+Z')
  await waitFor('the text to be as before', async () => (await text()) === before)
})
