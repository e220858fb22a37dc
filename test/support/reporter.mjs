// The output of a test run: a line per file, and the failures.
import path from 'node:path'

// The file of a test: "feeds: a name" (see server.mjs), or else the file itself.
const groupOf = ({ name, file }) => /^([a-z_]+): /.exec(name)?.[1] ?? path.basename(file ?? name).replace(/_test\.mjs$/, '')

function describe(error) {
  const cause = error?.cause ?? error
  if (typeof cause === 'string') return cause
  const stack = String(cause?.stack ?? '')
    .split('\n')
    .filter((line) => /^\s+at .*_test\.mjs/.test(line))
    .slice(0, 3)
  return [cause?.message ?? String(cause), ...stack].join('\n')
}

export default async function* report(events) {
  const groups = new Map()
  const failures = []
  for await (const { type, data } of events) {
    if (type === 'test:stderr' && !/ExperimentalWarning|--trace-warnings/.test(data.message)) yield data.message
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const group = groupOf(data)
    if (!groups.has(group)) groups.set(group, { passed: 0, skipped: 0, failed: 0, ms: 0 })
    const counts = groups.get(group)
    // A file is reported as a test, too: when it could not be loaded, or has a test that failed.
    const isFile = data.name.endsWith('.mjs')
    if (data.nesting === 0 && !isFile) counts.ms += data.details.duration_ms
    if (type === 'test:pass') {
      if (!isFile && data.details.type !== 'suite') ++counts[data.skip === undefined ? 'passed' : 'skipped']
      if (typeof data.skip === 'string') counts.why = data.skip
      continue
    }
    if (data.details.error?.failureType === 'subtestsFailed' || (isFile && counts.failed > 0)) continue
    ++counts.failed
    failures.push(isFile ? `${group}: the file itself` : data.name)
    yield `FAILED ${failures.at(-1)}\n${describe(data.details.error)}\n\n`
  }
  let passed = 0
  for (const [group, counts] of groups) {
    passed += counts.passed
    const seconds = (counts.ms / 1000).toFixed(1).padStart(6)
    yield `${counts.failed ? 'FAILED' : 'ok    '} ${group.padEnd(12)}${seconds} s, ${counts.passed} passed`
    if (counts.skipped) yield `, ${counts.skipped} SKIPPED: ${counts.why}`
    yield counts.failed ? `, ${counts.failed} failed\n` : '\n'
  }
  yield `${passed} end-to-end tests passed, ${failures.length} failed.\n`
  for (const failure of failures) yield `  failed: ${failure}\n`
}
