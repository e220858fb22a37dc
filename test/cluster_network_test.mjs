// Network failures between nodes and a FoundationDB cluster of the test's own, whose programs are in the
// directory DIVAN_FDB_PROGRAMS.
import assert from 'node:assert/strict'
import { membersSeenBy, NO_ANSWER, onNetwork } from './support/cluster.mjs'
import { builderOf, follow, fresh, ONE_PROCESS, underLoad, withIndex } from './support/load.mjs'
import { pause, waitFor } from './support/wait.mjs'

const isMember = async (node, { url }) => (await membersSeenBy(node)).includes(url)

// A database whose index a node builds: {builder, complete}, where complete() waits until it is complete.
async function building(nodes, db) {
  const ask = await withIndex(nodes[0], db, 2)
  await nodes[0].client.ok('POST', `/${db}/_bulk_docs`, { docs: Array.from({ length: 4000 }, () => ({ n: 1 })) })
  await ask()
  const complete = async (node) => {
    await fresh(node, db, 4000)
    const { rows } = await node.client.ok('GET', `/${db}/_design/d/_view/v?update=false`)
    assert.equal(rows[0].value, 4000)
  }
  return { builder: await builderOf(nodes, db), complete }
}

// Repeats it with pauses of 100 to 500 milliseconds until `enough` resolves.
async function overAndOver(act, enough) {
  let isEnough = false
  const doing = (async () => {
    while (!isEnough) {
      await act()
      await pause(100 + Math.random() * 400)
    }
  })()
  try {
    await enough()
  } finally {
    isEnough = true
    await doing
  }
}

onNetwork(3, 'a node is cut off until others evict it, and returns', async (nodes, links) => {
  let complete, lost
  await underLoad(nodes, async (load, changes) => {
    await load.goesOn()
    await nodes[0].client.ok('PUT', '/_jobs/alone', { timeout: 1000 })
    await nodes[0].client.ok('PUT', '/_jobs/alone/job', {})
    const build = await building(nodes, 'shop')
    const i = build.builder
    complete = build.complete
    lost = nodes[i]
    const [one] = nodes.filter((node) => node !== lost)
    const accepted = (await lost.client.ok('POST', '/_jobs/alone/_accept', { timeout: 500 })).jobs[0]
    links[i].held = 'both'
    for (const target of ['/_up', '/shop', '/_membership', '/_jobs/work']) {
      const { status, text, json } = await lost.client.get(target)
      assert.equal(status, 503, text)
      assert.match(json.reason, NO_ANSWER)
    }
    assert.equal((await lost.client.get('/')).status, 200)
    await waitFor('it to leave the build', () => /The build of .* was interrupted/.test(lost.log))
    await load.goesOn()
    await waitFor('it to be evicted', async () => !(await isMember(one, lost)))
    await waitFor('its job to be free', async () => (await one.client.ok('POST', '/_jobs/alone/_accept', {})).jobs[0])
    await complete(one)
    await load.goesOn()

    links[i].held = undefined
    await waitFor('it to be up', async () => (await lost.client.get('/_up')).status === 200)
    await waitFor('it to be a node again', () => isMember(one, lost))
    const finish = ({ lock }) => ({ docs: { shop: [{ _id: lock }] }, jobs: { finish: [{ type: 'alone', id: 'job', lock }] } })
    const { status, json } = await lost.client.post('/_transact', finish(accepted))
    assert.deepEqual([status, json.error], [409, 'halt'])
    await load.goesOn()
    nodes.forEach((node, n) => node === lost || assert.equal(changes[n].opened, 1)) // their feeds were not interrupted
  }, { followed: nodes, again: true })
  await complete(lost)
}, { env: ONE_PROCESS })

onNetwork(1, 'a build continues after a short loss of the cluster', async (nodes, [link]) => {
  const [node] = nodes
  const { complete } = await building(nodes, 'shop')
  link.held = 'both'
  await waitFor('the build to be interrupted', () => /The build of .* was interrupted/.test(node.log))
  link.held = undefined
  await complete(node)
}, { env: ONE_PROCESS })

onNetwork(3, 'connections are cut repeatedly, responses are lost, and new connections are refused', async (nodes, links) => {
  await underLoad(nodes, async (load) => {
    const some = () => links.filter(() => Math.random() < 0.5)
    await overAndOver(() => some().forEach((link) => link.cut()), () => load.goesOn(100))
    // Requests are executed, but their responses are lost.
    const withAnswers = async () => {
      const those = some()
      for (const link of those) link.held = 'down'
      await pause(300)
      for (const link of those) link.cut()
      for (const link of those) link.held = undefined
    }
    await overAndOver(withAnswers, () => load.goesOn(100))
    // Messages arrive after their sender has timed out.
    const late = async () => {
      const those = some()
      for (const link of those) link.held = ['up', 'down', 'both'][Math.floor(Math.random() * 3)]
      await pause(500 + Math.random() * 1500)
      for (const link of those) link.held = undefined
    }
    await overAndOver(late, () => load.goesOn(100))
    for (const link of links) {
      link.refuses = true
      link.cut()
    }
    await waitFor('connections to be refused', () => links.every(({ refused }) => refused >= 5))
    for (const link of links) link.refuses = false
    await load.goesOn()
  }, { followed: nodes, again: true })
  for (const link of links) assert.ok(link.cuts > 0)
})

onNetwork(2, 'a slow network that splits messages', async (nodes, links) => {
  for (const link of links) Object.assign(link, { delay: 30, pieces: 200 })
  await underLoad(nodes, (load) => load.goesOn(50), { followed: nodes })
})

onNetwork(3, 'corrupted bytes are always detected', async (nodes, links) => {
  await underLoad(nodes, async (load) => {
    await overAndOver(() => links.forEach((link) => link.flip()), () => load.goesOn(100))
  }, { followed: nodes, again: true })
  for (const link of links) assert.ok(link.flipped > 0)
})

onNetwork(3, 'a node that is cut off can be stopped', async (nodes, links) => {
  const { builder: i, complete } = await building(nodes, 'shop')
  const [lost] = nodes.splice(i, 1)
  const [one] = nodes
  const feed = await follow(lost, '/shop/_changes')
  links[i].held = 'both'
  const client = lost.as(lost.credentials)
  const late = client.put('/shop/late', {})
  await client.get('/')
  await lost.stop()
  assert.equal((await late).status, 503)
  await feed.close()
  await complete(one)
  await waitFor('it to be evicted', async () => !(await isMember(one, lost)))
}, { env: ONE_PROCESS })
