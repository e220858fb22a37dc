// The dashboard in a browser, with a real server: what each page shows, and what its users do. docs/administration.md
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noBrowser, withPage } from './support/browser.mjs'
import { edit, inspect, logIn, main, onPage, open, seen } from './support/dashboard.mjs'
import { Server, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const PAGES = ['overview', 'databases', 'indexes', 'jobs', 'workers', 'replications', 'triggers', 'feeds', 'nodes', 'settings', 'users', 'log']

/** A little of everything, so that no page is empty. */
async function fill({ client }) {
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/_jobs/mail', {})
  await client.ok('PUT', '/shop/_design/all', {
    views: { by_n: { map: 'function (doc) { emit(doc.n) }', reduce: '_count' } },
    triggers: { mails: { selector: { kind: 'order' }, job: { type: 'mail', id: 'mail-{_id}', data: { n: '{n}' } } } }
  })
  await client.ok('POST', '/shop/_bulk_docs', { docs: Array.from({ length: 300 }, (_, n) => ({ _id: `doc-${String(n).padStart(4, '0')}`, n, kind: n % 2 ? 'order' : 'item' })) })
  await client.ok('PUT', '/_workers/mailer/host-1', { timeout: 600_000 })
  await waitFor('jobs of the trigger', async () => (await client.ok('GET', '/_jobs/mail')).counts.pending === 150)
  await client.ok('PUT', '/_users/org.couchdb.user:ann', { name: 'ann', password: 'pw', roles: ['staff'], type: 'user' })
}

onPage('every page has its content, and no violation of accessibility', async (page, server) => {
  await fill(server)
  const views = [...PAGES, 'databases/shop', 'databases/shop/queries', 'databases/shop/views', 'databases/shop/permissions', 'databases/shop/documents/doc-0001', 'databases/shop/new', 'jobs/mail', 'jobs/mail/mail-doc-0001']
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme })
    for (const view of views) {
      await open(page, view)
      await main(page).locator('h1').waitFor()
      await page.waitForFunction(() => !document.querySelector('[role=status].muted'))
      await inspect(page, `${view} ${colorScheme}`)
    }
  }
})

onPage('a wrong password is refused', async (page) => {
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByLabel('Name').fill('admin')
  await page.getByLabel('Password').fill('wrong')
  await page.getByRole('button', { name: 'Log in' }).click()
  await seen(page, 'Name or password is incorrect.')
}, ['401 POST /_session'])

onPage('a database is created, and deleted when its name is typed', async (page, server) => {
  await open(page, 'databases')
  await page.getByRole('button', { name: 'Create a database' }).click()
  await page.getByRole('dialog').getByRole('textbox').fill('orders')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByRole('heading', { name: 'orders' }).waitFor()
  await seen(page, 'There are no documents yet.')
  await page.getByRole('button', { name: 'Delete the database' }).click()
  const confirm = page.getByRole('button', { name: 'Delete', exact: true })
  await page.getByRole('dialog').getByRole('textbox').fill('order')
  assert.equal(await confirm.isDisabled(), true)
  await page.getByRole('dialog').getByRole('textbox').fill('orders')
  await confirm.click()
  await page.getByRole('heading', { name: 'Databases' }).waitFor()
  assert.equal((await server.client.get('/orders')).status, 404)
})

onPage('a document is written, edited and shown as it is', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await open(page, 'databases/shop/new')
  // What a browser would take for a page of its own, in every place that is shown.
  const hostile = '<img src=x onerror="window.hostile=1"><script>window.hostile=1</script>'
  await edit(page, JSON.stringify({ _id: `${hostile} /ü?#%25`, text: hostile }))
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: hostile }).waitFor()
  const [{ id }] = (await client.ok('GET', '/shop/_all_docs')).rows
  assert.equal(id, `${hostile} /ü?#%25`)
  await open(page, 'databases/shop')
  await page.getByRole('link', { name: id }).click()
  await page.locator('.cm-content').getByText('onerror').first().waitFor()
  const stored = await client.ok('GET', `/shop/${encodeURIComponent(id)}`)
  await edit(page, JSON.stringify({ ...stored, text: 'changed' }))
  await page.getByRole('button', { name: 'Save' }).click()
  await seen(page, 'Saved.')
  assert.equal((await client.ok('GET', `/shop/${encodeURIComponent(id)}`)).text, 'changed')
  assert.equal(await page.evaluate(() => window.hostile), undefined)
})

onPage('a file is attached and removed', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/shop/a', { n: 1 })
  await open(page, 'databases/shop/documents/a')
  await seen(page, 'No attachments.')
  await page.getByLabel('Attach a file').setInputFiles({ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('hello') })
  await page.getByRole('link', { name: 'note.txt' }).waitFor()
  await inspect(page, 'attachments')
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
  await seen(page, 'No attachments.')
  assert.equal((await client.ok('GET', '/shop/a'))._attachments, undefined)
})

