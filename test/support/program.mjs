// Runs programs of the documentation unchanged.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from './server.mjs'
import { waitFor, within } from './wait.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))
const INTERPRETERS = { js: [process.execPath, 'program.mjs'], sh: ['bash', 'program.sh'], python: ['python3', 'program.py'] }

const running = new Set()
process.on('exit', () => {
  for (const program of running) program.signal('SIGKILL')
})

/** The blocks of code under a heading: [{language, source}]. */
export function programs(file, heading) {
  const text = readFileSync(path.join(root, file), 'utf8')
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`))
  assert.ok(section, `${file} has a section ${heading}`)
  return [...section.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language, source]) => ({ language, source }))
}

/** Runs a program, with this server's address in it, in a directory of its own. See Running; again() runs it again. `env`: variables. */
export function run({ language, source, env = {} }, server, ...args) {
  const directory = temporaryDirectory()
  const modules = path.join(directory, 'node_modules')
  mkdirSync(modules)
  for (const name of ['nano', 'pouchdb-core', 'pouchdb-adapter-http', 'pngjs', 'standardwebhooks']) {
    symlinkSync(path.join(root, 'test/node_modules', name), path.join(modules, name))
  }
  symlinkSync(path.join(root, 'clients/js'), path.join(modules, 'divan-jobs'))
  const [interpreter, name] = INTERPRETERS[language]
  writeFileSync(path.join(directory, name), source.replaceAll('127.0.0.1:5984', new URL(server.url).host))
  const start = (...args) => Object.assign(new Running(interpreter, [name, ...args], directory, env), { again: start })
  return start(...args)
}

/** A running program. Its children end with it. */
class Running {
  stdout = ''
  stderr = ''
  #child

  constructor(interpreter, args, directory, variables) {
    const env = { ...process.env, PYTHONPATH: path.join(root, 'clients/python'), ...variables }
    this.#child = spawn(interpreter, args, { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    for (const name of ['stdout', 'stderr']) {
      this.#child[name].setEncoding('utf8').on('data', (piece) => (this[name] += piece))
    }
    this.closed = new Promise((resolve) => this.#child.on('close', resolve))
    running.add(this)
    this.closed.then(() => running.delete(this))
  }

  signal(name) {
    try {
      process.kill(-this.#child.pid, name)
    } catch {
      // It has ended.
    }
  }
  async end() {
    this.signal('SIGKILL')
    await this.closed
  }
  /** Waits until it has printed the words that many times. */
  says(words, times = 1) {
    return waitFor(`the program to say ${words}`, () => {
      if (this.count(words) >= times) return true
      assert.ok(this.#child.exitCode === null, this.stderr)
    })
  }
  count(words) {
    return this.stdout.split(words).length - 1
  }
  /** Waits for its end without a signal, with exit status 0; returns its output. */
  async output(limit) {
    const code = await within('the end of the program', this.closed, limit)
    assert.equal(code, 0, this.stderr)
    return this.stdout
  }
}
