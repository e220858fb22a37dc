// The dashboard's pages of one database in a browser: plans of queries, full-text search, the map, revisions. docs/administration.md
import assert from 'node:assert/strict'
import { edit, inspect, onPage, open, seen } from './support/dashboard.mjs'
import { waitFor } from './support/wait.mjs'

// What a browser would take for a page of its own.
const hostile = '<img src=x onerror="window.hostile=1"><script>window.hostile=1</script>'
const isHarmless = async (page) => assert.equal(await page.evaluate(() => window.hostile), undefined)
// In a selector, a dot in a name is escaped.
const field = hostile.replaceAll('.', '\\.')
// Needs every way of escaping: in a path, in a query, in a fragment, in HTML.
const odd = `a/ü 🍊?#%25&"'+<b>`
const path = encodeURIComponent
const button = (page, name) => page.getByRole('button', { name, exact: true })

/** In both colour schemes, and on a telephone. */
async function inspectAll(page, name) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme })
    await inspect(page, `${name} ${colorScheme}`)
  }
  await page.emulateMedia({ colorScheme: 'light' })
  const size = page.viewportSize()
  await page.setViewportSize({ width: 390, height: 844 })
  await inspect(page, `${name} phone`)
  const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
  assert.ok(tooWide <= 0, `${name}: ${tooWide} pixels wider than a telephone`)
  await page.setViewportSize(size)
}

const query = async (page, text, name = 'Run') => {
  await edit(page, typeof text === 'string' ? text : JSON.stringify(text))
  await button(page, name).click()
}

onPage('the plan of a query says that all documents are read, and creates the index that fits', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await client.ok('POST', '/shop/_bulk_docs', { docs: Array.from({ length: 50 }, (_, n) => ({ _id: `d${n}`, kind: n % 2 ? 'order' : 'item', n, [hostile]: hostile })) })
  await client.ok('POST', '/shop/_index', { index: { fields: ['other'] }, ddoc: odd, name: `!${odd}` })
  await open(page, 'databases/shop/queries')
  await query(page, { selector: { n: { $gt: 40 }, kind: 'order', [field]: { $ne: 1 } }, fields: ['_id', 'n'], limit: 3 })
  await seen(page, 'All documents are read.')
  await seen(page, /^3 rows/)
  const plan = page.locator('.plan')
  await plan.getByText('Index used: _all_docs').waitFor()
  const condition = (text) => plan.locator('.conditions li').filter({ hasText: text })
  assert.equal(await condition('n $gt 40').locator('.state').innerText(), 'tested')
  assert.equal(await condition(field).count(), 1)
  await page.getByText('1 index not used').click()
  await page.getByRole('row').filter({ hasText: `${odd}/!${odd}` }).getByText('The selector does not require all of its columns.').waitFor()
  await inspectAll(page, 'plan without an index')
  await button(page, 'Create an index of kind, n').click()
  await plan.getByText('JSON index').waitFor()
  assert.equal(await page.getByText('All documents are read.').count(), 0)
  assert.deepEqual((await client.ok('GET', '/shop/_index')).indexes.at(-1).def.fields, [{ kind: 'asc' }, { n: 'asc' }])
  await plan.getByText('["order",40]').waitFor()
  assert.deepEqual(await plan.locator('.range .mono').allInnerTexts(), ['["order",40]', '["order",…]'])
  for (const [text, state] of [['kind $eq "order"', 'bounds the key range'], ['n $gt 40', 'bounds the key range'], [field, 'tested']]) {
    assert.equal(await condition(text).locator('.state').innerText(), state)
  }
  await seen(page, /^[345] documents examined/)
  await inspectAll(page, 'plan with an index')
  // The link to the design document, whose name has all of these characters.
  await seen(page, '2 indexes not used')
  await page.getByRole('link', { name: `${odd}/!${odd}` }).click()
  await page.getByRole('heading', { name: `_design/${odd}` }).waitFor()
  await isHarmless(page)
})

