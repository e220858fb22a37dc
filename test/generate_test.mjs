// Manual pages, shell completions and the settings file. docs/administration.md
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
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

/**
 * What a line of --help shows of an option or argument: `values` are words, or those of completeAll(), `relations` has "excludes" and "needs".
 * The line may be "  -h,--help  Description", "  --at TEXT Excludes: --in --schedule", "  SHELL TEXT:{bash,zsh,fish} REQUIRED".
 */
function describeLine(line) {
  const [, short, name, type = ''] = /^  (?:(-\w),)?(\S+)(?: (?!Excludes|Needs)([A-Z]\S*))?/.exec(line)
  const set = /\{(.*)\}/.exec(type)?.[1].split(',')
  const kind = name.startsWith('-') ? type.replace(/=.*/, '') : name
  const values = set ?? (/FILE$/.test(kind) ? ['<files>'] : /DIR(ECTORY)?$/.test(kind) ? ['<directories>'] : [])
  const relations = [...line.matchAll(/(Excludes|Needs):((?: (?:--[\w-]+|[A-Z]+(?=\s)))+)/g)].map(([, verb, others]) => [verb.toLowerCase(), others.trim().split(' ').sort().join(', ')])
  return { names: [short, name].filter(Boolean), takesValue: type !== '', values, relations: Object.fromEntries(relations) }
}

