// The dashboard while things happen: workers that run and die, builds, a server that is killed, several users.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { noBrowser, withPage } from './support/browser.mjs'
import { inspect, logIn, main, onPage, open, seen } from './support/dashboard.mjs'
import { Server, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'
import { killWorkers, WorkerProcess } from './support/worker_process.mjs'

after(killWorkers)

const kit = fileURLToPath(new URL('kits/worker.mjs', import.meta.url))
const plain = fileURLToPath(new URL('kits/plain.mjs', import.meta.url))
const addressOf = ({ url, credentials }) => url.replace('//', `//${credentials}@`)
/** A worker's process for jobs of the type `mail`, with the role `mail`. */
const startWorker = (server, id) => new WorkerProcess('node', kit, addressOf(server), JSON.stringify({ type: 'mail', worker: { id } }))

const row = (page, text) => page.getByRole('row').filter({ hasText: text })
const state = (within, name) => within.locator('.state').getByText(name, { exact: true }).waitFor()
/** Fails if the page was loaded again meanwhile. */
const mark = (page) => page.evaluate(() => (window.marked = true))
const isMarked = (page) => page.evaluate(() => window.marked === true)

/** Screenshots of both colour schemes and of a phone's width. */
async function inspectAll(page, name) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme })
    await inspect(page, `live ${name} ${colorScheme}`)
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 390, height: 844 })
  await inspect(page, `live ${name} phone`)
  await page.setViewportSize({ width: 1400, height: 900 })
}

onPage('a job that a worker runs is seen at each step', async (page, server) => {
  const { client } = server
  await client.ok('PUT', '/_jobs/mail', {})
  await open(page, 'jobs/mail')
  await seen(page, 'There are no jobs of this type yet.')
  await mark(page)
  await client.ok('PUT', '/_jobs/mail/welcome', { data: { do: 'hold' } })
  await state(row(page, 'welcome'), 'pending')
  const worker = startWorker(server, 'w1')
  await state(row(page, 'welcome'), 'running')
  await row(page, 'welcome').getByText('w1').waitFor()
  await page.getByRole('link', { name: 'welcome' }).click()
  await seen(page, '"held": true')
  const line = page.getByRole('list', { name: 'Timeline' })
  await line.getByText('Attempt 1').waitFor()
  await inspectAll(page, 'job')
  worker.tell('go')
  await state(page.locator('h1'), 'finished')
  await state(line, 'finished')
  await seen(page, '"by": "w1"')
  assert.equal(await isMarked(page), true)
  worker.kill('SIGTERM')
})

onPage('a worker that is killed is seen lost, and another one finishes its job', async (page, server) => {
  const { client } = server
  await client.ok('PUT', '/_jobs/mail', {})
  const first = startWorker(server, 'first')
  await first.says('online')
  await client.ok('PUT', '/_jobs/mail/letter', { data: { do: 'hold' } })
  await first.says('ran letter')
  await open(page, 'workers')
  await mark(page)
  await row(page, 'first').getByRole('link', { name: 'mail/letter' }).waitFor()
  const second = startWorker(server, 'second')
  await state(row(page, 'second'), 'idle')
  first.kill('SIGKILL')
  await state(row(page, 'first'), 'lost')
  await row(page, 'first').getByText('Came back to the queue').waitFor()
  await state(row(page, 'first'), 'running')
  await row(page, 'second').getByRole('link', { name: 'mail/letter' }).waitFor()
  await page.getByRole('listitem').getByText('The worker first of mail was lost').waitFor()
  await inspectAll(page, 'workers')
  second.tell('go')
  await state(row(page, 'first'), 'finished')
  await state(row(page, 'second'), 'idle')
  await open(page, 'overview')
  await seen(page, 'The worker first of mail was lost; 1 job of it came back to the queue.')
  await inspectAll(page, 'overview')
  await open(page, 'jobs/mail/letter')
  const line = page.getByRole('list', { name: 'Timeline' })
  await state(line, 'lost')
  await state(line, 'finished')
  assert.deepEqual(await line.locator('strong').allTextContents(), ['Added', 'Attempt 1', 'Attempt 2'])
  assert.equal(await isMarked(page), true)
  second.kill('SIGTERM')
})