onPage('a query that no index can be used for is explained, and runs after its index is created', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await client.ok('POST', '/shop/_bulk_docs', { docs: [{ _id: 'a', n: 1 }, { _id: 'b', n: 2, text: 'red apples' }] })
  await open(page, 'databases/shop/queries')
  await query(page, { selector: { n: { $gt: 0 } }, sort: [{ n: 'desc' }] })
  await seen(page, 'No index can be used for this query.')
  await seen(page, /No index exists for this sort/)
  await inspectAll(page, 'plan of no index')
  await button(page, 'Create an index of n').click()
  await seen(page, /^2 rows/)
  await seen(page, 'in descending order')
  await seen(page, 'n desc: the order of the index')
  await query(page, { selector: { $text: 'apples' } })
  await seen(page, 'There is no text index, which $text needs.')
  await button(page, 'Create a text index').click()
  await seen(page, /^1 row/)
  await seen(page, 'By relevance.')
  await inspectAll(page, 'plan of a text index')
  // Explained only: without results.
  await query(page, { selector: { _id: { $gt: 'a', $lt: 'c' } } }, 'Explain')
  await page.locator('.range').getByText('"c"').waitFor()
  assert.equal(await page.getByText('All documents are read.').count(), 0)
  assert.equal(await page.getByText(/^\d+ rows?$/).count(), 0)
  await query(page, '{"selector": ')
  await page.getByRole('alert').waitFor()
}, ['400 POST /shop/_find'])

onPage('a design document to try is created, and words are found by it', async (page, { client }) => {
  await client.ok('PUT', '/books')
  await client.ok('POST', '/books/_bulk_docs', { docs: [{ _id: 'emma', title: 'Emma', text: 'handsome, clever and rich' }, { _id: odd, title: hostile, text: `a clever ${hostile} title` }, { _id: 'none', n: 1 }] })
  await open(page, 'databases/books/search')
  await seen(page, 'No design document has full-text indexes.')
  await inspectAll(page, 'search empty')
  await button(page, 'Create this design document').click()
  await page.getByLabel('Query').fill('clever')
  await button(page, 'Search').click()
  await seen(page, '1 to 2 of 2 results')
  assert.equal(await page.locator('mark').count(), 0)
  await page.getByLabel('Highlight matches').check()
  await page.getByLabel('Query').fill('text:clever title:img')
  await button(page, 'Search').click()
  await page.locator('mark').getByText('clever').first().waitFor()
  const result = page.locator('.results li').filter({ hasText: odd })
  assert.match(await result.innerText(), /Score/i)
  assert.ok((await result.innerText()).includes(`a clever ${hostile} title`))
  assert.equal(await result.locator('mark').first().innerText(), 'img')
  await inspectAll(page, 'search results')
  await page.getByLabel('Query').fill('clever AND (')
  await button(page, 'Search').click()
  await seen(page, /Cannot parse 'clever AND \(': expected a word, at character/)
  await page.getByLabel('Query').fill('nothinglikethis')
  await button(page, 'Search').click()
  await seen(page, 'No document matches.')
  await page.getByLabel('Query').fill('title:img')
  await button(page, 'Search').click()
  await page.getByRole('link', { name: odd }).click()
  await page.getByRole('heading', { name: odd }).waitFor()
  await isHarmless(page)
}, ['400 POST /books/_design/search/_search/words'])

onPage('results of a search are read page by page, of an index with any name', async (page, { client }) => {
  await client.ok('PUT', '/books?partitioned=true')
  await client.ok('PUT', `/books/_design/${path(odd)}`, {
    indexes: {
      [odd]: { index: 'function (doc) { if (!doc.title) throw new Error("<b>no title</b>"); index("default", doc.title, {store: true}); }' },
      other: { index: 'function (doc) { index("default", "same") }' }
    },
    options: { partitioned: true }
  })
  const docs = Array.from({ length: 60 }, (_, n) => ({ _id: `p:${String(n).padStart(2, '0')}`, title: 'same' }))
  await client.ok('POST', '/books/_bulk_docs', { docs: [...docs, { _id: 'q:other', title: 'same' }, { _id: 'p:without' }] })
  await open(page, 'databases/books/search')
  await page.getByLabel('Full-text index').selectOption({ label: `${odd}/${odd}` })
  await page.getByLabel('Partition').fill('p')
  await page.getByLabel('Query').fill('same')
  await button(page, 'Search').click()
  await seen(page, '1 to 25 of 60 results')
  assert.equal(await button(page, 'Previous page').isDisabled(), true)
  const ids = () => page.locator('.results a').allInnerTexts()
  const seenIds = [...await ids()]
  // Pages are of the query that was sent, whatever is typed since.
  await page.getByLabel('Query').fill('something else')
  for (const range of ['26 to 50 of 60 results', '51 to 60 of 60 results']) {
    await button(page, 'Next page').click()
    await seen(page, range)
    seenIds.push(...await ids())
  }
  assert.deepEqual(seenIds.sort(), docs.map(({ _id }) => _id))
  assert.equal(await button(page, 'Next page').isDisabled(), true)
  await button(page, 'Previous page').click()
  await seen(page, '26 to 50 of 60 results')
  await seen(page, /1 document is left out\. For example p:without: .*<b>no title<\/b>/)
  await inspectAll(page, 'search pages')
})

