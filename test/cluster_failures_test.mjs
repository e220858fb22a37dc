// Nodes that are killed, frozen and cut off, on a FoundationDB cluster that FDB_CLUSTER_FILE names; and
// clusters that become unavailable, which need DIVAN_FDB_PROGRAMS (a directory with fdbserver and fdbcli).
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { membersSeenBy, newStore, NO_ANSWER, noCluster, noNewer, onNodes, onOwnCluster, refused } from './support/cluster.mjs'
import { builderOf, follow, fresh, ONE_PROCESS, underLoad, withIndex } from './support/load.mjs'
import { Server, startDivan, temporaryDirectory } from './support/server.mjs'
import { waitFor, within } from './support/wait.mjs'

onNodes(3, 'nodes die and freeze: no write is lost, every job has its effect once, no feed has a gap', async (nodes, env) => {
  const [a] = nodes // this node does not fail
  await underLoad(nodes, async (load) => {
    for (let round = 0; round < 6; ++round) {
      const i = 1 + (round % 2)
      const victim = nodes[i]
      await load.goesOn()
      if (round % 3 === 0) {
        await victim.kill()
        await load.goesOn()
        nodes[i] = await Server.start({ env, dataDir: victim.dataDir })
        continue
      }
      await victim.freeze()
      await load.goesOn()
      if (round % 3 === 1) await waitFor('it to be evicted', async () => !(await membersSeenBy(a)).includes(victim.url))
      victim.thaw()
      await waitFor('it to be back', async () => (await membersSeenBy(a)).includes(victim.url))
    }
  })
})

onNodes(3, 'a build continues when its node is killed, and later changes are indexed', async (nodes, env) => {
  const ask = await withIndex(nodes[0], 'shop', 2)
  const docs = Array.from({ length: 8000 }, () => ({ n: 1 }))
  await nodes[0].client.ok('POST', '/shop/_bulk_docs', { docs })
  await ask()
  const i = await builderOf(nodes, 'shop')
  await nodes[i].kill()
  const [one, other] = nodes.filter((_, n) => n !== i)
  await one.client.ok('PUT', '/shop/late', { n: 1 })
  await fresh(other, 'shop', 8001)
  nodes[i] = await Server.start({ env })
}, { env: ONE_PROCESS })

onNodes(3, 'a node that was frozen until it was evicted writes nothing for the jobs and builds that it lost', async (nodes) => {
  const ask = await withIndex(nodes[0], 'shop', 2)
  await nodes[0].client.ok('PUT', '/effects')
  await nodes[0].client.ok('PUT', '/_jobs/work', { timeout: 1000 })
  const docs = Array.from({ length: 8000 }, (_, n) => ({ _id: `d${n}`, n: 1 }))
  const revs = await nodes[0].client.ok('POST', '/shop/_bulk_docs', { docs })
  await ask()
  const frozen = nodes[await builderOf(nodes, 'shop')]
  const [other] = nodes.filter((node) => node !== frozen)

  await other.client.ok('PUT', '/_jobs/work/one', {})
  const accept = async (node) => (await node.client.ok('POST', '/_jobs/work/_accept', { timeout: 60_000 })).jobs[0]
  const finish = (node, { lock }, by) =>
    node.client.post('/_transact', { docs: { effects: [{ by }] }, jobs: { finish: [{ type: 'work', id: 'one', lock }] } })
  const lost = await accept(frozen)
  await frozen.freeze()
  const late = finish(frozen, lost, 'lost')
  await waitFor('another attempt to finish the job', async () => (await finish(other, await accept(other), 'other')).status === 200)
  // The documents that the frozen node has mapped have changed meanwhile.
  await other.client.ok('POST', '/shop/_bulk_docs', { docs: revs.map(({ id, rev }) => ({ _id: id, _rev: rev, n: 0 })) })
  await waitFor('it to be evicted', async () => !(await membersSeenBy(other)).includes(frozen.url))
  const sum = async () => (await other.client.ok('GET', '/shop/_design/d/_view/v?update=false')).rows[0]?.value
  await fresh(other, 'shop', 8000)
  await waitFor('the index to have the new values', async () => (await sum()) === 0)

  frozen.thaw()
  const { status, json } = await late
  assert.deepEqual([status, json.error], [409, 'halt'])
  await waitFor('it to be a node again', async () => (await membersSeenBy(other)).includes(frozen.url))
  // Or the store aborts the build: for the client, its last transaction has timed out.
  await waitFor('it to leave the build', () => /The build of .* was (reclaimed|interrupted)/.test(frozen.log))
  assert.equal(await sum(), 0)
  assert.equal((await other.client.ok('GET', '/shop/_design/d/_view/v?update=false&reduce=false&limit=0')).total_rows, 8000)
  const { rows } = await other.client.ok('GET', '/effects/_all_docs?include_docs=true')
  assert.deepEqual(rows.map(({ doc }) => doc.by), ['other'])
}, { env: ONE_PROCESS })

