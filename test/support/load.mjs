// Load on several nodes, and the check of its results.
import assert from 'node:assert/strict'
import { pause, waitFor } from './wait.mjs'

const LOST = 1500 // milliseconds after which a request times out
/** Settings of a node whose builds take a while on any machine. */
export const ONE_PROCESS = { DIVAN_DIVAN_JS_PROCESSES: '1' }

/** Waits until an index of withIndex() has that many documents. */
export const fresh = (node, db, count) =>
  waitFor(`the index of ${db} to be fresh`, async () => {
    const { total_rows } = await node.client.ok('GET', `/${db}/_design/d/_view/v?update=false&reduce=false&limit=0`)
    return total_rows === count
  })

/** Creates a database; returns a function that creates an index there, whose map function takes `ms` for each document. */
export async function withIndex({ client }, db, ms = 0) {
  await client.ok('PUT', `/${db}`)
  const map = `function (doc) { var end = Date.now() + ${ms}; while (Date.now() < end) {} emit(null, doc.n) }`
  return () => client.ok('PUT', `/${db}/_design/d`, { views: { v: { map, reduce: '_sum' } } })
}

/** The number of the node that builds the index of a database, when it has come to its second batch. */
export async function builderOf(nodes, db) {
  const task = await waitFor('a build', async () => {
    const tasks = await nodes[0].client.ok('GET', '/_active_tasks')
    return tasks.find(({ database, changes_done }) => database === db && changes_done > 0)
  })
  const known = (await nodes[0].client.ok('GET', '/_membership')).nodes
  return nodes.findIndex(({ url }) => url === known[task.node].address)
}

/**
 * A continuous feed: {rows, opened, close}; `rows` grows. `again`: a feed that is cut off is opened again from the last sequence, and
 * `opened` counts this.
 */
export async function follow(node, target, { again = false } = {}) {
  const followed = { rows: [], opened: 0 }
  const { rows } = followed
  let closed = false
  let feed
  const open = async () => {
    const since = rows.at(-1)?.seq ?? 0
    feed = await node.client.open(`${target}?feed=continuous&heartbeat=1000&since=${since}`)
    ++followed.opened
    if (closed) feed.close()
  }
  await open()
  const reading = (async () => {
    for (;;) {
      if (feed.status === 200) for (let row; (row = await feed.row()); ) rows.push(row)
      else feed.close()
      if (closed || !again) return
      await pause(100)
      await open()
    }
  })()
  followed.close = async () => {
    closed = true
    feed.close()
    await reading
  }
  return followed
}

// Clients that add jobs, which write one document each, and workers that run them, through any node. After a lost response they
// repeat the request on another node.
class Load {
  added = new Set()
  posted = new Set() // of these, those for which a document without an ID is there; of others there may be one
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
  // Repeats the request until there is a response. `isFirst` is false if an earlier attempt without a
  // response may have succeeded.
  async #insist(method, target, body) {
    for (let isFirst = true; ; isFirst = false) {
      const answer = await this.#ask(method, target, body)
      if (answer) return { status: answer.status, text: answer.text, isFirst }
      if (this.#over) throw new Error('the test is over')
    }
  }

  async #add(who) {
    for (let n = 0; this.#adding; ++n) {
      while (this.added.size > this.answered.size + 30 && this.#adding) await pause(15)
      const id = `${who}-${n}`
      const job = { type: 'work', id, data: {} }
      const { status, text, isFirst } = await this.#insist('POST', '/_transact', { docs: { orders: [{ _id: id, n: 1 }] }, jobs: { add: [job] } })
      assert.ok(status === 200 || (status === 409 && !isFirst), text)
      this.added.add(id)
      const posted = await this.#ask('POST', '/posts', { order: id })
      if (posted) {
        assert.equal(posted.status, 201, posted.text)
        this.posted.add(id)
      }
      if (n % 10 !== 0) continue
      const made = await this.#insist('PUT', `/made-${id}`)
      assert.ok(made.status === 201 || (made.status === 412 && !made.isFirst), made.text)
      this.databases.add(`made-${id}`)
    }
  }

