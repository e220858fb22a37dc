// A helper process, so that its work does not delay what this process measures. It gets commands as lines, and responds to each with a line of JSON.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import { endWithUs } from '../jobs/instance.mjs';

// Rejects if the promise takes longer.
export function within(seconds, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: no result within ${seconds} s`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export class Child {
  #waiting = [];

  // Resolves when it has printed its first line; that line's value is `first`.
  static async start(file, ...args) {
    const child = new Child();
    child.file = file;
    child.process = spawn('node', [`bench/triggers/${file}`, ...args.map((one) => JSON.stringify(one))], { stdio: ['pipe', 'pipe', 'inherit'] });
    endWithUs(child.process);
    child.pid = child.process.pid;
    child.process.stdin.on('error', () => {}); // it has ended, which rejects the requests
    child.ended = new Promise((resolve) => child.process.once('exit', resolve));
    createInterface({ input: child.process.stdout }).on('line', (line) => child.#waiting.shift()?.resolve(JSON.parse(line)));
    child.ended.then((code) => child.#waiting.forEach(({ reject }) => reject(new Error(`${file} ended with ${code}`))));
    child.first = await child.#response('start', 30);
    return child;
  }

  #response(what, seconds) {
    return within(seconds, new Promise((resolve, reject) => this.#waiting.push({ resolve, reject })), `${this.file}: ${what}`);
  }

  ask(command, seconds = 30) {
    this.process.stdin.write(`${command}\n`);
    return this.#response(command, seconds);
  }

  stop() {
    this.process.kill('SIGTERM');
    return this.ended;
  }
}

// In the helper process: calls `commands[name](argument)` for each line, and ends with the input.
export function serve(commands) {
  const lines = createInterface({ input: process.stdin });
  lines.on('line', async (line) => {
    const [name, argument] = line.split(' ');
    say(await commands[name](argument));
  });
  lines.on('close', () => process.exit());
}

export function say(value = null) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
