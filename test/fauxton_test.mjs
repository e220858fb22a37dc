// Fauxton, CouchDB's web interface, in a browser: what its users do most.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { noBrowser, withPage } from './support/browser.mjs'
import { fauxtonFolder } from './support/fauxton.mjs'
import { runDivan, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const options = noBrowser ? {} : { args: ['--fauxton', fauxtonFolder()] }

async function logIn(page, name, password) {
  await page.fill('#username', name)
  await page.fill('#password', password)
  await page.shoot('login')
  await page.click('button:has-text("Log In"), input[value="Log In"]')
}

/** A test of a page, after the login. `problems`: those that the test expects, as page.problems. */
function onPage(name, body, problems = []) {
  if (noBrowser) return test(`fauxton: ${name}`, { skip: noBrowser }, () => {})
  testWithServer(name, options, async (server) => {
    await server.client.ok('POST', '/_cluster_setup', { action: 'enable_single_node' })
    await withPage(server.url, async (page) => {
      await page.goto('/_utils')
      await logIn(page, 'admin', 'secret')
      await page.waitForSelector('text=You have been logged in')
      page.problems.splice(0)
      await body(server, page)
      assert.deepEqual(page.problems.sort(), [...problems].sort())
    })
  })
}

const open = (page, hash) => page.goto(`/_utils/#/${hash}`)
/** Replaces the text of the page's editor. */
async function edit(page, text) {
  const editor = page.locator('.ace_editor')
  await editor.waitFor()
  await editor.evaluate((element, value) => element.env.editor.setValue(value, 1), text)
}
/** Writes documents d0, d1 ... of two kinds to a new database. */
async function fillShop(server) {
  await server.client.ok('PUT', '/shop')
  const docs = Array.from({ length: 30 }, (_, n) => ({ _id: `d${n}`, kind: n % 3 ? 'lamp' : 'chair', n }))
  await server.client.ok('POST', '/shop/_bulk_docs', { docs })
}

const folder = temporaryDirectory()
const files = { 'index.html': '<html>', 'js/a b.js': '1', 'favicon.ico': 'icon', '../outside': 'secret' }
for (const [name, content] of Object.entries(files)) {
  mkdirSync(path.dirname(path.join(folder, 'www', name)), { recursive: true })
  writeFileSync(path.join(folder, 'www', name), content)
}
testWithServer('files are sent with their types, validators and policy', { args: ['--fauxton', path.join(folder, 'www')] }, async (server) => {
  const client = server.as(null)
  const get = (target, headers = {}) => client.get(target, { headers })
  const moved = await get('/_utils')
  assert.deepEqual([moved.status, moved.headers.location], [301, `${server.url}/_utils/`])
  const index = await get('/_utils/')
  assert.deepEqual([index.status, index.text, index.headers['content-type']], [200, '<html>', 'text/html; charset=utf-8'])
  assert.match(index.headers['content-security-policy'], /^default-src 'self'; /)
  assert.equal(index.headers['cache-control'], 'private, must-revalidate')
  const script = await get('/_utils/js/a%20b.js')
  assert.deepEqual([script.text, script.headers['content-type']], ['1', 'text/javascript; charset=utf-8'])
  const { etag, 'last-modified': modified } = script.headers
  assert.match(modified, / GMT$/)
  for (const [headers, status] of [
    [{ 'If-None-Match': etag }, 304],
    [{ 'If-None-Match': '"other"' }, 200],
    [{ 'If-Modified-Since': modified }, 304],
    [{ 'If-Modified-Since': 'Thu, 01 Jan 1970 00:00:00 GMT' }, 200],
    [{ 'If-None-Match': '"other"', 'If-Modified-Since': modified }, 200]
  ]) {
    assert.equal((await get('/_utils/js/a%20b.js', headers)).status, status, JSON.stringify(headers))
  }
  const icon = await get('/favicon.ico')
  assert.deepEqual([icon.text, icon.headers['content-type']], ['icon', 'image/vnd.microsoft.icon'])
  for (const target of ['/_utils/../outside', '/_utils/%2e%2e/outside', '/_utils/..%2foutside', '/_utils/js/', '/_utils/js', '/_utils/nothing.js', '/_utils/index.html/'])
    assert.equal((await get(target)).status, 404, target)
  await server.client.ok('PUT', '/_node/_local/_config/csp/utils_header_value', `"default-src 'none'"`)
  assert.equal((await get('/_utils/')).headers['content-security-policy'], "default-src 'none'")
  await server.client.ok('PUT', '/_node/_local/_config/csp/utils_enable', '"false"')
  assert.equal((await get('/_utils/')).headers['content-security-policy'], undefined)
})

test('fauxton: a folder without its files is an error at the start', async () => {
  for (const [name, reason] of [
    [folder, `${folder} has no index.html.`],
    ['/nowhere', 'Cannot read /nowhere: No such file or directory']
  ]) {
    const { code, stderr } = await runDivan(['serve', '--data-dir', path.join(temporaryDirectory(), 'data'), '--port', '0', '--fauxton', name])
    assert.deepEqual([code, stderr.trim()], [1, `divan: ${reason}`])
  }
})

onPage('a database and a document are created, edited and deleted', async (server, page) => {
  await page.click('text=Create Database')
  await page.fill('#js-new-database-name', 'shop')
  if ((await page.locator('#non-partitioned-db').count()) > 0) await page.click('#non-partitioned-db')
  await page.shoot('database new')
  await page.click('#js-create-database')
  await page.waitForURL(/database\/shop/)
  await page.click('text=Create Document')
  await edit(page, '{"_id": "lamp ü/1", "price": 30}')
  await page.shoot('document new')
  await page.click('.save-doc')
  await page.waitForURL(/_all_docs/)
  const document = '/shop/lamp%20%C3%BC%2F1'
  assert.equal((await server.client.ok('GET', document)).price, 30)

  await open(page, `database/shop/${encodeURIComponent('lamp ü/1')}`)
  await page.waitForSelector('.ace_editor :text("price")')
  await page.shoot('document')
  const { _rev } = await server.client.ok('GET', document)
  await edit(page, JSON.stringify({ _id: 'lamp ü/1', _rev, price: 40 }))
  await page.click('.save-doc')
  await page.waitForURL(/_all_docs/)
  assert.equal((await server.client.ok('GET', document)).price, 40)

  // An attachment.
  const file = path.join(temporaryDirectory(), 'picture ü.txt')
  writeFileSync(file, 'contents of the attachment')
  await open(page, `database/shop/${encodeURIComponent('lamp ü/1')}`)
  await page.click('text=Upload Attachment')
  await page.setInputFiles('input[type=file]', file)
  await page.shoot('attachment')
  await page.click('#upload-btn')
  await waitFor('the attachment', async () => Object.keys((await server.client.ok('GET', document))._attachments ?? {}).length === 1)
  await page.waitForSelector('text=View Attachments')
  await page.click('text=View Attachments')
  await page.shoot('attachments')
  assert.equal((await server.client.get(`${document}/${encodeURIComponent('picture ü.txt')}`)).text, 'contents of the attachment')

  await page.click('button:has-text("Delete")')
  await page.shoot('document delete')
  await page.click('.modal-dialog button:has-text("Delete")')
  await waitFor('the deletion', async () => (await server.client.get(document)).status === 404)
  await page.waitForSelector('text=No Documents Found')
  await page.shoot('documents')
})

onPage('a view is created and queried, with its reduction', async (server, page) => {
  await fillShop(server)
  await open(page, 'database/shop/new_view')
  await page.fill('#new-ddoc', 'by')
  await page.fill('#index-name', 'kind')
  await edit(page, 'function (doc) {\n  emit(doc.kind, doc.n);\n}')
  await page.selectOption('#reduce-function-selector', '_sum')
  await page.shoot('view new')
  await page.click('#save-view')
  await page.waitForURL(/_view\/kind/)
  await page.waitForSelector('text=lamp')
  await page.shoot('view')
  await page.click('text=Options')
  await page.click('label[for=qoReduce]')
  await page.shoot('view options')
  await page.click('#query-options-tray button:has-text("Run Query")')
  await page.waitForSelector('text=/chair/')
  await page.shoot('view reduced')
})

onPage('a Mango index is created, and a query that uses it is run and explained', async (server, page) => {
  await fillShop(server)
  await open(page, 'database/shop/_index')
  await edit(page, '{"index": {"fields": ["kind", "n"]}, "name": "kinds", "type": "json"}')
  await page.shoot('mango index')
  await page.click('#create-index-btn')
  await waitFor('the index', async () => (await server.client.ok('GET', '/shop/_index')).indexes.some(({ name }) => name === 'kinds'))
  await page.shoot('mango index created')
  await open(page, 'database/shop/_find')
  await edit(page, '{"selector": {"kind": "chair", "n": {"$gt": 20}}}')
  await page.click('#create-index-btn')
  await page.waitForSelector('text=d27')
  await page.shoot('mango')
  await page.click('#explain-btn')
  await page.waitForSelector('text=kinds')
  await page.shoot('mango explain')
})

onPage('permissions are changed', async (server, page) => {
  await server.client.ok('PUT', '/shop')
  await open(page, 'database/shop/permissions')
  const forms = page.locator('.permissions-add-user')
  await forms.nth(1).locator('input').fill('ann')
  await forms.nth(1).locator('button').click()
  await waitFor('the member', async () => (await server.client.ok('GET', '/shop/_security')).members?.names?.includes('ann'))
  await page.shoot('permissions')
})

onPage('settings are changed, tasks, changes and the setup shown; a wrong login is refused', async (server, page) => {
  await server.client.ok('PUT', '/shop')
  await server.client.ok('PUT', '/shop/a', {})
  await open(page, '_config')
  await page.waitForSelector('text=max_connections')
  await page.click('text=CORS')
  await page.click('text=Enable CORS')
  await page.waitForSelector('text=CORS is currently enabled')
  assert.equal(await server.client.ok('GET', '/_node/_local/_config/httpd/enable_cors'), 'true')
  await page.shoot('cors')
  await open(page, 'activetasks')
  await page.waitForSelector('text=No active tasks.')
  await open(page, 'setup')
  await page.waitForSelector('text=configured for production usage as a single node')
  await open(page, 'database/shop/_changes')
  await page.waitForSelector('.change-box:has-text("a")')
  await page.shoot('changes')
  await page.click('text=Log Out')
  await page.waitForSelector('#username')
  await logIn(page, 'admin', 'wrong')
  await page.waitForSelector('text=Name or password is incorrect.')
  await page.shoot('wrong')
  page.problems = page.problems.filter((problem) => !problem.startsWith('401 ')) // since the logout
})

onPage('the installation is verified', async (server, page) => {
  await open(page, 'verifyinstall')
  await page.click('#start')
  await page.waitForSelector('tr:has-text("Replication") :text("✓")')
  for (const what of ['Create Database', 'Create Document', 'Update Document', 'Delete Document', 'Create View'])
    assert.match(await page.textContent(`tr:has-text("${what}")`), /✓/, what)
  await page.shoot('verify')
}, ['404 GET /verifytestdb', '404 GET /verifytestdb_replicate'])