  async #work() {
    while (this.#working) {
      const accepted = await this.#ask('POST', '/_jobs/work/_accept', { timeout: 500 })
      for (const { id, lock } of accepted?.json.jobs ?? []) {
        const effect = { docs: { effects: [{ job: id }] }, jobs: { finish: [{ type: 'work', id, lock }] } }
        const { status, text } = await this.#insist('POST', '/_transact', effect)
        // It succeeded and the response was lost, or another worker has the job.
        if (status !== 200) assert.deepEqual([status, JSON.parse(text).error], [409, 'halt'])
        this.answered.add(id)
      }
    }
  }

  /** Waits until that many more jobs are done. */
  async goesOn(count = 20) {
    const before = this.answered.size
    await this.#until('jobs to be done', () => this.answered.size >= before + count)
  }

  async #until(what, condition) {
    await waitFor(what, () => this.#failure || condition())
    if (this.#failure) throw this.#failure
  }

  /** Adds no more jobs and waits until all are done. */
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

/**
 * Runs load on all nodes during `body(load)`, and then checks that no write is lost, every job had its effect once, indexes are
 * complete, and the feeds of `followed` nodes have no gap. `again`: the feeds may be cut off.
 */
export async function underLoad(nodes, body, { followed = [nodes[0]], again = false } = {}) {
  const [a] = nodes
  await (await withIndex(a, 'orders'))()
  await a.client.ok('PUT', '/effects')
  await a.client.ok('PUT', '/posts')
  await a.client.ok('PUT', '/_jobs/work', { timeout: 2000 })
  const changes = await Promise.all(followed.map((node) => follow(node, '/orders/_changes', { again })))
  const updates = await Promise.all(followed.map((node) => follow(node, '/_db_updates', { again })))
  const load = new Load(nodes)
  try {
    await body(load, changes)
    await load.end(a)
    await check(nodes, load, changes, updates)
  } finally {
    await load.stop()
    await Promise.all([...changes, ...updates].map((feed) => feed.close()))
  }
}

async function check(nodes, load, changes, updates) {
  const [a] = nodes
  const { added, posted, databases } = load
  const effects = (await a.client.ok('GET', '/effects/_all_docs?include_docs=true')).rows.map(({ doc }) => doc.job)
  assert.deepEqual(effects.sort(), [...added].sort())
  const orders = (await a.client.ok('GET', '/posts/_all_docs?include_docs=true')).rows.map(({ doc }) => doc.order)
  assert.equal(new Set(orders).size, orders.length)
  for (const id of posted) assert.ok(orders.includes(id))
  for (const node of nodes) {
    const { rows } = await node.client.ok('GET', '/orders/_all_docs')
    assert.deepEqual(rows.map(({ id }) => id).sort(), [...added, '_design/d'].sort())
    await fresh(node, 'orders', added.size) // without a query
  }
  const { results } = await a.client.ok('GET', '/orders/_changes')
  for (const { rows } of changes) {
    await waitFor('the feed of changes', () => rows.at(-1)?.seq === results.at(-1).seq)
    assert.deepEqual(rows.map(({ seq }) => seq), results.map(({ seq }) => seq))
  }
  for (const { rows } of updates) {
    // Of each database the listing has the last rows only.
    const listed = await waitFor('the feed of updates', async () => {
      const { results: last } = await a.client.ok('GET', '/_db_updates')
      return rows.at(-1)?.seq === last.at(-1).seq && last
    })
    const last = new Set(listed.map(({ seq }) => seq))
    assert.deepEqual(rows.filter(({ seq }) => last.has(seq)), listed)
    const created = rows.filter(({ type, db_name }) => type === 'created' && db_name.startsWith('made-'))
    assert.deepEqual(created.map(({ db_name }) => db_name).sort(), [...databases].sort())
  }
}
