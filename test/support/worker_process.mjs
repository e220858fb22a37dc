// Workers as separate processes, which report events on stdout and read commands from stdin.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { waitFor, within } from './wait.mjs'

const workers = new Set()

/** Kills the processes that a test has left. */
export function killWorkers() {
  for (const worker of workers) worker.kill('SIGKILL')
  workers.clear()
}

/** A worker's process. `lines`: its output. */
export class WorkerProcess {
  lines = []
  #rest = ''
  stderr = ''

  constructor(program, ...args) {
    this.child = spawn(program, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
    })
    this.child.stdin.on('error', () => {})
    this.child.stdout.setEncoding('utf8').on('data', (text) => {
      const lines = (this.#rest + text).split('\n')
      this.#rest = lines.pop()
      this.lines.push(...lines)
    })
    this.child.stderr.setEncoding('utf8').on('data', (text) => (this.stderr += text))
    this.exit = new Promise((resolve) => this.child.on('close', resolve))
    workers.add(this)
  }
  kill(signal) {
    this.child.kill(signal)
  }
  tell(command) {
    this.child.stdin.write(command + '\n')
  }
  count(words) {
    return this.lines.filter((line) => line === words || line.startsWith(words + ' ')).length
  }
  /** The rest of the first line that begins with the word. */
  said(words) {
    return this.lines.find((line) => line.startsWith(words + ' '))?.slice(words.length + 1)
  }
  /** Waits until it has printed it that many times. */
  async says(words, times = 1) {
    await waitFor(`a worker to say: ${words}`, () => {
      assert.ok(this.child.exitCode === null || this.count(words) >= times, `it ended: ${this.lines}\n${this.stderr}`)
      return this.count(words) >= times
    })
  }
  /** Waits for its end, in order. */
  async stopped() {
    await within('a worker to stop', this.exit)
    assert.equal(this.stderr, '')
    // The thread that stops the worker may say so last.
    assert.equal(this.lines.filter((line) => line !== 'stopping').at(-1), 'stopped')
  }
}