onPage('a worker that is frozen is seen lost, and a registration is ended', async (page, server) => {
  const { client } = server
  await client.ok('PUT', '/_jobs/mail', {})
  for (const id of ['a', 'b']) await client.ok('PUT', `/_jobs/mail/${id}`, {})
  const start = (id, timeout) => new WorkerProcess('node', plain, addressOf(server), JSON.stringify({ type: 'mail', id, how: 'beat', timeout, db: 'none' }))
  const frozen = start('frozen', 2000)
  await frozen.says('ran a')
  const idle = start('other', 600_000)
  await idle.says('ran b')
  await open(page, 'workers')
  await row(page, 'frozen').getByRole('link', { name: 'mail/a' }).waitFor()
  frozen.kill('SIGSTOP')
  await state(row(page, 'frozen'), 'lost')
  await state(row(page, 'frozen'), 'pending')
  await row(page, 'other').getByRole('button', { name: 'End the registration' }).click()
  await page.getByRole('dialog').getByText('1 job of it will be pending again').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'End the registration' }).click()
  await state(row(page, 'other'), 'lost')
  assert.equal((await client.ok('GET', '/_jobs/mail')).counts.pending, 2)
  for (const worker of [frozen, idle]) worker.kill('SIGKILL')
})

onPage('a running job is released, and its worker is notified', async (page, { client }) => {
  await client.ok('PUT', '/_jobs/mail', {})
  await client.ok('PUT', '/_jobs/mail/letter', {})
  const held = await client.open('/_workers/mailer/w1/_hold', { method: 'POST', body: { timeout: 600_000 } })
  const { incarnation } = await held.row()
  const { jobs: [{ epoch }] } = await client.ok('POST', '/_jobs/mail/_accept', { worker: { role: 'mailer', id: 'w1', incarnation } })
  await open(page, 'workers')
  await row(page, 'mailer').getByRole('progressbar', { name: 'Time since the last heartbeat of w1' }).waitFor()
  await row(page, 'mailer').getByText(/ of 10 min/).waitFor()
  await open(page, 'jobs/mail/letter')
  await page.getByRole('button', { name: 'Release' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('This ends the attempt of mailer/w1').waitFor()
  await dialog.getByRole('button', { name: 'Release' }).click()
  await state(page.locator('h1'), 'pending')
  assert.equal((await held.row()).halt.epoch, epoch)
  const { state: now, attempt } = await client.ok('GET', '/_jobs/mail/letter')
  assert.deepEqual([now, attempt], ['pending', 0])
  held.close()
})

onPage('a build is seen with its progress, and in the history', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await client.ok('POST', '/shop/_bulk_docs', { docs: Array.from({ length: 4000 }, (_, n) => ({ _id: `d${n}`, n })) })
  await open(page, 'indexes')
  await seen(page, 'No design document has indexes.')
  const map = 'function (doc) { var x = 0; for (var i = 0; i < 150000; ++i) x = (x * 31 + i) % 1000003; emit(doc.n + x) }'
  await client.ok('PUT', '/shop/_design/slow', { views: { by_n: { map } } })
  const bar = page.getByRole('progressbar', { name: 'Progress of _design/slow of shop' })
  const shares = new Set()
  await waitFor('the bar to grow', async () => {
    shares.add(Number(await bar.getAttribute('aria-valuenow', { timeout: 1000 })))
    return [...shares].filter((share) => share > 0 && share < 100).length >= 2
  })
  await inspectAll(page, 'indexes')
  const built = page.getByRole('region', { name: 'Latest builds' })
  await state(row(built, 'slow'), 'finished')
  await bar.waitFor({ state: 'detached' })
  await state(row(page.getByRole('region', { name: 'All indexes' }), 'by_n'), 'up to date')
  await row(built, 'slow').getByRole('link', { name: 'Earlier builds' }).click()
  await state(page.locator('h1'), 'finished')
})

onPage('a receiver that fails, and a trigger that leaves out documents, need attention', async (page, { client }) => {
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/_jobs/hook', { max_attempts: 100, deliver: { url: 'http://127.0.0.1:1/' } })
  await client.ok('PUT', '/_jobs/mail', {})
  await client.ok('PUT', '/shop/_design/mails', { triggers: { welcome: { job: { type: 'mail', id: 'x-{name}', data: { to: '{name}' } } } } })
  await client.ok('POST', '/shop/_bulk_docs', { docs: [{ _id: 'a' }] })
  await client.ok('POST', '/_jobs/hook/_bulk', { jobs: Array.from({ length: 20 }, (_, n) => ({ id: `${n}` })) })
  await open(page, 'overview')
  await seen(page, /Deliveries of type hook are paused/)
  await seen(page, 'A trigger of mails in shop added no jobs for 1 document.')
  await inspectAll(page, 'attention')
})

onPage('a conflict that a replication has brought is resolved', async (page, { client }) => {
  for (const name of ['here', 'there']) await client.ok('PUT', `/${name}`)
  const replicate = (source, target) => client.ok('POST', '/_replicate', { source, target })
  const { rev } = await client.ok('PUT', '/here/order', { by: 'nobody' })
  await replicate('here', 'there')
  for (const by of ['here', 'there']) await client.ok('PUT', `/${by}/order`, { by, _rev: rev })
  await replicate('there', 'here')
  const { _rev: winner, _conflicts: [loser] } = await client.ok('GET', '/here/order?conflicts=true')
  const kept = await client.ok('GET', `/here/order?rev=${loser}`)
  await open(page, 'databases/here/documents/order')
  await page.getByRole('button', { name: loser }).click()
  await seen(page, `"by": "${kept.by}"`)
  await page.getByRole('button', { name: 'Keep this revision' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Keep this revision' }).click()
  await seen(page, 'No conflicts.')
  await replicate('here', 'there')
  for (const name of ['here', 'there']) {
    const document = await client.ok('GET', `/${name}/order?conflicts=true`)
    assert.deepEqual([document.by, document._conflicts, document._rev !== winner], [kept.by, undefined, true])
  }
})

test('dashboard_live: a server that is killed is restarted, and pages and workers go on', { skip: noBrowser }, async () => {
  const dataDir = temporaryDirectory()
  let server = await Server.start({ dataDir })
  const { port } = new URL(server.url)
  try {
    await withPage(server.url, async (page) => {
      await server.client.ok('PUT', '/_jobs/mail', {})
      await server.client.ok('PUT', '/_jobs/mail/before', { data: { do: 'hold' } })
      const worker = startWorker(server, 'w1')
      await logIn(page)
      await open(page, 'jobs/mail')
      await state(row(page, 'before'), 'running')
      await mark(page)
      await server.kill()
      await seen(page, 'The server does not respond.')
      await inspect(page, 'live killed')
      server = await Server.start({ dataDir, port })
      await page.getByText('The server does not respond.').waitFor({ state: 'detached' })
      await server.client.ok('PUT', '/_jobs/mail/later', { data: { do: 'note' } })
      await row(page, 'later').waitFor()
      worker.tell('go')
      await state(row(page, 'before'), 'finished')
      await state(row(page, 'later'), 'finished')
      assert.equal(await isMarked(page), true)
      worker.kill('SIGTERM')
    })
  } finally {
    await server.stop()
  }
})

onPage('what one user changes, another one sees; a user is offered only what she may do', async (page, server) => {
  const { client } = server
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/shop/_security', { members: { names: ['ann'], roles: [] } })
  await client.ok('PUT', '/_users/org.couchdb.user:ann', { name: 'ann', password: 'pw', roles: [], type: 'user' })
  await client.ok('PUT', '/_jobs/mail', {})
  const browser = page.context().browser()
  const [other, ann] = [await browser.newPage({ baseURL: server.url }), await browser.newPage({ baseURL: server.url })]
  await logIn(other)
  await logIn(ann, 'ann', 'pw')
  // A change of settings, and of data.
  await open(other, 'jobs')
  await open(page, 'jobs/mail')
  await page.getByRole('button', { name: 'Pause' }).click()
  await state(row(other, 'mail'), 'paused')
  await open(other, 'jobs/mail')
  await page.getByRole('button', { name: 'Add a job' }).click()
  await page.getByLabel(/^Id/).fill('welcome')
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await state(row(other, 'welcome'), 'pending')
  await open(page, 'databases')
  await open(other, 'databases')
  await page.getByRole('button', { name: 'Create a database' }).click()
  await page.getByRole('dialog').getByRole('textbox').fill('orders')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await other.getByRole('link', { name: 'orders' }).waitFor()
  // An ordinary user.
  for (const name of ['Overview', 'Indexes', 'Jobs', 'Workers', 'Triggers', 'Settings', 'Users']) assert.equal(await ann.getByRole('link', { name }).count(), 0, name)
  for (const view of ['jobs', 'jobs/mail', 'workers', 'indexes', 'triggers', 'overview']) {
    await open(ann, view)
    await seen(ann, 'Only administrators of the server may see this.')
    assert.equal(await main(ann).getByRole('button').count(), 0, view)
  }
  await open(ann, 'databases/shop')
  await ann.getByRole('heading', { name: 'shop' }).waitFor()
  assert.equal(await ann.getByRole('button', { name: 'Delete the database' }).count(), 0)
  await open(ann, 'databases/shop/permissions')
  await seen(ann, 'Only admins of the database may change its permissions.')
  assert.equal(await ann.getByRole('button', { name: 'Save' }).count(), 0)
  await open(ann, 'databases/shop/views')
  await seen(ann, 'No design document has views.')
  assert.equal(await ann.getByRole('button', { name: 'Create this design document' }).count(), 0)
  await open(ann, 'databases')
  await seen(ann, 'Only administrators of the server may list all databases.')
  // She becomes an admin of the database.
  await client.ok('PUT', '/shop/_security', { admins: { names: ['ann'], roles: [] } })
  await open(ann, 'databases/shop/views')
  await ann.getByRole('button', { name: 'Create this design document' }).click()
  await ann.getByRole('combobox', { name: 'View' }).waitFor()
  await open(ann, 'databases/shop/permissions')
  await ann.getByRole('button', { name: 'Save' }).waitFor()
})

/** Adds jobs with these ids, and makes them fail. */
async function addFailed(client, ids) {
  await client.ok('POST', '/_jobs/mail/_bulk', { jobs: ids.map((id) => ({ id })) })
  for (;;) {
    const { jobs } = await client.ok('POST', '/_jobs/mail/_accept', { limit: 1000 })
    if (jobs.length === 0) return
    await client.ok('POST', '/_jobs/mail/_fail', { jobs: jobs.map(({ id, lock }) => ({ id, lock, error: 'no luck', retry: false })) })
  }
}

onPage('failed jobs are run again, all or those of a filter, with progress and a stop', async (page, { client }) => {
  await client.ok('PUT', '/_jobs/mail', {})
  await addFailed(client, [...Array.from({ length: 2500 }, (_, n) => `a-${n}`), 'b-1', 'b-2', 'b-3'])
  const counts = async () => (await client.ok('GET', '/_jobs/mail')).counts
  const dialog = page.getByRole('dialog')
  const button = (name) => dialog.getByRole('button', { name, exact: true })
  await open(page, 'jobs/mail?state=failed')
  // Those of the filter; one is removed by somebody else in the last moment.
  await page.getByLabel('Filter by the beginning of the id').fill('b-')
  await row(page, 'b-2').waitFor()
  assert.equal(await page.getByRole('row').filter({ hasText: 'a-' }).count(), 0)
  await page.route('**/_jobs/mail/b-2/_resubmit', async (route) => {
    await client.ok('DELETE', '/_jobs/mail/b-2')
    await route.continue()
  })
  await page.getByRole('button', { name: 'Run all again' }).click()
  await dialog.getByText('This runs 3 jobs (failed) whose ids begin with “b-” again.').waitFor()
  await button('Cancel').click()
  assert.deepEqual([(await counts()).failed, (await counts()).pending], [2503, 0])
  await page.getByRole('button', { name: 'Run all again' }).click()
  await button('Run again').click()
  await dialog.getByText('2 jobs will run again. The server refused 1 job:').waitFor()
  await dialog.getByRole('link', { name: 'b-2' }).waitFor()
  await inspect(page, 'live bulk')
  await button('Close').click()
  assert.deepEqual([(await counts()).failed, (await counts()).pending], [2500, 2])
  // All, in several requests; the user stops it before the second one.
  await page.getByLabel('Filter by the beginning of the id').fill('')
  let proceed
  const isStopped = new Promise((resolve) => (proceed = resolve))
  await page.route('**/_jobs/mail/_resubmit', async (route) => {
    if (route.request().postDataJSON().start) await isStopped
    await route.continue().catch(() => {})
  })
  await page.getByRole('button', { name: 'Run all again' }).click()
  await dialog.getByText('This runs 2,500 jobs (failed) again.').waitFor()
  await button('Run again').click()
  await dialog.getByText('1,000 of 2,500').waitFor()
  await inspectAll(page, 'bulk progress')
  await button('Stop').click()
  await dialog.getByText('1,000 jobs will run again. The others were left as they are.').waitFor()
  proceed()
  await button('Close').click()
  assert.deepEqual([(await counts()).failed, (await counts()).pending], [1500, 1002])
  await page.getByRole('button', { name: 'Run all again' }).click()
  await button('Run again').click()
  await dialog.getByText('1,500 jobs will run again.').waitFor()
  await button('Close').click()
  await seen(page, 'No jobs match.')
  // And others are cancelled, and removed.
  await page.getByRole('link', { name: /^Pending/ }).click()
  await page.getByRole('button', { name: 'Cancel all' }).click()
  await button('Cancel jobs').click()
  await dialog.getByText('2,502 jobs were cancelled.').waitFor()
  await button('Close').click()
  await page.getByRole('link', { name: 'All', exact: true }).click()
  await page.getByRole('button', { name: 'Remove all ended jobs' }).click()
  await button('Remove jobs').click()
  await dialog.getByText('2,502 jobs were removed.').waitFor()
  assert.deepEqual(Object.values(await counts()), [0, 0, 0, 0, 0])
}, ['404 POST /_jobs/mail/b-2/_resubmit'])
