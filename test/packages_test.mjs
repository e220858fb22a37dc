// The packages of the kits: their archives are built, installed where nothing else is, and run a worker.
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cleanUp, withCredentials } from './support/kits.mjs'
import { programs } from './support/program.mjs'
import { shareServer, temporaryDirectory } from './support/server.mjs'
import { waitFor, within } from './support/wait.mjs'
import { WorkerProcess } from './support/worker_process.mjs'

const clients = path.join(path.dirname(fileURLToPath(import.meta.url)), '../clients')
const repository = path.join(clients, '..')
const it = shareServer()
cleanUp()

const run = async (cwd, program, ...args) =>
  (await promisify(execFile)(program, args, { cwd, env: { ...process.env, PIP_NO_INDEX: '1', PYTHONDONTWRITEBYTECODE: '1' } })).stdout
const contents = (archive) => execFileSync('tar', ['tzf', archive], { encoding: 'utf8' }).trim().split('\n').sort()
// The files of a folder that are committed, or would be.
const committed = (folder) =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '.'], { cwd: path.join(clients, folder), encoding: 'utf8' }).trim().split('\n')
const licence = readFileSync(path.join(repository, 'LICENSE'), 'utf8')
// The version that a package and its changelog have.
const latest = (folder) => /^## (\d+\.\d+\.\d+)(, unreleased)?$/m.exec(readFileSync(path.join(clients, folder, 'CHANGELOG.md'), 'utf8'))[1]
// False, or why a test that needs a module of Python is skipped.
const lacks = (module) => (spawnSync('python3', ['-c', `import ${module}`]).status === 0 ? false : `Python has no ${module}`)

/** Runs a kit's example, which adds a job and runs it, until it is stopped. */
async function runExample(server, program, file) {
  const example = new WorkerProcess(program, file, withCredentials(server.url))
  await example.says('online')
  await example.says('to Ann: Welcome!')
  await waitFor('the letter to be sent', async () => (await server.client.ok('GET', '/_jobs/letter/welcome-ann')).state === 'finished')
  example.kill('SIGTERM')
  await within('its end', example.exit)
  assert.deepEqual([example.child.exitCode, example.stderr], [0, ''])
  await server.client.ok('DELETE', '/_jobs/letter?force=true')
}