/** The map's state is a request for what is in view: this waits until the one of the current view has been answered. */
const settled = (page, text) => page.getByRole('status').getByText(text, { exact: true }).waitFor()

onPage('a map shows the features in view, and a click on one its document', async (page, { client }) => {
  await client.ok('PUT', '/places')
  await open(page, 'databases/places/map')
  await seen(page, 'No design document has spatial indexes.')
  await inspectAll(page, 'map empty')
  await button(page, 'Create this design document').click()
  await settled(page, '0 features in view.')
  await seen(page, 'There are no features here.')
  const shapes = {
    [odd]: { type: 'Point', coordinates: [8.55, 47.37] },
    area: { type: 'Polygon', coordinates: [[[20, 0], [40, 0], [40, 20], [20, 20], [20, 0]], [[25, 5], [30, 5], [30, 10], [25, 10], [25, 5]]] },
    parts: { type: 'GeometryCollection', geometries: [{ type: 'MultiPoint', coordinates: [[-60, -10], [-50, -20]] }, { type: 'MultiPolygon', coordinates: [[[[-70, -30], [-60, -30], [-60, -20], [-70, -30]]]] }] },
    [hostile]: { type: 'LineString', coordinates: [[170, -10], [-170, 10]] },
    lines: { type: 'Feature', geometry: { type: 'MultiLineString', coordinates: [[[100, 40], [110, 50]], [[120, 40], [130, 60]]] } }
  }
  await client.ok('POST', '/places/_bulk_docs', { docs: Object.entries(shapes).map(([_id, geometry]) => ({ _id, geometry, html: hostile })) })
  const requests = []
  page.on('request', (request) => requests.push(new URL(request.url())))
  await page.reload()
  await settled(page, '5 features in view.')
  const [first] = requests.filter(({ pathname }) => pathname.includes('/_geo/'))
  assert.deepEqual([first.searchParams.get('limit'), first.searchParams.get('bbox').split(',').slice(0, 3)[0]], ['200', '-180'])
  const map = page.getByRole('application', { name: 'Map' })
  assert.equal(await map.locator('circle').count(), 3)
  // The line over the antimeridian is short, and drawn at both ends of the world.
  const widths = await map.locator('.feature').filter({ hasText: 'onerror' }).locator('path').evaluateAll((paths) => paths.map((each) => Math.round(each.getBBox().width)))
  assert.equal(widths.length, 2)
  const { width } = await map.boundingBox()
  for (const each of widths) assert.ok(each < width / 10, `${each} of ${width} pixels`)
  await map.locator('.feature').filter({ hasText: odd }).locator('circle').click()
  const shown = page.getByRole('region', { name: odd })
  await shown.getByText('"html"').waitFor()
  assert.ok((await shown.locator('pre').innerText()).includes('window.hostile=1'))
  await inspectAll(page, 'map')
  // The list has the same features, for keyboards and screen readers.
  await settled(page, '5 features in view.')
  await page.locator('.places').getByRole('button', { name: hostile }).press('Enter')
  await page.getByRole('region', { name: hostile }).getByText('"LineString"').waitFor()
  assert.deepEqual((await page.locator('.places button').allInnerTexts()).sort(), Object.keys(shapes).sort())
  await page.getByRole('region', { name: hostile }).getByRole('link').click()
  await page.getByRole('heading', { name: hostile }).waitFor()
  await isHarmless(page)
})

