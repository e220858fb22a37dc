// What deploy/ has for operators: metrics of alerts and charts, the backup of the timer, a recovery, and manifests.
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { binary, runDivan, Server, temporaryDirectory, testWithServer } from './support/server.mjs'

const require = createRequire(import.meta.url)
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

test('operations: each alert fires when it should, and only then', { skip: missing('promtool') }, () => {
  const names = (file, pattern) => [...new Set([...text(file).matchAll(pattern)].map(([, name]) => name))].sort()
  assert.deepEqual(names('prometheus/rules_test.yml', /alertname="(\w+)"/g), names('prometheus/rules.yml', /- alert: (\w+)/g))
  for (const [command, file] of [['check', 'rules.yml'], ['test', 'rules_test.yml']]) {
    const { status, stdout, stderr } = spawnSync('promtool', [command, 'rules', file], { cwd: path.join(deploy, 'prometheus'), encoding: 'utf8' })
    assert.equal(status, 0, stdout + stderr)
  }
})

test('operations: after kill -9 and the loss of the data directory, a restore has documents and jobs', async () => {
  const server = await Server.start({ admin: null })
  const read = (name) => readFileSync(path.join(server.dataDir, name), 'utf8')
  const admin = read('admin').trim()
  const client = server.as(admin)
  await client.ok('PUT', '/_node/_local/_config/log/level', '"warning"')
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
  const env = { PATH: `${programs}:${process.env.PATH}`, STATE_DIRECTORY: backups, DIVAN_URL: server.url, DIVAN_USER: admin }
  const unescaped = command.replaceAll('$$', '$').replaceAll('%%', '%') // as systemd does
  await promisify(execFile)('/bin/sh', ['-ec', unescaped], { env })
  const files = readdirSync(backups)
  assert.equal(files.length, 1, files.join())
  assert.match(files[0], /^divan-\d{4}-\d\d-\d\dT\d{6}Z\.backup$/)

  const copies = ['admin', 'local.ini'].map((name) => [name, read(name)])
  await client.ok('PUT', '/shop/after-the-backup', {})
  await server.kill()
  rmSync(server.dataDir, { recursive: true })
  assert.ok(!existsSync(server.dataDir))

  const dataDir = path.join(temporaryDirectory(), 'new')
  const restored = await runDivan(['restore', path.join(backups, files[0]), '--quiet', '--data-dir', dataDir])
  assert.equal(restored.code, 0, restored.stderr)
  for (const [name, copy] of copies) writeFileSync(path.join(dataDir, name), copy)
  const back = await Server.start({ dataDir, admin: null })
  const again = back.as(admin)
  assert.equal((await again.ok('GET', '/shop')).doc_count, 500)
  assert.equal((await again.get('/shop/after-the-backup')).status, 404)
  assert.equal((await again.ok('GET', '/shop/d499')).n, 499)
  assert.equal((await again.ok('GET', '/_jobs/mail')).settings.max_attempts, 3)
  assert.equal(await again.ok('GET', '/_node/_local/_config/log/level'), 'warning')
  const states = await Promise.all(['waiting', 'running'].map(async (id) => (await again.ok('GET', `/_jobs/mail/${id}`)).state))
  assert.deepEqual(states, ['pending', 'running'])
  await back.stop()
})

test('operations: the manifests for Kubernetes are valid, and refer to what they contain', async () => {
  const objects = parseAllDocuments(text('kubernetes/divan.yaml'), { version: '1.1' }).map((document) => document.toJS()) // 0440 is octal, as for kubectl
  const kinds = {}
  for (const object of objects) {
    const { [object.kind]: Model } = require(`kubernetes-models/${object.apiVersion}`)
    new Model(object).validate()
    kinds[object.kind] = object
  }
  const { template, replicas, selector } = kinds.Deployment.spec
  assert.ok(kinds.PodDisruptionBudget.spec.minAvailable < replicas)
  for (const labels of [selector.matchLabels, kinds.Service.spec.selector, kinds.PodDisruptionBudget.spec.selector.matchLabels]) {
    assert.deepEqual(template.metadata.labels, labels)
  }
  const [container] = template.spec.containers
  assert.equal(container.envFrom[0].configMapRef.name, kinds.ConfigMap.metadata.name)
  // The schema allows unknown members, and so misspelled probes.
  for (const probe of ['startupProbe', 'readinessProbe']) assert.deepEqual(container[probe]?.httpGet, { path: '/_up', port: 'http' }, probe)
  assert.deepEqual(container.livenessProbe?.tcpSocket, { port: 'http' })
  for (const { securityContext } of [container, ...template.spec.initContainers]) {
    assert.deepEqual(securityContext, { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } })
  }
  assert.equal(template.spec.securityContext?.runAsNonRoot, true)
  const volumes = template.spec.volumes.map(({ name }) => name)
  for (const { volumeMounts } of [container, ...template.spec.initContainers]) for (const { name } of volumeMounts) assert.ok(volumes.includes(name), name)
})

test('operations: a server starts with the settings of the manifests, and its probe needs no user', async () => {
  const documents = parseAllDocuments(text('kubernetes/divan.yaml')).map((document) => document.toJS())
  const { DIVAN_DIVAN_STORE, ...settings } = documents.find(({ kind }) => kind === 'ConfigMap').data
  assert.match(DIVAN_DIVAN_STORE, /^fdb:/)
  const file = path.join(temporaryDirectory(), 'divan.ini')
  writeFileSync(file, '[admins]\nroot = from-a-secret\n')
  // On the embedded store, and on loopback.
  const env = { ...settings, DIVAN_CHTTPD_BIND_ADDRESS: '127.0.0.1' }
  const server = await Server.start({ admin: null, args: ['--config', file], env })
  assert.equal((await server.as().get('/_up')).status, 200)
  assert.equal((await server.as().get('/')).status, 401)
  assert.equal((await server.as('root:from-a-secret').get('/_all_dbs')).status, 200)
  await server.stop()
})
