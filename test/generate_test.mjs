// Manual pages, shell completions and the settings file. docs/administration.md
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { binary, runDivan, Server, temporaryDirectory } from './support/server.mjs'
import { settingsRead } from './support/settings_read.mjs'

async function generate(...args) {
  const { code, stdout, stderr } = await runDivan(['generate', ...args])
  assert.equal(code, 0, stderr)
  return stdout
}

const help = (...command) => execFileSync(binary, [...command, '--help'], { encoding: 'utf8' })

/** The commands that --help shows below a command. */
const commandsOf = (...command) => [...(/\nSubcommands:\n([^]*)/.exec(help(...command))?.[1] ?? '').matchAll(/^  ([a-z][\w-]*)/gm)].map(([, name]) => name)

test('each command has a manual page without errors', async () => {
  const directory = temporaryDirectory()
  await generate('man', directory)
  const pages = readdirSync(directory)
  const commands = commandsOf()
  assert.ok(commands.length > 10, commands.join(' '))
  const expected = commands.flatMap((name) => [`divan-${name}.1`, ...commandsOf(name).map((nested) => `divan-${name}-${nested}.1`)])
  assert.deepEqual(pages.sort(), ['divan.1', 'divan.ini.5', ...expected].sort())
  const { stdout } = spawnSync('mandoc', ['-T', 'lint', '-W', 'warning', ...pages], { cwd: directory, encoding: 'utf8' })
  // A page has no date: two builds are the same, byte for byte.
  assert.deepEqual(stdout.split('\n').filter((line) => line && !line.includes('missing date')), [])
  const shown = (page) => execFileSync('mandoc', ['-T', 'ascii', page], { cwd: directory, encoding: 'utf8' }).replace(/.\x08/g, '').replace(/\s+/g, ' ')
  assert.match(shown('divan-backup.1'), /divan-backup - Write all data of a running server to a file SYNOPSIS divan backup \[OPTIONS\] FILE/)
  assert.match(shown('divan-jobs.1'), /divan-jobs-watch\(1\)/)
  assert.match(shown('divan.ini.5'), /\[chttpd\] .*bind_address = 127\.0\.0\.1/)
})

/** The sections of the generated settings file: [{name, settings: [[key, value]], example}]. */
function parseSettings(text) {
  const sections = []
  for (const line of text.split('\n')) {
    const name = /^\[(\S+)\]$/.exec(line)?.[1]
    if (name) sections.push({ name, settings: [] })
    const [, key, value = ''] = /^;(\S+) =(?: (.*))?$/.exec(line) ?? []
    const example = /^; Example: (.*)$/.exec(line)?.[1]
    if (key) sections.at(-1).settings.push([key, value])
    else if (example) sections.at(-1).example = example
    else assert.match(line, /^(; .*|\[\S+\]|)$/)
  }
  return sections
}

test('the settings file has each setting with its default, and a server starts with all of them', async () => {
  const text = await generate('settings')
  const file = path.join(temporaryDirectory(), 'divan.ini')
  writeFileSync(file, text)
  const server = await Server.start({ args: ['--config', file] })
  const settings = await server.client.ok('GET', '/_node/_local/_settings')
  await server.stop()
  const sections = parseSettings(text)
  const names = sections.map(({ name }) => name)
  assert.deepEqual(names, [...new Set(names)], 'each section has one heading')
  assert.deepEqual(sections.flatMap((section) => section.settings.map((setting) => [section.name, ...setting])), settings.map(({ section, key, default: value }) => [section, key, value]))
  // Sections with any keys have examples.
  const examples = sections.filter(({ settings }) => settings.length === 0)
  assert.deepEqual(examples.map(({ name }) => name), ['ken.ignore', 'jwt_keys', 'admins'])
  // --help and the manual page have the same.
  const directory = temporaryDirectory()
  await generate('man', directory)
  const page = readFileSync(path.join(directory, 'divan.ini.5'), 'utf8').replaceAll('\\-', '-')
  assert.deepEqual([...page.matchAll(/^\.SH \[(.*)\]$/gm)].map(([, name]) => name), names)
  for (const { name, example } of examples) {
    assert.ok(page.includes(`Example: ${example}\n`), name)
    assert.ok(help('serve').includes(`\n  [${name}] `), name)
  }
  // Without the semicolons, and with the examples; the port and the address are those of the test.
  writeFileSync(file, text.replace(/^;(\S+ =)/gm, '$1').replace(/^; Example: /gm, ''))
  const explicit = await Server.start({ args: ['--config', file] })
  assert.equal((await explicit.as('ann:a long password').get('/_all_dbs')).status, 200)
  assert.deepEqual(await explicit.client.ok('GET', '/_node/_local/_config/ken.ignore'), { archive: 'true' })
  await explicit.stop()
})

