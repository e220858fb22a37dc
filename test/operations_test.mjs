// What deploy/ has for operators: metrics of alerts and charts, the backup of the timer, a recovery, and manifests.
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { binary, runDivan, Server, temporaryDirectory, testWithServer } from './support/server.mjs'

const deploy = path.join(path.dirname(fileURLToPath(import.meta.url)), '../deploy')
const text = (file) => readFileSync(path.join(deploy, file), 'utf8')
const missing = (program) => (spawnSync(program, ['--version']).error ? `no ${program} is installed` : false)

testWithServer('every metric of the alerts and of the dashboard exists', {}, async ({ client }) => {
  // A type of jobs with an attempt: its series exist from then on.
  await client.ok('PUT', '/_jobs/mail', {})
  await client.ok('PUT', '/_jobs/mail/a', {})
  const { jobs } = await client.ok('POST', '/_jobs/mail/_accept', {})
  await client.ok('POST', '/_jobs/mail/a/_finish', { lock: jobs[0].lock })
  const served = (await client.get('/_node/_local/_prometheus')).text
  const names = new Set([...served.matchAll(/^(divan_\w+)[ {]/gm)].map(([, name]) => name))
  for (const file of ['prometheus/rules.yml', 'grafana/divan.json']) {
    const used = new Set(text(file).match(/\bdivan_\w+/g))
    assert.ok(used.size > 5)
    assert.deepEqual([...used].filter((name) => !names.has(name)), [], file)
  }
  const states = [...text('prometheus/rules.yml').matchAll(/(state|outcome)="(\w+)"/g)].map(([whole]) => whole)
  for (const label of states) assert.ok(served.includes(label), label)
})

test('operations: promtool accepts the alerts', { skip: missing('promtool') }, () => {
  execFileSync('promtool', ['check', 'rules', path.join(deploy, 'prometheus/rules.yml')])
})

test('operations: after kill -9 and the loss of the data directory, a restore has documents and jobs', async () => {
  const server = await Server.start()
  const { client } = server
  await client.ok('PUT', '/shop')
  await client.ok('POST', '/shop/_bulk_docs', { docs: Array.from({ length: 500 }, (_, n) => ({ _id: `d${n}`, n })) })
  await client.ok('PUT', '/_jobs/mail', { max_attempts: 3 })
  await client.ok('PUT', '/_jobs/mail/waiting', { data: 1 })
  await client.ok('PUT', '/_jobs/mail/running', { data: 2, priority: -1 })
  await client.ok('POST', '/_jobs/mail/_accept', { limit: 1 })

  // The command of the timer's service.
  const [, command] = /^ExecStart=\/bin\/sh -ec '(.*)'$/m.exec(text('systemd/divan-backup.service'))
  const backups = temporaryDirectory()
  writeFileSync(path.join(backups, 'divan-2020-01-01T000000Z.backup'), 'old')
  execFileSync('touch', ['-d', '2020-01-01', path.join(backups, 'divan-2020-01-01T000000Z.backup')])
  const programs = path.join(temporaryDirectory(), 'bin')
  mkdirSync(programs)
  writeFileSync(path.join(programs, 'divan'), `#!/bin/sh\nexec '${binary}' "$@"\n`)
  chmodSync(path.join(programs, 'divan'), 0o755)
  const env = { PATH: `${programs}:${process.env.PATH}`, STATE_DIRECTORY: backups, DIVAN_URL: server.url, DIVAN_USER: server.credentials }
  const unescaped = command.replaceAll('$$', '$').replaceAll('%%', '%') // as systemd does
  await promisify(execFile)('/bin/sh', ['-ec', unescaped], { env })
  const files = readdirSync(backups)
  assert.equal(files.length, 1, files.join())
  assert.match(files[0], /^divan-\d{4}-\d\d-\d\dT\d{6}Z\.backup$/)

  await client.ok('PUT', '/shop/after-the-backup', {})
  await server.kill()
  rmSync(server.dataDir, { recursive: true })
  assert.ok(!existsSync(server.dataDir))

  const dataDir = path.join(temporaryDirectory(), 'new')
  const restored = await runDivan(['restore', path.join(backups, files[0]), '--quiet', '--data-dir', dataDir])
  assert.equal(restored.code, 0, restored.stderr)
  const back = await Server.start({ dataDir })
  assert.equal((await back.client.ok('GET', '/shop')).doc_count, 500)
  assert.equal((await back.client.get('/shop/after-the-backup')).status, 404)
  assert.equal((await back.client.ok('GET', '/shop/d499')).n, 499)
  assert.equal((await back.client.ok('GET', '/_jobs/mail')).settings.max_attempts, 3)
  const states = await Promise.all(['waiting', 'running'].map(async (id) => (await back.client.ok('GET', `/_jobs/mail/${id}`)).state))
  assert.deepEqual(states, ['pending', 'running'])
  await back.stop()
})