onPage('a document that was changed meanwhile is not overwritten', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  const { rev } = await client.ok('PUT', '/shop/a', { n: 1 })
  await open(page, 'databases/shop/documents/a')
  await edit(page, JSON.stringify({ _id: 'a', _rev: rev, n: 2 }))
  await client.ok('PUT', '/shop/a', { _rev: rev, n: 3 })
  await page.getByRole('button', { name: 'Save' }).click()
  await seen(page, 'It has been changed meanwhile.')
  assert.equal((await client.ok('GET', '/shop/a')).n, 3)
  await page.getByRole('button', { name: 'Load the new revision' }).click()
  await page.locator('.cm-content').getByText('3', { exact: true }).waitFor()
}, ['409 PUT /shop/a'])

onPage('a conflict is shown and resolved', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  const docs = ['1-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '1-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'].map((_rev, n) => ({ _id: 'a', _rev, n }))
  await client.ok('POST', '/shop/_bulk_docs', { docs, new_edits: false })
  await open(page, 'databases/shop/documents/a')
  await page.getByRole('button', { name: docs[0]._rev }).click()
  await seen(page, '"n": 0')
  await page.getByRole('button', { name: 'Keep this revision' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Keep this revision' }).click()
  await seen(page, 'No conflicts.')
  const document = await client.ok('GET', '/shop/a?conflicts=true')
  assert.deepEqual([document._rev, document.n, document._conflicts], [docs[0]._rev, 0, undefined])
})

onPage('a list of many documents is read where it is looked at', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  for (let batch = 0; batch < 10; ++batch) {
    await client.ok('POST', '/shop/_bulk_docs', { docs: Array.from({ length: 1000 }, (_, n) => ({ _id: `doc-${String(batch * 1000 + n).padStart(6, '0')}` })) })
  }
  const requests = []
  page.on('request', (request) => requests.push(request.url()))
  await open(page, 'databases/shop')
  await page.getByRole('link', { name: 'doc-000000' }).waitFor()
  const list = page.locator('.scroll')
  await list.evaluate((element) => element.scrollTo(0, element.scrollHeight))
  await page.getByRole('link', { name: 'doc-009999' }).waitFor()
  await list.evaluate((element) => element.scrollTo(0, element.scrollHeight / 2))
  await page.getByRole('link', { name: 'doc-005000' }).waitFor()
  assert.ok((await page.locator('.scroll .line').count()) < 80)
  assert.ok(requests.filter((url) => url.includes('_all_docs')).length < 10)
})

onPage('a view and a query are run', async (page, server) => {
  await fill(server)
  await open(page, 'databases/shop/views')
  await page.getByLabel('First key (JSON)').fill('298')
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByRole('link', { name: 'doc-0299' }).waitFor()
  await seen(page, '2 rows of 300 in the view')
  await page.getByLabel('First key (JSON)').fill('')
  await page.getByLabel('Exact key (JSON)').fill('7')
  await page.getByLabel('Include documents').check()
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByRole('cell', { name: '"kind":"order"' }).waitFor()
  await page.getByLabel('Exact key (JSON)').fill('')
  await page.getByLabel('Limit').fill('5')
  await page.getByRole('button', { name: 'Run' }).click()
  await seen(page, 'The first 5 rows.')
  await page.getByLabel('Reduce').check()
  await page.getByLabel('Group level').fill('0')
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByRole('cell', { name: '300', exact: true }).waitFor()
  await open(page, 'databases/shop/queries')
  await edit(page, '{"selector": {"n": 7}}')
  await page.getByRole('button', { name: 'Run' }).click()
  await seen(page, /Index used: _all_docs/)
  await seen(page, '1 row')
})

onPage('a job is seen from its add to its end', async (page, { client }) => {
  await open(page, 'jobs')
  await seen(page, 'There are no job types yet.')
  await page.getByRole('button', { name: 'Declare a type' }).click()
  await page.getByLabel('Name').fill('mail')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByRole('button', { name: 'Add a job' }).click()
  await page.getByLabel(/^Id/).fill('welcome')
  await page.getByLabel('Data (JSON)').fill('{"to": "ann"}')
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('link', { name: 'welcome' }).click()
  const state = page.locator('h1 .state')
  const reaches = (name) => state.getByText(name, { exact: true }).waitFor()
  await reaches('pending')
  const { jobs: [job] } = await client.ok('POST', '/_jobs/_accept', { types: ['mail'] })
  await reaches('running')
  await client.ok('POST', '/_jobs/mail/welcome/_fail', { lock: job.lock, error: 'no address', retry: false })
  await reaches('failed')
  await seen(page, 'no address')
  await open(page, 'overview')
  await seen(page, '1 job of type mail failed.')
  await open(page, 'jobs/mail?state=failed')
  await page.getByRole('button', { name: 'Run all again' }).click()
  await page.getByRole('button', { name: 'Run again', exact: true }).click()
  await seen(page, '1 job will run again.')
  const { jobs: [again] } = await client.ok('POST', '/_jobs/_accept', { types: ['mail'] })
  await client.ok('POST', '/_jobs/mail/welcome/_finish', { lock: again.lock })
  await open(page, 'jobs/mail/welcome')
  await reaches('finished')
})

onPage('workers are seen when they come and go', async (page, { client }) => {
  await open(page, 'workers')
  await seen(page, 'No workers are registered.')
  const { incarnation } = await client.ok('PUT', '/_workers/mailer/host-1', { timeout: 600_000 })
  await seen(page, 'host-1 joined mailer.')
  await client.ok('DELETE', `/_workers/mailer/host-1?incarnation=${incarnation}`)
  await seen(page, 'host-1 left mailer.')
})

onPage('a feed is followed', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await open(page, 'feeds')
  await page.getByLabel('From').selectOption('the beginning')
  await page.getByRole('button', { name: 'Follow' }).click()
  await seen(page, /"db_name":"shop","type":"created"/)
  await client.ok('PUT', '/later')
  await seen(page, /"db_name":"later","type":"created"/)
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('combobox', { name: 'Feed' }).selectOption('Changes of a database')
  await page.getByRole('combobox', { name: 'Database', exact: true }).fill('nothing')
  await page.getByRole('button', { name: 'Follow' }).click()
  await seen(page, 'Database does not exist.')
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('combobox', { name: 'Feed' }).selectOption('Events of a channel')
  await page.getByRole('combobox', { name: 'Channel', exact: true }).fill('orders/paid')
  await page.getByRole('button', { name: 'Follow' }).click()
  await waitFor('a subscriber', async () => (await client.ok('POST', '/_events/orders/paid', { order: 17 })).reached === 1)
  await seen(page, /"order":17/)
}, ['404 GET /nothing/_changes'])

