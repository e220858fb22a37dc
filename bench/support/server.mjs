// A server on a fresh data directory, and requests to it.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import http from 'node:http';

const WORK = 'build/bench';

export class Server {
  #lastUse = 0;

  // Waits until the server listens. `settings` are environment variables.
  static async start(name, settings = {}) {
    const server = new Server();
    server.data = `${WORK}/data-${name}`;
    rmSync(server.data, { recursive: true, force: true });
    mkdirSync(WORK, { recursive: true });
    const password = (server.password = randomBytes(12).toString('hex'));
    server.authorization = 'Basic ' + Buffer.from(`admin:${password}`).toString('base64');
    server.process = spawn(
      'build/release/divan',
      ['serve', '--data-dir', server.data, '--port', '0', '--admin', `admin:${password}`],
      { env: { ...process.env, DIVAN_LOG_FILE: `${WORK}/${name}.log`, ...settings }, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    server.pid = server.process.pid;
    server.ended = new Promise((resolve) => server.process.once('exit', resolve));
    server.url = await firstMatch(server.process, /listens on (\S+)/);
    server.agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
    return server;
  }

  // Returns the body, parsed; throws for a status of 400 or more.
  async ask(method, path, body) {
    const text = await this.send(method, path, body === undefined ? undefined : JSON.stringify(body));
    return JSON.parse(text);
  }

  async send(method, path, body) {
    // The server closes connections without requests after two minutes, which the agent does not see while other programs run.
    if (performance.now() - this.#lastUse > 60_000) Object.values(this.agent.freeSockets).flat().forEach((socket) => socket.destroy());
    this.#lastUse = performance.now();
    return (await send(this, this.agent, method, path, body)).toString();
  }

  // The value of a metric without labels; undefined if the server has no such metric.
  async metric(name) {
    const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(await this.send('GET', '/_node/_local/_prometheus'));
    return found ? Number(found[1]) : undefined;
  }

  // Keeps its data.
  async end() {
    this.agent.destroy();
    this.process.kill('SIGTERM');
    await this.ended;
  }

  async stop() {
    await this.end();
    rmSync(this.data, { recursive: true, force: true });
  }
}

// Sends a request to a server, which has a `url` and may have an `authorization`. Resolves with the body, a buffer; rejects a
// status of 400 or more.
export function send(server, agent, method, path, body) {
  const headers = { Accept: 'application/json' };
  if (server.authorization) headers.Authorization = server.authorization;
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json';
    headers['Content-Length'] = Buffer.byteLength(body);
  }
  return new Promise((resolve, reject) => {
    const request = http.request(server.url + path, { method, headers, agent }, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        const bytes = Buffer.concat(parts);
        if (response.statusCode < 400) resolve(bytes);
        else reject(new Error(`${method} ${path}: ${response.statusCode} ${bytes}`));
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

// Resolves with the first group of the pattern's first match in what the process writes.
export function firstMatch(child, pattern) {
  return new Promise((resolve, reject) => {
    let out = '';
    child.stdout.on('data', (data) => {
      out += data;
      const match = out.match(pattern);
      if (match) resolve(match[1]);
    });
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${child.spawnfile} ended with ${code}: ${out}`)));
  });
}
