// The real server as a process that is killed and restarted on one data directory.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { check, until } from './client.mjs';

const kStartLimitMs = 120_000;

// The fields of /proc/PID/stat after the name, which may contain any character.
function stat(pid) {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0], session: Number(fields[3]) };
  } catch {
    return null; // it has ended
  }
}

/** The live processes of a session. A server leads its own session, which its children stay in. */
export function alive_in_session(session) {
  return fs.readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), ...stat(name) }))
    .filter((process) => process.session === session && !'ZX'.includes(process.state));
}

export class Server {
  constructor(buildDir, dataDir, logFile) {
    this.binary = path.join(buildDir, 'divan');
    this.dataDir = dataDir;
    this.logFile = logFile;
    this.credentials = 'admin:crash';
    this.port = null;
    this.child = null;
    this.stopping = false;
    this.slowestStartMs = 0;
    this.leftSession = null; // of the last process
    process.on('exit', () => this.child?.kill('SIGKILL')); // it has its own session, so a signal to ours does not end it
  }

  /** Starts the process; it may not be listening yet. */
  launch(...args) {
    check(this.child === null, 'the last server still runs');
    this.port = null;
    this.stopping = false;
    const log = fs.openSync(this.logFile, 'a');
    this.child = spawn(
      this.binary,
      ['serve', '--data-dir', this.dataDir, '--port', '0', '--admin', this.credentials, ...args],
      { stdio: ['ignore', 'pipe', log], detached: true }, // detached: it leads a session
    );
    fs.closeSync(log);
    const child = this.child;
    let said = '';
    child.stdout.setEncoding('utf8');
    child.stdout.on('data', (piece) => {
      said += piece;
      this.port ??= Number(/listens on http:\/\/[^ ]*:(\d+) /.exec(said)?.[1]) || null;
    });
    child.ended = new Promise((resolve) => {
      child.on('exit', (code, signal) => resolve({ code, signal }));
      child.on('error', (error) => resolve({ code: error.message, signal: null }));
    });
    child.ended.then(() => {
      child.over = true;
    });
  }

  /** Waits until the launched process listens. */
  async listening() {
    const began = Date.now();
    await until('the server listens', () => this.port !== null || this.child.over, kStartLimitMs, 2);
    check(!this.child.over, `the server ended while it started; see ${this.logFile}`);
    this.slowestStartMs = Math.max(this.slowestStartMs, Date.now() - began);
  }

  async start(...args) {
    this.launch(...args);
    await this.listening();
  }

  get pid() {
    return this.child.pid;
  }

  /** Kills it synchronously: this is called when a response has just been read. */
  kill() {
    this.stopping = true;
    process.kill(this.pid, 'SIGKILL');
  }

  /** Waits for the end of a process that was killed or asked to stop, and of the children that it had. */
  async gone() {
    const end = await this.child.ended;
    this.leftSession = this.pid;
    this.child = null;
    await until(
      `no process is left of the server that had pid ${this.leftSession}`,
      () => alive_in_session(this.leftSession).length === 0,
    );
    return end;
  }

  async kill_and_wait() {
    this.kill();
    const { signal } = await this.gone();
    check(signal === 'SIGKILL', `the server ended by itself (${signal}); see ${this.logFile}`);
  }

  /** Stops it with SIGTERM, and checks that it shuts down cleanly. */
  async stop() {
    this.stopping = true;
    process.kill(this.pid, 'SIGTERM');
    const { code, signal } = await this.gone();
    check(code === 0, `after SIGTERM the server ended with code ${code}, signal ${signal}`);
  }

  /** The errors in the log. */
  errors() {
    return fs.readFileSync(this.logFile, 'utf8').split('\n').filter((line) => line.includes('[error]'));
  }
}