onPage('a setting is changed', async (page, { client }) => {
  await open(page, 'settings')
  await page.getByLabel('Filter by name').fill('prune_interval')
  await page.getByRole('button', { name: 'Edit' }).click()
  await page.getByLabel('Value').fill('70000')
  await page.getByRole('button', { name: 'Save' }).click()
  await seen(page, 'prune_interval was changed.')
  assert.equal(await client.ok('GET', '/_node/_local/_config/ken/prune_interval'), '70000')
})

onPage('keys lead through the pages', async (page) => {
  await page.keyboard.press('?')
  await page.getByRole('dialog').getByText('goes to the filter of the page').waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('g')
  await page.keyboard.press('j')
  await page.getByRole('heading', { name: 'Jobs' }).waitFor()
  await page.getByLabel('Filter').waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('gn?')
  assert.equal(await page.getByLabel('Filter').inputValue(), 'gn?')
})

onPage('a user is created, who may see databases only', async (page, server) => {
  await server.client.ok('PUT', '/shop')
  await server.client.ok('PUT', '/shop/_security', { members: { names: ['ann'], roles: [] } })
  await open(page, 'users')
  await page.getByRole('button', { name: 'New user' }).click()
  await page.getByLabel('Name').fill('ann')
  await page.getByLabel('Password').fill('pw')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await seen(page, 'The user ann was created.')
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByLabel('Name').waitFor()
  await logIn(page, 'ann', 'pw')
  await open(page, 'databases/shop')
  await page.getByRole('heading', { name: 'shop' }).waitFor()
  for (const name of ['Jobs', 'Settings', 'Nodes']) assert.equal(await page.getByRole('link', { name }).count(), 0)
  assert.equal(await page.getByRole('button', { name: 'Delete the database' }).count(), 0)
  await open(page, 'settings')
  await seen(page, 'Only administrators of the server may see this.')
}, ['401 GET /_all_dbs'])

const title = 'dashboard: a server that is killed and restarted is noticed, and the page goes on'
test(title, { skip: noBrowser }, async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  const { port } = new URL(server.url)
  try {
    await withPage(server.url, async (page) => {
      await logIn(page)
      await open(page, 'databases')
      await server.kill()
      await seen(page, 'The server does not respond.')
      server = await Server.start({ dataDir, port })
      await server.client.ok('PUT', '/after')
      await page.getByRole('link', { name: 'after' }).waitFor()
      assert.equal(await page.getByText('The server does not respond.').count(), 0)
    })
  } finally {
    await server.stop()
  }
})
