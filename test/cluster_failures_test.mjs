// Nodes that are killed, frozen and cut off, on a FoundationDB cluster that FDB_CLUSTER_FILE names; and clusters that go away,
// which DIVAN_FDB_PROGRAMS (a directory with fdbserver and fdbcli) is needed for.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { membersSeenBy, newStore, noCluster, noNewer, onNodes, onOwnCluster } from './support/cluster.mjs'
import { runDivan, Server, temporaryDirectory } from './support/server.mjs'
import { pause, waitFor } from './support/wait.mjs'

const LOST = 1500 // milliseconds after which whoever asks gives up an answer
const ONE_PROCESS = { DIVAN_DIVAN_JS_PROCESSES: '1' } // so that a build takes a while on any machine

const fresh = (node, db, count) =>
  waitFor(`the index of ${db} to be fresh`, async () => {
    const { total_rows } = await node.client.ok('GET', `/${db}/_design/d/_view/v?update=false&reduce=false&limit=0`)
    return total_rows === count
  })

// A database with an index whose map function takes `ms` for each document.
async function withIndex({ client }, db, ms = 0) {
  await client.ok('PUT', `/${db}`)
  const map = `function (doc) { var end = Date.now() + ${ms}; while (Date.now() < end) {} emit(null, doc.n) }`
  return () => client.ok('PUT', `/${db}/_design/d`, { views: { v: { map, reduce: '_sum' } } })
}

// The node that builds the index of a database, when it has come to its second batch.
async function builderOf(nodes, db) {
  const task = await waitFor('a build', async () => {
    const tasks = await nodes[0].client.ok('GET', '/_active_tasks')
    return tasks.find(({ database, changes_done }) => database === db && changes_done > 0)
  })
  const known = (await nodes[0].client.ok('GET', '/_membership')).nodes
  return nodes.findIndex(({ url }) => url === known[task.node].address)
}

// The rows of a continuous feed, as they come. `again`: one that is cut off is opened again where it was.
async function follow(node, target, { again = false } = {}) {
  const rows = []
  let closed = false
  let feed
  const open = async () => {
    const since = rows.at(-1)?.seq ?? 0
    feed = await node.client.open(`${target}?feed=continuous&heartbeat=1000&since=${since}`)
    if (closed) feed.close()
  }
  await open()
  const reading = (async () => {
    for (;;) {
      for (let row; (row = await feed.row()); ) rows.push(row)
      if (closed || !again) return
      await open()
    }
  })()
  const close = async () => {
    closed = true
    feed.close()
    await reading
  }
  return { rows, close }
}

// Work for jobs that write one document each, and workers that do it, through any node. Whose answer is lost asks another.
class Load {
  added = new Set()
  databases = new Set()
  answered = new Set() // jobs that are done, or that their worker has lost
  #adding = true
  #working = true
  #over = false
  #failure
  #adders
  #workers

  constructor(nodes) {
    this.nodes = nodes
    const start = (task) => task.catch((error) => (this.#failure ??= error))
    this.#adders = [0, 1, 2].map((who) => start(this.#add(who)))
    this.#workers = [0, 1, 2, 3, 4, 5].map(() => start(this.#work()))
  }

  async #ask(method, target, body) {
    const node = this.nodes[Math.floor(Math.random() * this.nodes.length)]
    const asked = node.client.request(method, target, { body }).catch(() => undefined)
    const answer = await Promise.race([asked, pause(LOST)])
    if (answer && answer.status < 500) return answer
    await pause(20)
  }
  // Asks until there is an answer.
  async #insist(method, target, body) {
    for (;;) {
      const answer = await this.#ask(method, target, body)
      if (answer) return answer
      if (this.#over) throw new Error('the test is over')
    }
  }

  async #add(who) {
    for (let n = 0; this.#adding; ++n) {
      while (this.added.size > this.answered.size + 30 && this.#adding) await pause(15)
      const id = `${who}-${n}`
      const job = { type: 'work', id, data: {} }
      const { status, text } = await this.#insist('POST', '/_transact', { docs: { orders: [{ _id: id, n: 1 }] }, jobs: { add: [job] } })
      assert.ok(status === 200 || status === 409, text) // 409: it was done, and the answer lost
      this.added.add(id)
      if (n % 10 !== 0) continue
      const { status: made } = await this.#insist('PUT', `/made-${id}`)
      assert.ok(made === 201 || made === 412)
      this.databases.add(`made-${id}`)
    }
  }

  async #work() {
    while (this.#working) {
      const accepted = await this.#ask('POST', '/_jobs/work/_accept', { timeout: 500 })
      for (const { id, lock } of accepted?.json.jobs ?? []) {
        const effect = { docs: { effects: [{ job: id }] }, jobs: { finish: [{ type: 'work', id, lock }] } }
        const { status, json } = await this.#insist('POST', '/_transact', effect)
        if (status !== 200) assert.deepEqual([status, json.error], [409, 'halt']) // done, and the answer lost; or somebody else has it
        this.answered.add(id)
      }
    }
  }

