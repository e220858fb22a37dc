// Several servers on one FoundationDB cluster. They need a real one: FDB_CLUSTER_FILE names it.
import assert from 'node:assert/strict'
import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { membersSeenBy, newStore, noCluster, onNodes, refused } from './support/cluster.mjs'
import { runDivan, Server, startDivan, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

onNodes(3, 'the writes of one node are visible on the others at once', async ([a, b, c]) => {
  await a.client.ok('PUT', '/shop')
  for (let i = 0; i < 20; ++i) {
    const nodes = [a, b, c]
    const writer = nodes[i % 3]
    const { rev } = await writer.client.ok('PUT', `/shop/doc${i}`, { i })
    for (const reader of nodes) assert.equal((await reader.client.ok('GET', `/shop/doc${i}`))._rev, rev)
  }
  for (const node of [b, c]) assert.equal((await node.client.ok('GET', '/shop')).doc_count, 20)
  // At most one of two nodes succeeds.
  const answers = await Promise.all([a, b, c].map((node) => node.client.put('/shop/one', {})))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409])
})

onNodes(3, 'a feed on one node has the changes of all, in order and without a gap', async ([a, b, c]) => {
  await a.client.ok('PUT', '/shop')
  const feed = await c.client.open('/shop/_changes?feed=continuous&heartbeat=1000')
  const seen = []
  const reading = (async () => {
    while (seen.length < 60) {
      const line = await feed.line()
      if (line) seen.push(JSON.parse(line))
    }
  })()
  const writing = [a, b].map(async (node, n) => {
    for (let i = 0; i < 30; ++i) await node.client.ok('PUT', `/shop/${n}-${i}`, {})
  })
  await Promise.all([...writing, reading])
  feed.close()
  assert.equal(new Set(seen.map(({ id }) => id)).size, 60)
  const { results } = await b.client.ok('GET', '/shop/_changes')
  assert.deepEqual(seen.map(({ seq }) => seq), results.map(({ seq }) => seq))
})

onNodes(3, 'a job that is accepted on one node is finished on another', async ([a, b, c]) => {
  await a.client.ok('PUT', '/_jobs/mail', { timeout: 60_000 })
  const waiting = b.client.ok('POST', '/_jobs/mail/_accept', { timeout: 60_000 })
  await a.client.ok('PUT', '/_jobs/mail/one', { data: { to: 'x' } })
  const [job] = (await waiting).jobs
  assert.equal(job.id, 'one')
  await c.client.ok('POST', '/_jobs/mail/one/_finish', { lock: job.lock })
  assert.equal((await a.client.ok('GET', '/_jobs/mail/one')).state, 'finished')
})

onNodes(3, 'an index is built once, whichever nodes are queried', async (nodes) => {
  const [a] = nodes
  await a.client.ok('PUT', '/shop')
  const write = (from, count) => {
    const docs = Array.from({ length: count }, (_, n) => ({ _id: `d${from + n}`, n }))
    return a.client.ok('POST', '/shop/_bulk_docs', { docs })
  }
  await write(0, 5000)
  const views = { by_n: { map: 'function (doc) { emit(doc.n, 1) }', reduce: '_sum' } }
  await a.client.ok('PUT', '/shop/_design/d', { views })
  const ask = async (query = '') =>
    (await Promise.all(nodes.map((node) => node.client.ok('GET', `/shop/_design/d/_view/by_n${query}`)))).map(({ rows }) => rows[0]?.value)
  assert.deepEqual(await ask(), [5000, 5000, 5000])
  await write(5000, 100)
  assert.deepEqual(await ask(), [5100, 5100, 5100])
  await write(5100, 100) // without a query
  await waitFor('the index to be fresh', async () => (await ask('?update=false')).every((count) => count === 5200))
  let mapped = 0
  for (const node of nodes) mapped += await node.metric('divan_js_documents_total')
  assert.equal(mapped, 5200)
})