/** What --help shows of a command, and of all commands below it. */
function describeAll(...words) {
  const text = help(...words).replace(/\nSettings \([^]*/, '\n')
  const section = (title) => (new RegExp(`\\n${title}:\\n((?:  .*\\n)*)`).exec(text)?.[1] ?? '').match(/^  \S.*\n?/gm) ?? []
  const commands = section('Subcommands').map((line) => /\S+/.exec(line)[0])
  const options = (text.match(/^  (-\w,)?--.*\n/gm) ?? []).map(describeLine)
  const usage = /^Usage: .*$/m.exec(text)[0]
  return [{ words, commands, options, arguments: section('Positionals').map(describeLine), usage }, ...commands.flatMap((name) => describeAll(...words, name))]
}

const described = describeAll()

test('each command has a manual page with its options, arguments and commands, without errors', async () => {
  const directory = temporaryDirectory()
  await generate('man', directory)
  const pages = readdirSync(directory)
  assert.ok(described.length > 25, `${described.length}`)
  assert.deepEqual(pages.sort(), ['divan.ini.5', ...described.map(({ words }) => `${['divan', ...words].join('-')}.1`)].sort())
  const { stdout } = spawnSync('mandoc', ['-T', 'lint', '-W', 'warning', ...pages], { cwd: directory, encoding: 'utf8' })
  // A page has no date: two builds are the same, byte for byte.
  assert.deepEqual(stdout.split('\n').filter((line) => line && !line.includes('missing date')), [])
  for (const command of described) {
    const name = ['divan', ...command.words].join('-')
    const text = readFileSync(path.join(directory, `${name}.1`), 'utf8').replaceAll('\\-', '-')
    const section = (title) => new RegExp(`\\n\\.SH ${title}\\n([^]*?)(?=\\n\\.SH |$)`).exec(text)?.[1] ?? ''
    /** Names, and the paragraph. */
    const entries = (title) => [...section(title).matchAll(/\.TP\n\\f[BI](.*?)\\fR.*\n(.*)/g)].map(([, names, paragraph]) => [names, paragraph])
    const shown = (list) => list.map(({ names }) => names.join(', '))
    assert.deepEqual(entries('OPTIONS').map(([names]) => names), shown(command.options), name)
    assert.deepEqual(entries('ARGUMENTS').map(([names]) => names), shown(command.arguments), name)
    assert.deepEqual(entries('COMMANDS').map(([names]) => names), command.commands.map((one) => `${name}-${one}`), name)
    assert.equal(/\\fICOMMAND\\fR|\[\\fICOMMAND\\fR\]/.exec(section('SYNOPSIS'))?.[0].replaceAll(/\\f[IR]/g, ''), /\[?SUBCOMMAND\]?/.exec(command.usage)?.[0].replace('SUB', ''), name)
    for (const [title, list] of [['OPTIONS', command.options], ['ARGUMENTS', command.arguments]]) {
      for (const [i, { relations }] of list.entries()) {
        for (const [verb, others] of Object.entries(relations)) assert.ok(entries(title)[i][1].includes(`(${verb} ${others})`), `${name}: ${entries(title)[i]}`)
      }
    }
  }
  // --help shows these.
  const all = described.flatMap((command) => [...command.options, ...command.arguments])
  for (const verb of ['excludes', 'needs']) assert.ok(all.some(({ relations }) => relations[verb]), verb)
  const shown = (page) => execFileSync('mandoc', ['-T', 'ascii', page], { cwd: directory, encoding: 'utf8' }).replace(/.\x08/g, '').replace(/\s+/g, ' ')
  assert.match(shown('divan-backup.1'), /divan-backup - Write all data of a running server to a file SYNOPSIS divan backup \[OPTIONS\] FILE/)
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

// The shells: each returns what it completes for the last of the words of each query, with <files> and <directories> for names of these.

const script = (queries) => queries.map((words) => `query ${words.map((word) => `'${word}'`).join(' ')}; echo ---`).join('\n')
const answers = (output) => output.split('---\n').slice(0, -1).map((answer) => answer.split('\n').filter(Boolean).sort())

async function completionFile(shell) {
  const file = path.join(temporaryDirectory(), `divan.${shell}`)
  writeFileSync(file, await generate('completion', shell))
  return file
}

const shells = {
  async bash(queries) {
    const file = await completionFile('bash')
    // bash itself completes files and directories.
    const prelude = `source ${file}
      compopt() { [[ $2 == dirnames ]] && echo '<directories>' || echo '<files>'; }
      COMP_WORDBREAKS=:=
      query() { COMP_LINE=$1; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _divan; printf '%s\\n' "\${COMPREPLY[@]}"; }\n`
    // As readline splits a line.
    const split = (line) => [line, ...line.match(/[:=]+|[^\s:=]+|(?<=\s)$/g)]
    return answers(execFileSync('bash', ['-s'], { input: prelude + script(queries.map((words) => split(words.join(' ')))), encoding: 'utf8' }))
  },
  async zsh(queries) {
    const file = await completionFile('zsh')
    execFileSync('zsh', ['-n', file])
    const prelude = `compset() { : }; _files() { [[ $1 == -/ ]] && print '<directories>' || print '<files>' }
      _describe() { local array=\${@[-1]}; print -l -- \${\${(P)array}%%:*} }
      words=(divan '') CURRENT=2; source ${file} >/dev/null
      query() { words=("$@"); CURRENT=$#; _divan || print '<none>' }\n`
    return answers(execFileSync('zsh', ['-f', '-s'], { input: prelude + script(queries), encoding: 'utf8' }))
      .map((answer) => (answer.length === 0 ? ['nothing, without a status that says so'] : answer.filter((word) => word !== '<none>')))
  },
  async fish(queries) {
    const file = await completionFile('fish')
    const directory = temporaryDirectory()
    mkdirSync(path.join(directory, 'directory'))
    writeFileSync(path.join(directory, 'file'), '')
    const prelude = `source ${file}; function query; complete -C "$argv" | string replace -r '\\t.*' ''; end\n`
    const output = execFileSync('fish', ['--no-config', '-c', prelude + script(queries)], { cwd: directory, encoding: 'utf8' })
    return answers(output).map((answer) => ({ 'directory/': ['<directories>'], 'directory/,file': ['<files>'] })[answer.join()] ?? answer)
  }
}

for (const [shell, completeAll] of Object.entries(shells)) {
  test(`${shell} completes all commands, options, and values that --help shows`, async () => {
    const queries = []
    for (const { words, commands, options, arguments: named } of described) {
      const start = ['divan', ...words]
      queries.push([[...start, '-'], options.flatMap(({ names }) => names)])
      for (const { names, values } of options.filter(({ takesValue }) => takesValue)) queries.push(...names.map((name) => [[...start, name, ''], values]))
      for (const [i, { values }] of named.entries()) queries.push([[...start, ...Array(i).fill('x'), ''], values])
      if (named.length === 0) queries.push([[...start, ''], commands])
    }
    const background = queries.filter(([words]) => words.at(-2) === '--background')
    // --help shows these in the description.
    for (const query of background) query[1] = /all kinds: (\S+)/.exec(help('serve'))[1].split(',')
    queries.push(
      [['divan', 'b'], ['backup']],
      [['divan', 'jobs', 'w'], ['watch']],
      // Values that are also names of commands.
      [['divan', 'jobs', '--data-dir', 'watch', 'w'], ['watch']],
      [['divan', 'serve', '--data-dir', 'serve', '--fau'], ['--fauxton']],
      [['divan', 'load', '--quiet', '--batch=5', 'shop', ''], ['<files>']]
    )
    const matching = ([words, expected]) => expected.filter((one) => one.startsWith('<') || one.startsWith(words.at(-1))).sort()
    const results = await completeAll(queries.map(([words]) => words))
    assert.ok(queries.length > 150, `${queries.length}`)
    const show = ([words], result) => `${words.join(' ')}: ${result.join(' ')}`
    // zsh itself selects those that match.
    assert.deepEqual(results.map((result, i) => show(queries[i], shell === 'zsh' ? matching([queries[i][0], result]) : result)), queries.map((query) => show(query, matching(query))))
  })
}

test('bash completes after words that it splits at : and =', async () => {
  const lines = {
    'divan load --url http://h:1 shop ': ['<files>'],
    'divan jobs list t --state=f': ['failed', 'finished'],
    'divan jobs list t --state=': ['cancelled', 'failed', 'finished', 'pending', 'running'],
    'divan backup --user a: ': ['<files>'],
    'divan serve --store fdb: --fau': ['--fauxton'],
    'divan serve --store= --fau': ['--fauxton']
  }
  assert.deepEqual(await shells.bash(Object.keys(lines).map((line) => line.split(' '))), Object.values(lines))
})

test('a directory that does not exist and an unknown shell are refused', async () => {
  for (const args of [['man', '/nowhere'], ['completion', 'tcsh'], []]) {
    const { code } = await runDivan(['generate', ...args])
    assert.notEqual(code, 0, args.join(' '))
  }
})
