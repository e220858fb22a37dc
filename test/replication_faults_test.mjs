// Replications while their servers are killed and the network between them fails. With DIVAN_LONG=1 for long.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { startProxy } from './support/proxy.mjs'
import { leaves, remote } from './support/replication.mjs'
import { Server, temporaryDirectory } from './support/server.mjs'
import { pause, waitFor } from './support/wait.mjs'

const LONG = process.env.DIVAN_LONG === '1'

// A server whose process is killed and started again with the same address.
class Peer {
  static async start(name) {
    const peer = new Peer()
    peer.name = name
    peer.dataDir = temporaryDirectory()
    peer.server = await Server.start({ dataDir: peer.dataDir })
    return peer
  }
  get client() {
    return this.server.client
  }
  async restart() {
    const { port } = this.client
    await this.server.kill()
    this.server = await Server.start({ dataDir: this.dataDir, port })
  }
}

// Writes documents, some of them in conflict with those of the other side, until `isOver()`.
async function write(peer, isOver) {
  const data = Buffer.from('attached '.repeat(60_000)).toString('base64')
  for (let n = 0; !isOver() || n < 100; ++n) {
    const id = `d${randomInt(60)}`
    try {
      const { status, json: old } = await peer.client.get(`/db/${id}`)
      const doc = status === 200 ? old : {}
      Object.assign(doc, { by: peer.name, n })
      if (randomInt(20) === 0) doc._attachments = { ...doc._attachments, file: { content_type: 'text/plain', data } }
      await (randomInt(10) === 0 && status === 200 ? peer.client.delete(`/db/${id}?rev=${old._rev}`) : peer.client.put(`/db/${id}`, doc))
    } catch {
      await pause(50) // it is being killed
    }
    await pause(5)
  }
}

test('two servers that replicate both ways converge, however often they are killed and cut off', async () => {
  const peers = [await Peer.start('a'), await Peer.start('b')]
  const [a, b] = peers
  for (const { client } of peers) for (const db of ['db', '_replicator']) await client.ok('PUT', `/${db}`)
  // a pulls and pushes through a proxy.
  let chaos = 0
  const proxy = await startProxy(b.server, {
    onRequest: () => (chaos && randomInt(100) < 4 ? 'cut' : chaos && randomInt(10) === 0 ? pause(randomInt(30)) : undefined),
    onAnswer: () => (chaos && randomInt(100) < 4 ? 'cut' : undefined)
  })
  const other = remote(proxy, 'db')
  await a.client.ok('PUT', '/_replicator/push', { source: 'db', target: other, continuous: true, checkpoint_interval: 500 })
  await a.client.ok('PUT', '/_replicator/pull', { source: other, target: 'db', continuous: true, checkpoint_interval: 500 })
  let isOver = false
  const writers = peers.map((peer) => write(peer, () => isOver))
  chaos = 1
  const kills = LONG ? 100 : 6
  for (let n = 0; n < kills; ++n) {
    await pause(randomInt(800))
    await peers[randomInt(2)].restart()
  }
  isOver = true
  await Promise.all(writers)
  chaos = 0
  // Attempts that wait for their time begin now.
  await a.restart()
  const resubmit = async () => {
    const { jobs } = await a.client.ok('GET', '/_scheduler/jobs')
    for (const { id, state } of jobs) if (state === 'crashing') await a.client.ok('POST', `/_jobs/replication/${encodeURIComponent(id)}/_resubmit`)
  }
  await waitFor('both to have the same leaves', async () => {
    await resubmit()
    const [mine, others] = await Promise.all(peers.map(({ client }) => leaves(client, 'db')))
    assert.deepEqual(mine, others)
    return mine.length >= 50
  }, { limit: 300_000 })
  const { docs } = await a.client.ok('GET', '/_scheduler/docs')
  assert.deepEqual(docs.map(({ doc_id: id, state }) => [id, state]), [['pull', 'running'], ['push', 'running']])
  proxy.close()
  for (const { server } of peers) await server.stop()
})
