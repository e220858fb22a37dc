// Private instances of other servers: on a free port of the loopback, on a data directory of their own, run
// as the account of their package (they refuse root), ended by process id.
import { execFileSync, spawn } from 'node:child_process';
import { chownSync, mkdirSync, rmSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';

const WORK = 'build/bench';

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

// Resolves when the port has a listener.
export async function listens(port, child) {
  while (child.exitCode === null) {
    const open = await new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1');
      socket.once('connect', () => resolve(true) || socket.destroy());
      socket.once('error', () => resolve(false));
    });
    if (open) return;
    await pause(20);
  }
  throw new Error(`${child.spawnfile} ended with ${child.exitCode}`);
}

// The account that runs a server; {}: the current user.
function account(name) {
  if (process.getuid() !== 0) return {};
  const id = (flag) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

// Removes servers, workers and data of a benchmark that fails or is interrupted.
const children = new Map();
process.on('exit', () => {
  for (const [child, data] of children) {
    child.kill('SIGKILL');
    if (data) rmSync(data, { recursive: true, force: true, maxRetries: 5 });
  }
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

export function endWithUs(child, data) {
  children.set(child, data);
  child.once('exit', () => children.delete(child));
}

export class Instance {
  // An empty data directory for `name`, owned by `user`.
  constructor(name, user) {
    this.account = account(user);
    this.data = path.resolve(WORK, `data-${name}-${process.pid}`); // unique per run
    rmSync(this.data, { recursive: true, force: true });
    mkdirSync(this.data, { recursive: true, mode: 0o700 });
    if (this.account.uid !== undefined) chownSync(this.data, this.account.uid, this.account.gid);
  }

  run(command, args) {
    return execFileSync(command, args, { ...this.account, cwd: this.data, encoding: 'utf8' });
  }

  // `args` gets the port.
  async start(command, args) {
    this.port = await freePort();
    this.process = spawn(command, args(this.port), { ...this.account, cwd: this.data, stdio: 'ignore' });
    endWithUs(this.process, this.data);
    this.pid = this.process.pid;
    this.ended = new Promise((resolve) => this.process.once('exit', resolve));
    await listens(this.port, this.process);
  }

  async stop(signal = 'SIGTERM') {
    this.process.kill(signal);
    await this.ended;
    rmSync(this.data, { recursive: true, force: true });
  }
}