onNodes(3, 'every node sees all nodes: a stopped one disappears at once, a killed one after its timeout', async (nodes, env) => {
  const [a, b] = nodes
  for (const node of nodes) {
    const { all_nodes, cluster_nodes, nodes: known } = await node.client.ok('GET', '/_membership')
    assert.deepEqual(cluster_nodes, all_nodes)
    assert.deepEqual(Object.keys(known), all_nodes)
    assert.deepEqual(Object.values(known).map(({ address }) => address).sort(), nodes.map(({ url }) => url).sort())
    for (const { version, started, background } of Object.values(known)) {
      assert.deepEqual([typeof version, typeof started, background], ['string', 'number', ['compaction', 'deliver', 'jobs', 'ken', 'purge', 'replicator', 'triggers', 'views']])
    }
  }
  await nodes.pop().stop()
  for (const node of nodes) assert.deepEqual(await membersSeenBy(node), [a.url, b.url].sort())
  const nameOf = async (node) => (await node.client.ok('GET', '/_node/_local')).name
  const name = await nameOf(b)
  await b.kill()
  await waitFor('the killed node to be evicted', async () => (await membersSeenBy(a)).length === 1)
  assert.deepEqual(await membersSeenBy(a), [a.url])
  nodes[1] = await Server.start({ env, dataDir: b.dataDir })
  assert.equal(await nameOf(nodes[1]), name)
  assert.deepEqual(await membersSeenBy(a), [a.url, nodes[1].url].sort())
})

onNodes(3, 'the death of a node loses nothing that was acknowledged', async (nodes, env) => {
  await nodes[0].client.ok('PUT', '/shop')
  const acknowledged = new Set()
  let going = true
  const write = async (name, node) => {
    for (let i = 0; going; ++i) {
      try {
        if ((await node().client.put(`/shop/${name}-${i}`, { i })).status === 201) acknowledged.add(`${name}-${i}`)
      } catch { /* its node has died */ }
    }
  }
  const writers = nodes.map((_, n) => write(`w${n}`, () => nodes[n]))
  for (let round = 0; round < 3; ++round) {
    const before = acknowledged.size
    await waitFor('documents to be written', () => acknowledged.size > before + 30)
    const victim = nodes[round]
    await victim.kill()
    nodes[round] = await Server.start({ env })
  }
  going = false
  await Promise.all(writers)
  for (const node of nodes) {
    const { rows } = await node.client.ok('GET', '/shop/_all_docs')
    const there = new Set(rows.map(({ id }) => id))
    assert.deepEqual([...acknowledged].filter((id) => !there.has(id)), [])
    assert.equal((await node.client.ok('GET', '/shop')).doc_count, rows.length)
  }
})

const { DIVAN_FDB_LIBRARY: library } = process.env
const noLibrary = noCluster || (library ? false : 'DIVAN_FDB_LIBRARY does not name the library to make a copy of')

test('cluster: the client may use libraries from a directory, with their own callback threads', { skip: noLibrary }, async () => {
  const directory = temporaryDirectory()
  copyFileSync(library, path.join(directory, 'libfdb_c_copy.so'))
  const option = (name, value = '') => ({ [`FDB_NETWORK_OPTION_${name}`]: value })
  const others = { ...option('EXTERNAL_CLIENT_DIRECTORY', directory), ...option('DISABLE_LOCAL_CLIENT') }
  const threads = { ...others, ...option('CLIENT_THREADS_PER_VERSION', '2'), ...option('CALLBACKS_ON_EXTERNAL_THREADS') }
  const env = newStore()
  const nodes = [await Server.start({ env: { ...env, ...others } }), await Server.start({ env: { ...env, ...threads } })]
  const [a, b] = nodes
  assert.match(readFileSync(`/proc/${a.pid}/maps`, 'utf8'), /libfdb_c_copy\.so/)
  await a.client.ok('PUT', '/shop')
  const feed = await b.client.open('/shop/_changes?feed=continuous&heartbeat=1000')
  const { rev } = await a.client.ok('PUT', '/shop/tea', {})
  assert.equal((await feed.row()).id, 'tea')
  feed.close()
  assert.equal((await b.client.ok('GET', '/shop/tea'))._rev, rev)
  for (const node of nodes) await node.stop()

  const none = { ...others, ...option('EXTERNAL_CLIENT_DIRECTORY', temporaryDirectory()) }
  await refused({ ...env, ...none }, /client cannot be started: .* environment variables right, FDB_NETWORK_OPTION_/)
})