it('npm: the archive has all files, and its installation runs a worker', async (server) => {
  const directory = temporaryDirectory()
  const [packed] = JSON.parse(await run(path.join(clients, 'js'), 'npm', 'pack', '--json', '--pack-destination', directory))
  const archive = path.join(directory, packed.filename)
  const files = committed('js').filter((file) => file !== 'package-lock.json')
  assert.deepEqual(contents(archive), [...files, 'LICENSE'].map((file) => `package/${file}`).sort())
  await run(directory, 'npm', 'init', '--yes')
  await run(directory, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', archive)
  const installed = path.join(directory, 'node_modules/divan-jobs')
  const { version, license, engines, types, exports } = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8'))
  assert.deepEqual([version, license], [latest('js'), 'Apache-2.0'])
  assert.ok(engines.node && types && exports['.'].types === types)
  assert.equal(readFileSync(path.join(installed, 'LICENSE'), 'utf8'), licence)
  // What the types declare is what the module exports.
  const declared = readFileSync(path.join(installed, types), 'utf8').matchAll(/^export (?:declare )?(?:class|function|const) (\w+)/gm)
  const module = await import(path.join(installed, 'index.mjs'))
  assert.deepEqual([...declared].map(([, name]) => name).sort(), Object.keys(module).sort())
  await runExample(server, process.execPath, path.join(installed, 'example.mjs'))
})

const tsc = path.join(repository, 'web/node_modules/typescript/bin/tsc')
test('packages: npm: programs compile with its types, with and without those of Node.js', { skip: existsSync(tsc) ? false : 'web/node_modules has no TypeScript' }, () => {
  const directory = temporaryDirectory()
  mkdirSync(path.join(directory, 'node_modules'))
  symlinkSync(path.join(clients, 'js'), path.join(directory, 'node_modules/divan-jobs'))
  writeFileSync(path.join(directory, 'package.json'), '{ "type": "module" }')
  copyFileSync(path.join(repository, 'test/kits/types.ts'), path.join(directory, 'types.ts'))
  const [, migrated] = programs('docs/migration.md', 'From BullMQ')
  writeFileSync(path.join(directory, 'migrated.ts'), migrated.source)
  writeFileSync(path.join(directory, 'events.ts'), "import { EventEmitter, on, once } from 'node:events'\nimport { Divan } from 'divan-jobs'\nconst worker: EventEmitter = new Divan('').worker({ role: 'x' })\nawait once(worker, 'online')\non(new Divan('').worker({ role: 'x' }), 'fail')\n")
  const compile = (...args) => {
    const { status, stdout } = spawnSync(process.execPath, [tsc, '--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', 'types.ts', 'migrated.ts', ...args], { cwd: directory, encoding: 'utf8' })
    assert.deepEqual([stdout, status], ['', 0])
  }
  compile()
  compile('events.ts', '--lib', 'es2022', '--types', 'node', '--typeRoots', path.join(repository, 'web/node_modules/@types'))
})

test('packages: Python: types are those of the modules', { skip: lacks('mypy') }, async () => {
  const directory = temporaryDirectory()
  const source = path.join(clients, 'python')
  const check = (...args) => run(directory, 'env', `MYPYPATH=${source}`, `PYTHONPATH=${source}`, 'python3', '-m', ...args)
  await check('mypy', '--strict', '--allow-untyped-defs', path.join(source, 'example.py'))
  // The modules themselves have no types.
  const allowed = path.join(directory, 'allowed')
  writeFileSync(allowed, 'divan_jobs\\._.*\n')
  await check('mypy.stubtest', 'divan_jobs', '--allowlist', allowed, '--ignore-unused-allowlist', '--ignore-missing-stub')
})

it('Python: the archives have all files, and their installation runs a worker', async (server) => {
  const directory = temporaryDirectory()
  const source = path.join(clients, 'python')
  const build = `import _build; print(_build.build_sdist(${JSON.stringify(directory)}))`
  const name = (await run(source, 'python3', '-c', build)).trim()
  const { version } = /^version = "(?<version>.*)"$/m.exec(readFileSync(path.join(source, 'pyproject.toml'), 'utf8')).groups
  assert.equal(version, latest('python'))
  const stem = `divan_jobs-${version}`
  assert.deepEqual(contents(path.join(directory, name)), [...committed('python'), 'LICENSE', 'PKG-INFO'].map((file) => `${stem}/${file}`).sort())
  // The wheel is built from the source archive.
  await run(directory, 'python3', '-m', 'venv', 'env')
  const python = path.join(directory, 'env/bin/python')
  await run(directory, python, '-m', 'pip', 'wheel', '--quiet', '--no-deps', name)
  await run(directory, python, '-m', 'pip', 'install', '--quiet', `${stem}-py3-none-any.whl`)
  const describe = "import importlib.metadata as m, json; d = m.distribution('divan-jobs'); print(json.dumps([d.version, d.metadata.items(), [str(f) for f in d.files], d.read_text('LICENSE')]))"
  const [installed, metadata, files, text] = JSON.parse(await run(directory, python, '-c', describe))
  const fields = Object.fromEntries(metadata)
  assert.deepEqual([installed, fields.License, fields['Requires-Python'], text], [version, 'Apache-2.0', '>=3.9', licence])
  assert.deepEqual(metadata.filter(([field, value]) => field === 'Classifier' && value === 'Typing :: Typed').length, 1)
  for (const file of ['py.typed', '__init__.pyi']) assert.ok(files.includes(`divan_jobs/${file}`), files.join())
  const example = path.join(directory, 'example.py')
  copyFileSync(path.join(source, 'example.py'), example)
  await runExample(server, python, example)
})
