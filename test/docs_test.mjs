// The programs of docs/feeds.md, run as they stand there: what a reader copies works.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Server, temporaryDirectory, testWithServer } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const here = path.dirname(fileURLToPath(import.meta.url))
const text = readFileSync(path.join(here, '../docs/feeds.md'), 'utf8')

function program(heading) {
  const block = new RegExp(`## ${heading}\\n[^#]*?\`\`\`js\\n([^]*?)\`\`\``).exec(text)
  assert.ok(block, `docs/feeds.md has a program under ${heading}`)
  return block[1]
}

// Runs a program, with this server's address in it, in a directory of its own: {stdout, end()}.
function run(source, server) {
  const directory = temporaryDirectory()
  symlinkSync(path.join(here, 'node_modules'), path.join(directory, 'node_modules'))
  writeFileSync(path.join(directory, 'program.mjs'), source.replaceAll('127.0.0.1:5984', new URL(server.url).host))
  const start = () => {
    const child = spawn(process.execPath, ['program.mjs'], { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] })
    process.on('exit', () => child.kill('SIGKILL'))
    const running = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr']) child[name].setEncoding('utf8').on('data', (piece) => (running[name] += piece))
    running.end = () => new Promise((resolve) => child.on('exit', resolve).kill('SIGKILL'))
    running.says = (words) =>
      waitFor(`the program to say ${words}`, () => running.stdout.includes(words) || assert.ok(child.exitCode === null, running.stderr))
    return running
  }
  return Object.assign(start(), { again: start })
}

for (const [heading, first, second] of [
  ['With fetch', 'created shop', 'created other'],
  ['With nano', 'lamp {', 'chair {'],
  ['With PouchDB', 'lamp {', 'chair {']
]) {
  testWithServer(`the program of "${heading}" sees what is written before and after the server was away`, {}, async (server) => {
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
      assert.equal(running.stdout.split(first).length, 2, 'nothing comes twice')
      await again.stop()
    } finally {
      await running.end()
    }
  })
}

testWithServer('the program of "With nano" remembers its place', {}, async (server) => {
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