onOwnCluster('a node that has lost its cluster reports it, recovers without a restart, and can be stopped', [], async (cluster, start) => {
  const node = await start()
  const { client } = node
  await (await withIndex(node, 'shop'))()
  await client.ok('PUT', '/shop/a', { n: 1 })
  await client.ok('PUT', '/_jobs/work')
  await fresh(node, 'shop', 1)
  const changes = await follow(node, '/shop/_changes', { again: true })

  cluster.signal('SIGSTOP')
  const requests = [
    ['GET', '/shop'], ['GET', '/shop/a'], ['PUT', '/shop/b', { n: 1 }], ['POST', '/shop/_bulk_docs', { docs: [{ n: 1 }] }],
    ['GET', '/shop/_design/d/_view/v'], ['GET', '/shop/_changes'], ['PUT', '/_jobs/work/a', {}], ['POST', '/_jobs/work/_accept', {}],
    ['GET', '/_all_dbs'], ['GET', '/_membership'], ['GET', '/_up']
  ]
  await Promise.all(requests.map(async ([method, target, body]) => {
    const answer = await client.request(method, target, { body })
    assert.equal(answer.status, 503, `${method} ${target}: ${answer.text}`)
    assert.match(answer.json.reason, NO_ANSWER, `${method} ${target}`)
  }))
  assert.equal((await client.get('/')).status, 200)

  cluster.signal('SIGCONT')
  await waitFor('the node to be up', async () => (await client.get('/_up')).status === 200)
  await client.ok('PUT', '/shop/c', { n: 1 })
  const { results } = await client.ok('GET', '/shop/_changes')
  await waitFor('the feed to continue', () => changes.rows.at(-1)?.id === 'c')
  assert.deepEqual(changes.rows.map(({ seq }) => seq), results.map(({ seq }) => seq))
  await fresh(node, 'shop', (await client.ok('GET', '/shop')).doc_count - 1)
  await waitFor('it to be a node', async () => (await membersSeenBy(node)).includes(node.url))
  await changes.close()

  cluster.signal('SIGSTOP')
  await node.stop()
  await refused(cluster.settings(), /cluster of \S+ has not answered within 0\.5 s: /)
})

// A cluster takes no transactions at all when a disk, or memory, is nearly full: this one has a small disk.
onOwnCluster('a full cluster', ['--storage-memory', '110MB'], async (cluster, start) => {
  const node = await start()
  await node.client.ok('PUT', '/shop')
  const text = 'x'.repeat(90_000)
  let written = 0
  const full = await waitFor('the cluster to be full', async () => {
    const answer = await node.client.post('/shop/_bulk_docs', { docs: Array.from({ length: 40 }, () => ({ text })) })
    if (answer.status !== 201) return answer
    written += answer.json.length
  })
  assert.equal(full.status, 503)
  assert.match(full.json.reason, NO_ANSWER)

  await cluster.kill()
  cluster.run(['--storage-memory', '1GiB'])
  await waitFor('the node to be up', async () => (await node.client.get('/_up')).status === 200)
  assert.ok((await node.client.ok('GET', '/shop')).doc_count >= written)
  await node.client.ok('PUT', '/shop/more', {})
  await node.stop()
})

// A cluster of one version, then of a newer one: the client needs the libraries of both.
onOwnCluster('an upgrade: no write is lost, every job has its effect once, no feed has a gap', [], async (cluster, start) => {
  const settings = cluster.settings()
  const nodes = [await start(settings), await start(settings)]
  await underLoad(nodes, async (load) => {
    await load.goesOn(100)
    await cluster.upgrade()
    await load.goesOn(200)
  }, { again: true })
  for (const node of nodes) assert.equal((await membersSeenBy(node)).length, 2)
  await Promise.all(nodes.map((node) => node.stop()))
}, { skip: noNewer })

test('cluster: an invalid cluster file is a one-line error when a server starts', { skip: noCluster }, async () => {
  const directory = temporaryDirectory()
  const withFile = (name, text) => {
    const file = path.join(directory, name)
    if (text !== undefined) writeFileSync(file, text)
    return { ...newStore(), DIVAN_DIVAN_STORE: `fdb:${file}` }
  }
  await refused(withFile('none'), /cluster file \S+none: No such file/)
  await refused(withFile('empty', ''), /cluster file \S+empty is empty/)
  await refused(withFile('damaged', 'no cluster file\n'), /cluster (file|of) \S+damaged: /)
  await refused(withFile('nobody', 'test:test@127.0.0.1:1\n'), /cluster of \S+nobody has not answered within 0\.5 s: is it running/)
})

test('cluster: a start that waits for its cluster ends with SIGTERM', { skip: noCluster }, async () => {
  const dataDir = temporaryDirectory()
  const file = path.join(dataDir, 'fdb.cluster')
  writeFileSync(file, 'test:test@127.0.0.1:1\n')
  const env = { ...newStore(), DIVAN_FDB_START_TIMEOUT: '3600000' }
  const node = startDivan(['serve', '--data-dir', dataDir, '--port', '0', '--store', `fdb:${file}`], { env })
  await waitFor('its data directory to be taken', () => existsSync(path.join(dataDir, 'node')))
  node.child.kill('SIGTERM')
  await within('its end', node.exit)
  assert.deepEqual([node.code, node.signal, node.stdout], [null, 'SIGTERM', ''])
})
