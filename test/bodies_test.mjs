// Large bodies of requests: they are read when it is known that their user may send them, and those of one user do not take the
// memory of others.
import assert from 'node:assert/strict'
import { beginRequest } from './support/raw.mjs'
import { shareServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const it = shareServer({ env: { DIVAN_CHTTPD_AUTH_ITERATIONS: '10' } })

const LARGE = 60_000_000 // [chttpd] max_http_request_size is 64 MiB

it('requests that are refused do not wait for their bodies', async (server) => {
  const db = `/${await server.newDatabase()}`
  await server.client.ok('PUT', '/_users/org.couchdb.user:eve', { name: 'eve', type: 'user', roles: [], password: 'pw' })
  for (const [method, target, auth, status] of [
    ['POST', `${db}/_bulk_docs`, null, 401], ['POST', `${db}/_bulk_docs`, 'eve:wrong', 401], ['POST', `${db}/_bulk_docs`, 'eve:pw', 403],
    ['PUT', `${db}/doc`, null, 401], ['POST', '/absent/_bulk_docs', server.credentials, 404], ['POST', '/_jobs/mail', null, 401],
    ['PUT', '/_restore/x/0', 'eve:pw', 401], ['POST', '/_session', null, 413]
  ]) {
    const { request, response } = beginRequest(server, method, target, LARGE, auth)
    const answer = await response()
    assert.equal(answer.status, status, `${method} ${target}: ${answer.text}`)
    request.destroy()
  }
})

it('bodies of all sizes and kinds', async (server) => {
  const db = `/${await server.newDatabase()}`
  for (const size of [1, 65_000, 66_000, 1_200_000, 7_900_000]) {
    const text = 'x'.repeat(size)
    const body = JSON.stringify({ text })
    for (const length of [Buffer.byteLength(body), undefined]) {
      const id = `${size}-${length ? 'length' : 'chunks'}`
      const { request, response } = beginRequest(server, 'PUT', `${db}/${id}`, length)
      for (let at = 0; at < body.length; at += 50_000) request.write(body.slice(at, at + 50_000))
      request.end()
      const { status, text: answer } = await response()
      assert.equal(status, 201, answer)
      assert.equal((await server.client.ok('GET', `${db}/${id}`)).text, text)
    }
  }
  // A login without a length.
  const { request, response } = beginRequest(server, 'POST', '/_session', undefined, null)
  request.end(JSON.stringify({ name: 'admin', password: 'secret' }))
  assert.equal((await response()).status, 200)
})

it('one user does not take the memory of others', async (server) => {
  const db = `/${await server.newDatabase()}`
  await server.client.ok('PUT', `${db}/_security`, {})
  await server.client.ok('PUT', '/_users/org.couchdb.user:bob', { name: 'bob', type: 'user', roles: [], password: 'pw' })
  const text = 'x'.repeat(1_000_000)
  const bob = () => server.as('bob:pw').request('POST', db, { body: { text } })
  // Four bodies of 60 MB: there is no room for a fifth, but for small ones, and for others.
  const held = Array.from({ length: 4 }, () => beginRequest(server, 'POST', `${db}/_bulk_docs`, LARGE))
  for (const { request } of held) request.write('{"docs":[')
  const extra = []
  await waitFor('a request that is refused', async () => {
    const one = beginRequest(server, 'POST', `${db}/_bulk_docs`, LARGE)
    extra.push(one.request)
    one.request.write('{"docs":[')
    const first = await Promise.race([one.response(), new Promise((resolve) => setTimeout(resolve, 100))])
    return first && first.status === 503 && JSON.parse(first.text).reason === "The user's other requests hold too much memory."
  })
  assert.equal((await bob()).status, 201)
  assert.equal((await server.client.request('POST', db, { body: { n: 1 } })).status, 201)
  for (const request of [...held.map(({ request }) => request), ...extra]) request.destroy()
  await waitFor('memory that is free again', async () => (await server.client.request('POST', db, { body: { text } })).status === 201)
})