onPage('a map is moved by pointer, wheel, keys and buttons, and requests what is in view', async (page, { client }) => {
  await client.ok('PUT', '/places')
  await client.ok('PUT', `/places/_design/${path(odd)}`, { st_indexes: { [odd]: { index: 'function (doc) { st_index(doc.geometry); }' } } })
  const at = (_id, lon, lat) => ({ _id, geometry: { type: 'Point', coordinates: [lon, lat] } })
  const many = Array.from({ length: 250 }, (_, n) => at(`m${n}`, -100 + n / 1000, 40))
  await client.ok('POST', '/places/_bulk_docs', { docs: [at('middle', 0.1, 0.1), at('north', 1, 85), at('east', 179, 0), at('west', -179, 0), ...many] })
  await open(page, 'databases/places/map')
  await settled(page, 'The first 200 features in view.')
  await button(page, 'Load more').click()
  await settled(page, '254 features in view.')
  const map = page.getByRole('application', { name: 'Map' })
  const box = await map.boundingBox()
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
  const drag = async (dx, dy) => {
    await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.move(x + dx, y + dy, { steps: 10 })
    await page.mouse.up()
  }
  const only = async (...ids) => {
    await settled(page, `${ids.length} ${ids.length === 1 ? 'feature' : 'features'} in view.`)
    assert.deepEqual((await page.locator('.places button').allInnerTexts()).sort(), ids.sort())
  }
  for (let i = 0; i < 3; ++i) await button(page, 'Zoom in').click()
  await only('middle')
  // To the antimeridian: of a box over it, too, all is found.
  await map.focus()
  for (let i = 0; i < 20; ++i) {
    if (await page.locator('.places').getByText('east').count()) break
    await page.keyboard.press('ArrowRight')
    await page.locator('[role=status]').getByText(/in view\.$/).waitFor()
  }
  for (let i = 0; i < 2; ++i) await page.keyboard.press('ArrowRight')
  await only('east', 'west')
  await page.keyboard.press('0')
  await settled(page, 'The first 200 features in view.')
  await page.mouse.move(x, y)
  // The wheel zooms where the pointer is, and does not scroll the page.
  for (let i = 0; i < 4; ++i) await page.mouse.wheel(0, -200)
  await only('middle')
  assert.equal(await page.evaluate(() => scrollY), 0)
  for (let i = 0; i < 12; ++i) await page.mouse.wheel(0, 200)
  await settled(page, 'The first 200 features in view.')
  for (let i = 0; i < 2; ++i) await page.keyboard.press('+')
  await only('middle')
  // A drag does not choose the feature below the pointer.
  for (let i = 0; i < 4; ++i) await drag(0, box.height * 0.45)
  await only('north')
  assert.equal(await page.getByRole('region', { name: 'middle' }).count(), 0)
  await button(page, 'Fit to the features').click()
  await only('north')
  const circle = await map.locator('circle').boundingBox()
  assert.ok(Math.abs(circle.x - x) < 20, `${circle.x}`)
  // A degree has a hundred pixels here: the graticule has labels of less than a degree.
  await map.getByText(/^\d+\.\d+° E$/).first().waitFor()
  await inspectAll(page, 'map near')
  await button(page, 'Whole world').click()
  await settled(page, 'The first 200 features in view.')
})

/** A document with a winner, a conflict, a deleted branch, and revisions that were never here. */
async function writeTree(client, id) {
  const at = `/tree/${path(id)}`
  const { rev: first } = await client.ok('PUT', at, { n: 1, html: hostile, list: [1, 2, 3] })
  const { rev: second } = await client.ok('PUT', at, { _rev: first, n: 2, html: hostile, list: [1, 2, 3] })
  const { rev: third } = await client.ok('PUT', at, { _rev: second, n: 3, html: hostile, list: [1, 3] })
  const ids = (...revs) => revs.map((rev) => rev.slice(rev.indexOf('-') + 1))
  const gone = (n) => `${n}-${String(n).repeat(32).slice(0, 32)}`
  const conflict = `2-${'b'.repeat(32)}`
  const deleted = `9-${'c'.repeat(32)}`
  await client.ok('POST', '/tree/_bulk_docs', {
    new_edits: false,
    docs: [
      { _id: id, n: 10, html: 'other', list: [1, 2, 3], _rev: conflict, _revisions: { start: 2, ids: ids(conflict, first) } },
      { _id: id, _deleted: true, _rev: deleted, _revisions: { start: 9, ids: ids(deleted, ...[8, 7, 6, 5, 4, 3].map(gone), second, first) } }
    ]
  })
  return { first, second, third, conflict, deleted }
}

