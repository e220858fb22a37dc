// Runs the programs of docs/feeds.md unchanged.
import assert from 'node:assert/strict'
import { programs, run } from './support/program.mjs'
import { Server, testWithServer } from './support/server.mjs'

const program = (heading) => programs('docs/feeds.md', heading)[0]

for (const [heading, first, second] of [
  ['With fetch', 'created shop', 'created other'],
  ['With nano', 'lamp {', 'chair {'],
  ['With PouchDB', 'lamp {', 'chair {']
]) {
  testWithServer(`the program of "${heading}" sees writes from before and after a restart of the server`, {}, async (server) => {
    await server.client.ok('PUT', '/shop')
    await server.client.ok('PUT', '/shop/lamp', { price: 30 })
    const running = run(program(heading), server)
    try {
      await running.says(first)
      await server.kill()
      const again = await Server.start({ dataDir: server.dataDir, port: server.client.port })
      await again.client.ok('PUT', '/other')
      await again.client.ok('PUT', '/shop/chair', { price: 80 })
      await running.says(second)
      assert.equal(running.count(first), 1, 'no row is repeated')
      await again.stop()
    } finally {
      await running.end()
    }
  })
}

testWithServer('the program of "With nano" remembers its sequence', {}, async (server) => {
  await server.client.ok('PUT', '/shop')
  await server.client.ok('PUT', '/shop/lamp', { price: 30 })
  const running = run(program('With nano'), server)
  await running.says('lamp {')
  await server.client.ok('PUT', '/shop/stool', { price: 20 })
  await running.says('stool {')
  await running.end()
  await server.client.ok('PUT', '/shop/chair', { price: 80 })
  const next = running.again()
  await next.says('chair {')
  await next.end()
  assert.ok(!next.stdout.includes('lamp'), next.stdout)
})
