// Divan as a library: the program of docs/architecture.md, built outside of the source tree against the
// installed library.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { programs } from './support/program.mjs'
import { hasSanitizers, temporaryDirectory } from './support/server.mjs'

const build = process.env.DIVAN_BUILD_DIR

// Programs built without sanitizers cannot be linked with a library that is built with them.
test('library: a program finds it, compiles, and uses its own queue', { skip: hasSanitizers() && 'the program would need the sanitizer, too' }, async () => {
  const directory = temporaryDirectory()
  const run = async (program, ...args) => (await promisify(execFile)(program, args, { cwd: directory, maxBuffer: 1 << 26 })).stdout
  await run('cmake', '--install', build, '--prefix', 'installed')
  const sources = programs('docs/architecture.md', 'As a library')
  const [cmake, cpp] = ['cmake', 'cpp'].map((language) => sources.find((program) => program.language === language).source)
  writeFileSync(path.join(directory, 'CMakeLists.txt'), cmake)
  writeFileSync(path.join(directory, 'main.cc'), cpp)
  await run('cmake', '-S', '.', '-B', 'build', '-DCMAKE_PREFIX_PATH=' + path.join(directory, 'installed'))
  await run('cmake', '--build', 'build')
  assert.equal(await run('build/example', 'data'), 'mail {"letter":"ann"}\n')
  // It needs neither SpiderMonkey nor HTTP, to be configured, linked or run.
  assert.doesNotMatch(await run('find', 'installed', '-name', '*.cmake', '-exec', 'cat', '{}', '+'), /mozjs/)
  assert.doesNotMatch(await run('ldd', 'build/example'), /mozjs|libssl/)
  assert.doesNotMatch(await run('nm', '--demangle', 'build/example'), /divan::(js|http|api)::/)
})