test('cluster: a worker builds for nodes that only serve, and releases its build when it stops', { skip: noCluster }, async () => {
  const env = newStore()
  const server = await Server.start({ args: ['--no-background'], env })
  let working
  const work = async () => {
    working = startDivan(['worker', '--data-dir', temporaryDirectory(), '--background', 'views'], { env })
    await waitFor('the worker to begin', () => working.stdout)
  }
  const stopped = async () => {
    working.child.kill('SIGTERM')
    await working.exit
    assert.equal(working.code, 0, working.stderr)
  }
  await work()
  assert.match(working.stdout, /^Divan \S+ runs background work \(data in fdb:/)
  const others = async () =>
    Object.values((await server.client.ok('GET', '/_membership')).nodes).filter(({ serves }) => !serves)
  const [{ address, background }] = await others()
  assert.deepEqual([address, background], [null, ['views']])
  const status = await runDivan(['status', '--url', server.url, '--user', server.credentials])
  assert.match(status.stdout, /  serves nothing  .*  views\b/)

  await server.client.ok('PUT', '/shop')
  await server.client.ok('POST', '/shop/_bulk_docs', { docs: Array.from({ length: 2000 }, (_, n) => ({ n })) })
  const map = 'function (doc) { for (var i = 0; i < 300000; ++i); emit(doc.n, 1) }'
  await server.client.ok('PUT', '/shop/_design/d', { views: { by_n: { map, reduce: '_sum' } } })
  const answer = server.client.ok('GET', '/shop/_design/d/_view/by_n')
  const build = async () => (await server.client.ok('GET', '/_jobs/views/_list')).jobs[0]
  await waitFor('the build to run', async () => (await build()).state === 'running')
  await stopped()
  assert.equal((await build()).state, 'pending')
  assert.deepEqual(await others(), [])

  await work()
  assert.equal((await answer).rows[0].value, 2000)
  await stopped()
  await server.stop()
})

test('cluster: a worker that listens serves monitoring requests only', { skip: noCluster }, async () => {
  const worker = await Server.start({ command: 'worker', env: newStore() })
  assert.match((await worker.client.get('/_node/_local/_prometheus')).text, /^divan_jobs|^divan_js_processes /m)
  for (const path of ['/', '/_membership', '/shop']) assert.equal((await worker.client.get(path)).status, 503)
  assert.equal((await worker.as(null).get('/_node/_local/_config')).status, 401)
  await worker.stop()
})

test('cluster: a store moves to a cluster and back in a backup', { skip: noCluster }, async () => {
  const directory = temporaryDirectory()
  const file = (name) => path.join(directory, name)
  const embedded = await Server.start({ env: { DIVAN_DIVAN_STORE: 'embedded' } })
  await embedded.client.ok('PUT', '/shop')
  for (let i = 0; i < 50; ++i) await embedded.client.ok('PUT', `/shop/${i}`, { i })
  const before = await embedded.client.ok('GET', '/shop/_changes?include_docs=true')
  const ran = async (args, env = {}) => {
    const { code, stderr } = await runDivan([...args, '--quiet'], { env })
    assert.equal(code, 0, stderr)
  }
  await ran(['backup', file('one'), '--url', embedded.url, '--user', 'admin:secret'])
  await embedded.stop()

  const { DIVAN_DIVAN_STORE: store, ...env } = newStore()
  await ran(['restore', file('one'), '--store', store], env)
  assert.match((await runDivan(['restore', file('one'), '--store', store], { env })).stderr, /restored into an empty one/)
  await ran(['verify', '--store', store], env)
  const node = await Server.start({ args: ['--store', store], env })
  assert.deepEqual(await node.client.ok('GET', '/shop/_changes?include_docs=true'), before)
  await node.client.ok('PUT', '/shop/more', {})
  await node.stop()

  await ran(['backup', file('two'), '--store', store], env)
  assert.ok(existsSync(file('two')))
  await ran(['restore', file('two'), '--data-dir', file('data')])
  const again = await Server.start({ dataDir: file('data'), env: { DIVAN_DIVAN_STORE: 'embedded' } })
  assert.equal((await again.client.ok('GET', '/shop')).doc_count, 51)
  await again.client.ok('PUT', '/shop/after', {})
  const { results } = await again.client.ok('GET', '/shop/_changes')
  assert.equal(results.at(-1).id, 'after')
  await again.stop()
})
