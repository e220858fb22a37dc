// Restoring older states of a server's data, from a backup or a copy: sequences and epochs used since are not
// used again.
import assert from 'node:assert/strict'
import { cpSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { backUp, restoreInto, withRestored } from './support/backup.mjs'
import { onlyEmbedded, Server, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

// Values that a server has handed out and that an older state of its data lacks: the last sequences of both
// feeds, and the epoch of a job's attempt.
async function giveOut(client) {
  for (let n = 0; n < 100; ++n) await client.ok('PUT', `/shop/lost${n}`, { n })
  const [{ lock, epoch }] = (await client.ok('POST', '/_jobs/mail/_accept', {})).jobs
  const updates = await waitFor('the last update', async () => {
    const { results, last_seq } = await client.ok('GET', '/_db_updates')
    const { last_seq: changes } = await client.ok('GET', '/shop/_changes')
    return results.at(-1).db_name === 'shop' && parseInt(last_seq) > parseInt(changes) && last_seq
  })
  return { updates, changes: (await client.ok('GET', '/shop/_changes')).last_seq, lock, epoch }
}

async function fillShop(client) {
  await client.ok('PUT', '/shop')
  await client.ok('PUT', '/shop/lamp', { price: 30 })
  await client.ok('PUT', '/_jobs/mail')
  await client.ok('PUT', '/_jobs/mail/a', { data: 1 })
}

// New changes are seen since the lost sequences, and the next attempt's epoch is greater.
async function checkNothingRepeats(client, lost) {
  const live = await client.open(`/_db_updates?feed=continuous&since=${lost.updates}`)
  await client.ok('PUT', '/made')
  await client.ok('PUT', '/shop/new', {})
  const { results } = await client.ok('GET', `/shop/_changes?since=${lost.changes}`)
  assert.deepEqual(results.map(({ id }) => id), ['new'])
  const names = (rows) => rows.map(({ db_name, type }) => `${type} ${db_name}`)
  const seen = []
  while (!['created made', 'updated shop'].every((name) => names(seen).includes(name))) seen.push(await live.row())
  live.close()
  const updates = (await client.ok('GET', `/_db_updates?since=${lost.updates}`)).results
  for (const name of ['created made', 'updated shop']) assert.ok(names(updates).includes(name), name)
  // An external system that stores the greatest epoch accepts the new worker and rejects the stale one.
  const [{ lock, epoch }] = (await client.ok('POST', '/_jobs/mail/_accept', {})).jobs
  let greatest = lost.epoch
  const isFenced = (ours) => ours < greatest || ((greatest = ours), false)
  assert.equal(isFenced(epoch), false, `epoch ${epoch} after ${lost.epoch}`)
  assert.equal(isFenced(lost.epoch), true)
  assert.ok(Number.isSafeInteger(epoch))
  assert.equal((await client.request('POST', '/_jobs/mail/a/_finish', { body: { lock: lost.lock } })).status, 409)
  await client.ok('POST', '/_jobs/mail/a/_finish', { lock })
}

// Starts a server, runs `body` with its client and returns what that returns.
async function withServer(options, body) {
  const server = await Server.start(options)
  try {
    return await body(server.client, server)
  } finally {
    await server.stop()
  }
}

test('restored_state: sequences and epochs from after the backup are not used again', async () => {
  let file
  let lost = await withServer({}, async (client, server) => {
    await fillShop(client)
    file = await backUp(server)
    return await giveOut(client)
  })
  // Two restores of the same backup: the values of the first restored server are lost, too.
  for (let times = 0; times < 2; ++times) {
    await withRestored(file, async ({ client }) => {
      await checkNothingRepeats(client, lost)
      await client.ok('PUT', '/_jobs/mail/a', { data: 2 })
      lost = await giveOut(client)
    })
  }
  // One database, restored into another server.
  await withServer({}, async (client, server) => {
    await restoreInto(server, file)
    await client.ok('PUT', '/shop/new', {})
    const { results } = await client.ok('GET', `/shop/_changes?since=${lost.changes}`)
    assert.deepEqual(results.map(({ id }) => id), ['new'])
  })
})

onlyEmbedded(test)('restored_state: a restored copy of a data directory repeats no values', async () => {
  const directory = temporaryDirectory()
  const [dataDir, copy] = ['data', 'copy'].map((name) => path.join(directory, name))
  await withServer({ dataDir }, fillShop)
  cpSync(dataDir, copy, { recursive: true })
  const lost = await withServer({ dataDir }, giveOut)
  rmSync(dataDir, { recursive: true })
  renameSync(copy, dataDir)
  await withServer({ dataDir }, (client) => checkNothingRepeats(client, lost))
})
