// ./dev compat: the list of tests that are expected to fail, and the command with a small project in PouchDB's place.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { compare, parseExpected } from './compat/expected.mjs'
import { temporaryDirectory } from './support/server.mjs'

const file = (name) => fileURLToPath(new URL(name, import.meta.url))

const LIST = `
# Tests that fail

    ./dev compat other

Not there: see [differences](differences.md).

    find: a b
    find, sometimes: c: \`d\`

Another reason.

    mapreduce: a b
`
const parse = (text) => parseExpected(text, ['find', 'mapreduce'])

test('compat: a document lists tests', () => {
  assert.deepEqual(parse(LIST), [
    { suite: 'find', sometimes: false, title: 'a b' },
    { suite: 'find', sometimes: true, title: 'c: `d`' },
    { suite: 'mapreduce', sometimes: false, title: 'a b' }
  ])
  assert.throws(() => parse('\n    fund: a'), /line 2: there is no suite fund/)
  assert.throws(() => parse('    find: a\n    find: a'), /line 2: the test is listed twice/)
  assert.throws(() => parse('    find: a\n    find, sometimes: a'), /line 2: the test is listed twice/)
})

test('compat: results are compared with the list', () => {
  const result = (title, state) => ({ title, state })
  const found = (suite, ...results) => {
    const { unexpected, passing, missing, ...counts } = compare(suite, results, parse(LIST))
    const titles = (tests) => tests.map(({ title }) => title)
    return { ...counts, unexpected: titles(unexpected), passing: titles(passing), missing: titles(missing) }
  }
  assert.deepEqual(
    found('find', result('a b', 'passed'), result('a b', 'failed'), result('e', 'failed'), result('f', 'passed'), result('g', 'pending')),
    { passed: 2, failed: 2, pending: 1, unexpected: ['e'], passing: [], missing: ['c: `d`'] }
  )
  assert.deepEqual(
    found('find', result('a b', 'passed'), result('c: `d`', 'passed')),
    { passed: 2, failed: 0, pending: 0, unexpected: [], passing: ['a b'], missing: [] }
  )
  assert.deepEqual(
    found('mapreduce', result('a b', 'pending')),
    { passed: 0, failed: 0, pending: 1, unexpected: [], passing: [], missing: ['a b'] }
  )
})

test('compat: a failed hook fails its test, and the next one runs', () => {
  const report = path.join(temporaryDirectory(), 'report')
  writeFileSync(report, '')
  process.env.DIVAN_COMPAT_REPORT = report
  const Reporter = createRequire(import.meta.url)('./compat/mocha_reporter.cjs')
  let rejection
  const hook = { fn: (done) => done(rejection) }
  const runner = Object.assign(new EventEmitter(), { suite: { _afterEach: [hook] } })
  new Reporter(runner)
  const named = (title) => ({ fullTitle: () => title })
  for (const [one, error] of [[named('a'), undefined], [named('b'), { status: 404, name: 'not_found', reason: 'missing' }]]) {
    runner.emit('pass', one)
    rejection = error
    hook.fn.call({ currentTest: one }, (failure) => assert.equal(failure, undefined))
  }
  runner.emit('pending', named('c'))
  runner.emit('end')
  assert.deepEqual(readFileSync(report, 'utf8').trim().split('\n').map((line) => JSON.parse(line)), [
    { id: 0, title: 'a', state: 'passed' },
    { id: 1, title: 'b', state: 'passed' },
    { id: 1, title: 'b', state: 'failed', error: '404 not_found: missing' },
    { id: 2, title: 'c', state: 'pending' },
    { ended: true }
  ])
})

// A checkout whose `npm test` reports these lines if it finds a server that lets it create a database.
function checkout(lines) {
  const directory = temporaryDirectory()
  mkdirSync(path.join(directory, 'bin'))
  mkdirSync(path.join(directory, 'node_modules/.bin'), { recursive: true })
  for (const name of ['bin/run-test.sh', 'node_modules/.bin/mocha']) writeFileSync(path.join(directory, name), '')
  writeFileSync(path.join(directory, 'package.json'), JSON.stringify({ scripts: { test: './suite.sh' } }))
  const script = `#!/bin/sh
curl -sf -X PUT "$COUCH_HOST/compat" || exit 1
cat <<'LINES' >"$DIVAN_COMPAT_REPORT"
${lines.map((line) => JSON.stringify(line)).join('\n')}
LINES
echo "output of $TYPE"
`
  writeFileSync(path.join(directory, 'suite.sh'), script)
  chmodSync(path.join(directory, 'suite.sh'), 0o755)
  return directory
}

function runTool(...args) {
  const child = spawn(process.execPath, [file('compat/pouchdb.mjs'), ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

test('compat: only failures that are not in the list are errors', async () => {
  const [{ suite, title }] = parseExpected(readFileSync(file('../docs/compatibility.md'), 'utf8'), ['integration', 'mapreduce', 'find'])
  const failed = (name) => ({ id: 1, title: name, state: 'failed', error: 'first line\nsecond' })
  const passed = { id: 0, title: 'another', state: 'passed' }
  const run = (...lines) => runTool('--source', checkout(lines), suite)

  const expected = await run(passed, failed(title), { ended: true })
  assert.match(expected.output, /1 passed, 1 failed \(0 unexpectedly\), 0 pending/)
  assert.equal(expected.code, 0, expected.output)

  const unexpected = await run(passed, failed(title), { ...failed('a new one'), id: 2 }, { ended: true })
  assert.match(unexpected.output, new RegExp(`FAILED ${suite}: a new one\n      first line`))
  assert.equal(unexpected.code, 1, unexpected.output)

  const passing = await run(passed, { id: 1, title, state: 'passed' }, { ended: true })
  assert.ok(passing.output.includes(`PASSES NOW, remove it from the list: ${suite}: ${title}\n`), passing.output)
  assert.equal(passing.code, 0, passing.output)

  const broken = await run(passed)
  assert.match(broken.output, new RegExp(`the suite ${suite} did not come to its end.*\n.*output of ${suite}`, 's'))
  assert.equal(broken.code, 2, broken.output)
})

test('compat: invalid arguments', async () => {
  for (const [args, message] of [
    [[], /--source is missing/],
    [['--source', file('.')], /is not a checkout of PouchDB/],
    [['--source', file('.'), 'unit'], /there is no suite unit; there are integration/],
    [['--sauce', 'x'], /Unknown option '--sauce'/]
  ]) {
    const { code, output } = await runTool(...args)
    assert.match(output, message)
    assert.equal(code, 2)
  }
})
