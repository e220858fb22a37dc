// The number of round trips of requests to a FoundationDB cluster. They need a real one: FDB_CLUSTER_FILE
// names it.
import assert from 'node:assert/strict'
import { onNodes } from './support/cluster.mjs'

const REQUESTS = 40

onNodes(1, 'the reads of a request take one round trip', async ([node]) => {
  const waits = async () => {
    const metrics = (await node.client.get('/_node/_local/_prometheus')).text
    return Number(/^divan_store_round_trips_total(?:\{[^}]*\})? ([0-9.e+]+)$/m.exec(metrics)[1])
  }
  // The mean of many requests: the node's own heartbeats hardly count.
  const waitsOf = async (request) => {
    await request()
    const before = await waits()
    for (let n = 0; n < REQUESTS; ++n) await request()
    return (await waits() - before) / REQUESTS
  }
  const atMost = async (most, name, request) => {
    const found = await waitsOf(request)
    assert.ok(found <= most + 0.5, `${name} waits ${found} times, not ${most}`)
  }
  const { client } = node
  await client.ok('PUT', '/shop')
  const docs = Array.from({ length: 100 }, (_, n) => ({ _id: `d${n}`, n }))
  const written = await client.ok('POST', '/shop/_bulk_docs', { docs })
  const ids = docs.map(({ _id }) => _id)
  const revs = Object.fromEntries(written.map(({ id, rev }) => [id, [rev]]))

  await atMost(2, 'GET of a document', () => client.ok('GET', '/shop/d7'))
  await atMost(2, 'open_revs', () => client.ok('GET', '/shop/d7?open_revs=all'))
  await atMost(3, '_bulk_get', () => client.ok('POST', '/shop/_bulk_get', { docs: ids.map((id) => ({ id })) }))
  const losing = { docs: ids.map((_id) => ({ _id, _rev: '1-0', _revisions: { start: 1, ids: ['0'] } })), new_edits: false }
  await client.ok('POST', '/shop/_bulk_docs', losing)
  await atMost(3, '_bulk_get of losing revisions', () => client.ok('POST', '/shop/_bulk_get', { docs: ids.map((id) => ({ id, rev: '1-0' })) }))
  await atMost(2, '_revs_diff', () => client.ok('POST', '/shop/_revs_diff', revs))
  await atMost(2, '_missing_revs', () => client.ok('POST', '/shop/_missing_revs', revs))
  await atMost(5, '_all_docs of keys', () => client.ok('POST', '/shop/_all_docs', { keys: ids }))
  await atMost(6, '_all_docs with documents', () => client.ok('GET', '/shop/_all_docs?include_docs=true'))
  await atMost(3, '_changes', () => client.ok('GET', '/shop/_changes'))
  const { last_seq: last } = await client.ok('GET', '/shop/_changes')
  await atMost(3, '_changes with nothing new', () => client.ok('GET', `/shop/_changes?since=${last}`))
  await atMost(4, '_changes of all leaves', () => client.ok('GET', '/shop/_changes?style=all_docs'))
  await client.ok('PUT', '/shop/_design/d', { views: { v: { map: 'function (doc) { emit(doc.n, 1) }', reduce: '_sum' } } })
  await client.ok('POST', '/shop/_design/d/_view/v', {})
  await atMost(5, 'GET of a view', () => client.ok('GET', '/shop/_design/d/_view/v?key=7'))
  await atMost(12, 'GET of a view with documents', () => client.ok('GET', '/shop/_design/d/_view/v?reduce=false&include_docs=true'))
}, { args: ['--background=views'] })