// Otherwise a setting that is read, but not in the table, would be refused as unknown and be in no documentation.
test('the settings that the sources read are those of the settings file', async () => {
  const { settings, unknown } = settingsRead()
  assert.deepEqual(unknown, [
    'api/node_routes.cc: section, key', // a request for a setting
    'ken/settings.cc: "ken.ignore", database', // any key
    'ken/settings.cc: kSection, name' // kInfos, from which the table has [ken]
  ])
  const listed = parseSettings(await generate('settings')).flatMap(({ name, settings }) => (name === 'ken' ? [] : settings.map(([key]) => `${name}/${key}`)))
  assert.deepEqual(settings, listed.sort())
})

test('bash completes commands and options', async () => {
  const file = path.join(temporaryDirectory(), 'divan.bash')
  writeFileSync(file, await generate('completion', 'bash'))
  const complete = (...words) => execFileSync('bash', ['-c', `source ${file}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _divan; printf '%s\\n' "\${COMPREPLY[@]}"`, 'bash', ...words], { encoding: 'utf8' }).split('\n').filter(Boolean)
  assert.deepEqual(complete('divan', 'b'), ['backup'])
  assert.deepEqual(complete('divan', 'jobs', 'w'), ['watch'])
  assert.deepEqual(complete('divan', 'serve', '--fau'), ['--fauxton'])
  assert.ok(complete('divan', '').includes('status'))
  // A file name, which bash itself completes.
  assert.deepEqual(complete('divan', 'serve', '--config', ''), [])
  assert.deepEqual(complete('divan', 'serve', '--data-dir', 'serve', '--fau'), ['--fauxton'])
})

test('fish completes commands and options', async () => {
  const file = path.join(temporaryDirectory(), 'divan.fish')
  writeFileSync(file, await generate('completion', 'fish'))
  const complete = (line) => execFileSync('fish', ['--no-config', '-c', `source ${file}; complete -C '${line}'`], { encoding: 'utf8' }).split('\n').filter(Boolean)
  assert.deepEqual(complete('divan bac'), ['backup\tWrite all data of a running server to a file'])
  assert.match(complete('divan jobs wat').join(), /^watch\t/)
  assert.match(complete('divan serve --fau').join(), /^--fauxton\t/)
})

test('zsh accepts its completion', async () => {
  const file = path.join(temporaryDirectory(), '_divan')
  const text = await generate('completion', 'zsh')
  writeFileSync(file, text)
  execFileSync('zsh', ['-n', file])
  // Its words, as they are given to _describe.
  const stub = 'compdef() {}; _files() { print files }; _describe() { local array=${@[-1]}; print -l -- ${(P)array} }'
  const complete = (...words) => execFileSync('zsh', ['-f', '-c', `${stub}; words=("$@"); CURRENT=$#; source ${file}`, 'zsh', ...words], { encoding: 'utf8' })
  assert.match(complete('divan', ''), /^backup:Write all data/m)
  assert.match(complete('divan', 'jobs', ''), /^watch:/m)
  assert.match(complete('divan', 'serve', '--'), /^--fauxton:/m)
  assert.match(complete('divan', 'serve', '--config', ''), /^files$/m)
})

test('a directory that does not exist and an unknown shell are refused', async () => {
  for (const args of [['man', '/nowhere'], ['completion', 'tcsh'], []]) {
    const { code } = await runDivan(['generate', ...args])
    assert.notEqual(code, 0, args.join(' '))
  }
})