onPage('revisions are a tree, and each is compared with the winner', async (page, { client }) => {
  await client.ok('PUT', '/tree')
  const { first, second, third, conflict, deleted } = await writeTree(client, odd)
  await open(page, `databases/tree/documents/${path(odd)}`)
  const row = (rev) => page.locator('.revisions li').filter({ hasText: rev })
  const states = async (rev) => (await row(rev).locator('.state').allInnerTexts()).join(' ')
  await row(deleted).waitFor()
  assert.deepEqual(await Promise.all([third, conflict, deleted, second, first].map(states)), ['winner', 'conflict', 'deleted', '', ''])
  assert.equal((await page.locator('.revisions li').allInnerTexts())[1], '6 revisions that are not stored')
  // A line from each revision but the first to its parent; each of the three branches has a place of its own.
  assert.equal(await page.locator('.graph path').count(), 5)
  assert.equal(await page.locator('.graph circle').evaluateAll((circles) => new Set(circles.map((each) => each.getAttribute('cx'))).size), 3)
  await inspectAll(page, 'revisions')
  await button(page, second).click()
  const panel = page.getByRole('region', { name: second })
  await panel.locator('del').first().waitFor()
  const changed = (kind) => panel.locator(kind).allInnerTexts().then((lines) => lines.map((line) => line.trim()))
  assert.deepEqual([await changed('del'), await changed('ins')], [['−     2,', '−   "n": 2'], ['+   "n": 3']])
  await panel.getByText('Content of this revision').click()
  assert.ok((await panel.locator('details pre').innerText()).includes('window.hostile=1'))
  await inspectAll(page, 'revision')
  assert.equal(await button(page, 'Keep this revision').count(), 0)
  await button(page, deleted).click()
  await page.getByRole('region', { name: deleted }).getByText('"_deleted": true').first().waitFor()
  await button(page, third).click()
  await page.getByRole('region', { name: third }).getByText('"n": 3').waitFor()
  // It is compacted while the page shows it as stored.
  await client.ok('POST', '/tree/_compact')
  await waitFor('the compaction', async () => (await client.get(`/tree/${path(odd)}?rev=${first}`)).status === 404)
  await button(page, first).click()
  await seen(page, 'The content of this revision is no longer stored')
  await page.reload()
  await row(first).getByText('not stored').waitFor()
  assert.equal(await button(page, first).count(), 0)
  await button(page, conflict).click()
  await button(page, 'Keep this revision').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Keep this revision' }).click()
  await seen(page, 'No conflicts.')
  await row(conflict).getByText('winner').waitFor()
  assert.equal((await client.ok('GET', `/tree/${path(odd)}`)).n, 10)
  await isHarmless(page)
}, [`404 GET /tree/${path(odd)}`])

onPage('a deleted document has its revisions, and one that never was has not', async (page, { client }) => {
  await client.ok('PUT', '/tree')
  const { rev } = await client.ok('PUT', '/tree/a', { n: 1 })
  const { rev: last } = await client.ok('DELETE', `/tree/a?rev=${rev}`)
  await open(page, 'databases/tree/documents/a')
  await seen(page, 'This document is deleted.')
  await button(page, rev).click()
  await page.getByRole('region', { name: rev }).locator('del').getByText('"n": 1').waitFor()
  await page.locator('.revisions li').filter({ hasText: last }).getByText('deleted').waitFor()
  await inspectAll(page, 'revisions of a deleted document')
  await open(page, 'databases/tree/documents/b')
  await seen(page, 'This document does not exist.')
  assert.equal(await page.getByText('Revisions').count(), 0)
  // A document in the browser's address that has no revision tree.
  await client.ok('PUT', '/tree/_local/x', { n: 1 })
  await open(page, `databases/tree/documents/${path('_local/x')}`)
  await page.locator('.cm-content').getByText('"n"').waitFor()
}, ['404 GET /tree/a', '404 GET /tree/b'])