  /** Waits until so many more were done. */
  async goesOn(count = 20) {
    const before = this.answered.size
    await this.#until('jobs to be done', () => this.answered.size >= before + count)
  }

  async #until(what, condition) {
    await waitFor(what, () => this.#failure || condition())
    if (this.#failure) throw this.#failure
  }

  /** Adds no more and waits until all is done. */
  async end({ client }) {
    this.#adding = false
    await Promise.all(this.#adders)
    await this.#until('all jobs to be done', async () => (await client.ok('GET', '/_jobs/work')).counts.finished === this.added.size)
    await this.stop()
  }

  async stop() {
    this.#adding = this.#working = false
    this.#over = true
    await Promise.all([...this.#adders, ...this.#workers])
  }
}

// Every document that was added, every effect once, and every change in a feed.
async function isThere({ added }, nodes, changes) {
  const [{ client }] = nodes
  const effects = (await client.ok('GET', '/effects/_all_docs?include_docs=true')).rows.map(({ doc }) => doc.job)
  assert.deepEqual(effects.sort(), [...added].sort())
  for (const node of nodes) {
    const { rows } = await node.client.ok('GET', '/orders/_all_docs')
    assert.deepEqual(rows.map(({ id }) => id).sort(), [...added, '_design/d'].sort())
    await fresh(node, 'orders', added.size) // without being asked
  }
  const { results } = await client.ok('GET', '/orders/_changes')
  await waitFor('the feed of changes', () => changes.rows.at(-1)?.seq === results.at(-1).seq)
  assert.deepEqual(changes.rows.map(({ seq }) => seq), results.map(({ seq }) => seq))
}

onNodes(3, 'nodes die and freeze: every write is there, every job has its effect once, no feed has a gap', async (nodes, env) => {
  const [a] = nodes // nothing happens to this one
  await (await withIndex(a, 'orders'))()
  await a.client.ok('PUT', '/effects')
  await a.client.ok('PUT', '/_jobs/work', { timeout: 2000 })
  const changes = await follow(a, '/orders/_changes')
  const updates = await follow(a, '/_db_updates')
  const load = new Load(nodes)
  try {
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
      if (round % 3 === 1) await waitFor('it to be given up', async () => !(await membersSeenBy(a)).includes(victim.url))
      victim.thaw()
      await waitFor('it to be back', async () => (await membersSeenBy(a)).includes(victim.url))
    }
    await load.end(a)
  } finally {
    await load.stop()
  }

  await isThere(load, nodes, changes)
  // Of each database the listing has the last rows only.
  const listed = await waitFor('the feed of updates', async () => {
    const { results: rows } = await a.client.ok('GET', '/_db_updates')
    return updates.rows.at(-1)?.seq === rows.at(-1).seq && rows
  })
  const last = new Set(listed.map(({ seq }) => seq))
  assert.deepEqual(updates.rows.filter(({ seq }) => last.has(seq)), listed)
  const created = updates.rows.filter(({ type, db_name }) => type === 'created' && db_name.startsWith('made-'))
  assert.deepEqual(created.map(({ db_name }) => db_name).sort(), [...load.databases].sort())
  await Promise.all([changes.close(), updates.close()])
})

onNodes(3, 'a build goes on when its node is killed, and so does the look-out for changes', async (nodes, env) => {
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
}, ONE_PROCESS)

onNodes(3, 'a node that was frozen until it was given up writes nothing for what it lost', async (nodes) => {
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
  // What the frozen node has mapped is of documents that are others now.
  await other.client.ok('POST', '/shop/_bulk_docs', { docs: revs.map(({ id, rev }) => ({ _id: id, _rev: rev, n: 0 })) })
  await waitFor('it to be given up', async () => !(await membersSeenBy(other)).includes(frozen.url))
  const sum = async () => (await other.client.ok('GET', '/shop/_design/d/_view/v?update=false')).rows[0]?.value
  await fresh(other, 'shop', 8000)
  await waitFor('the index to have the new values', async () => (await sum()) === 0)

  frozen.thaw()
  const { status, json } = await late
  assert.deepEqual([status, json.error], [409, 'halt'])
  await waitFor('it to be a node again', async () => (await membersSeenBy(other)).includes(frozen.url))
  await waitFor('it to leave the build', () => /The build of .* was left to others/.test(frozen.log))
  assert.equal(await sum(), 0)
  assert.equal((await other.client.ok('GET', '/shop/_design/d/_view/v?update=false&reduce=false&limit=0')).total_rows, 8000)
  const { rows } = await other.client.ok('GET', '/effects/_all_docs?include_docs=true')
  assert.deepEqual(rows.map(({ doc }) => doc.by), ['other'])
}, ONE_PROCESS)

// A server that does not start, and says why in a line.
async function refused(settings, words) {
  const env = { ...settings, DIVAN_FDB_START_TIMEOUT: '500' }
  const { code, stdout, stderr } = await runDivan(['serve', '--port', '0', '--data-dir', temporaryDirectory()], { env })
  assert.deepEqual([code, stdout], [1, ''], stderr)
  assert.match(stderr, words)
  assert.equal(stderr.split('\n').length, 2, stderr)
}

const NO_ANSWER = /^The transaction could not be done in time; try again\. The FoundationDB cluster has not answered for 1 s\.$/

onOwnCluster('a node that has lost its cluster says so, goes on by itself, and can be stopped', [], async (cluster, start) => {
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
  await waitFor('the feed to go on', () => changes.rows.at(-1)?.id === 'c')
  assert.deepEqual(changes.rows.map(({ seq }) => seq), results.map(({ seq }) => seq))
  await fresh(node, 'shop', (await client.ok('GET', '/shop')).doc_count - 1)
  await waitFor('it to be a node', async () => (await membersSeenBy(node)).includes(node.url))
  await changes.close()

  cluster.signal('SIGSTOP')
  await node.stop()
  await refused(cluster.settings(), /cluster of \S+ has not answered within 0\.5 s: /)
})

onOwnCluster('a build that its cluster did not answer goes on, though its node lived all the while', [], async (cluster, start) => {
  const node = await start({ ...cluster.settings(), ...ONE_PROCESS })
  const ask = await withIndex(node, 'shop', 2)
  await node.client.ok('POST', '/shop/_bulk_docs', { docs: Array.from({ length: 8000 }, () => ({ n: 1 })) })
  await ask()
  await builderOf([node], 'shop')
  cluster.signal('SIGSTOP')
  await waitFor('it to leave the build', () => /The build of .* was left to others/.test(node.log))
  cluster.signal('SIGCONT')
  await fresh(node, 'shop', 8000)
  await node.stop()
})

// A cluster takes no transactions at all when a disk, or memory, is nearly full: that of this one has room for little.
onOwnCluster('a cluster that is full', ['--storage-memory', '110MB'], async (cluster, start) => {
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

// Of one version, then of a newer one: the client is to have the libraries of both.
onOwnCluster('an upgrade: every write is there, every job has its effect once, no feed has a gap', [], async (cluster, start) => {
  const settings = cluster.settings()
  const nodes = [await start(settings), await start(settings)]
  const [a] = nodes
  await (await withIndex(a, 'orders'))()
  await a.client.ok('PUT', '/effects')
  await a.client.ok('PUT', '/_jobs/work', { timeout: 5000 })
  const changes = await follow(a, '/orders/_changes', { again: true })
  const load = new Load(nodes)
  try {
    await load.goesOn(100)
    await cluster.upgrade()
    await load.goesOn(200)
    await load.end(a)
    await isThere(load, nodes, changes)
  } finally {
    await Promise.all([load.stop(), changes.close()])
  }
  for (const node of nodes) assert.equal((await membersSeenBy(node)).length, 2)
  await Promise.all(nodes.map((node) => node.stop()))
}, noNewer)

test('cluster: what is wrong with a cluster file when a server starts is said in a line', { skip: noCluster }, async () => {
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
