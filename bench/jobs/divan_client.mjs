// A client for the benchmark in addition to the kit: keep-alive connections with one request at a time, and a
// worker that can run without a held connection.
import net from 'node:net';

export class Connection {
  static async open({ url, authorization }) {
    const connection = new Connection();
    const { hostname, port } = new URL(url);
    connection.head = `Host: ${hostname}\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
    connection.socket = net.connect(Number(port), hostname);
    connection.socket.setEncoding('latin1');
    connection.socket.setNoDelay(true);
    await new Promise((resolve, reject) => connection.socket.once('connect', resolve).once('error', reject));
    connection.socket.on('data', (text) => connection.#take(text));
    connection.socket.on('error', (error) => connection.reject?.(error));
    connection.socket.on('close', () => connection.reject?.(new Error('The server closed the connection.')));
    return connection;
  }

  #pieces = [];
  #missing = 0; // characters of the body; 0: the head is not complete

  // Responses have a Content-Length, except those of held connections, which #lines handles.
  #take(text) {
    if (this.onLine) return this.onLine(text);
    this.#pieces.push(text);
    if (this.#missing) {
      this.#missing -= text.length;
    } else {
      const all = this.#pieces.join('');
      this.#pieces = [all];
      const end = all.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = all.slice(0, end);
      this.status = Number(head.slice(9, 12));
      const length = /\r\ncontent-length: (\d+)/i.exec(head);
      if (!length) return this.resolve(all.slice(end + 4));
      this.#pieces = [all.slice(end + 4)];
      this.#missing = Number(length[1]) - this.#pieces[0].length;
    }
    if (this.#missing > 0) return;
    const body = this.#pieces.join('');
    this.#pieces = [];
    this.#missing = 0;
    const { resolve, reject, what } = this;
    this.resolve = this.reject = undefined;
    if (this.status < 400) resolve(body);
    else reject(Object.assign(new Error(`${what}: ${this.status} ${body}`), { status: this.status, body }));
  }

  // Bodies and answers are ASCII.
  send(method, path, body = '') {
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
      this.what = `${method} ${path}`;
      this.socket.write(`${method} ${path} HTTP/1.1\r\n${this.head}Content-Length: ${body.length}\r\n\r\n${body}`);
    });
  }

  async ask(method, path, body) {
    return JSON.parse(await this.send(method, path, body === undefined ? '' : JSON.stringify(body)));
  }

  close() {
    this.reject = undefined;
    this.socket.destroy();
  }
}

// Registers a worker, by its heartbeats alone or, with `held`, by a connection, too: then it ends when that
// closes. It is also evicted after `timeout` milliseconds without a heartbeat. Runs until this process ends.
export async function register(address, role, id, { timeout = 15000, held = false } = {}) {
  const path = `/_workers/${role}/${id}`;
  const connection = await Connection.open(address);
  const enter = async () => {
    if (!held) return { incarnation: (await connection.ask('PUT', path, { timeout })).incarnation };
    const holding = await Connection.open(address);
    const text = await holding.send('POST', `${path}/_hold`, JSON.stringify({ timeout }));
    if (holding.status !== 200) throw new Error(text);
    holding.onLine = () => {};
    // The head and the first line may come in one piece or in two, in chunks.
    const { incarnation } = await connection.ask('GET', path);
    return { incarnation, holding };
  };
  let registration = await enter();
  let underWay = false;
  setInterval(async () => {
    if (underWay) return;
    underWay = true;
    try {
      await connection.ask('POST', `${path}/_heartbeat`, { incarnation: registration.incarnation });
    } catch (error) {
      if (error.status === 409) {
        registration.holding?.close();
        registration = await enter(); // evicted meanwhile: its jobs were reclaimed
      }
    }
    underWay = false;
  }, timeout / 3);
}

// Runs one job at a time. With `heartbeat` (milliseconds) it is registered by heartbeats only, else by a held
// connection, too. `onOutcome` gets the response to each finish.
export class Worker {
  constructor(address, type, handler, { heartbeat, onOutcome }) {
    Object.assign(this, { address, type, handler, heartbeat, onOutcome });
    this.id = `worker-${process.pid}`;
  }

  async start() {
    await register(this.address, 'bench', this.id, { timeout: this.heartbeat, held: !this.heartbeat });
    this.#work(await Connection.open(this.address));
  }

  async #work(connection) {
    const body = { timeout: 30000, worker: { role: 'bench', id: this.id } };
    for (;;) {
      let jobs;
      try {
        ({ jobs } = await connection.ask('POST', `/_jobs/${this.type}/_accept`, body));
      } catch (error) {
        if (error.status !== 404) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100)); // until it is registered again
        continue;
      }
      for (const { id, lock, data } of jobs) {
        await this.handler({ data });
        const [answer] = await connection.ask('POST', `/_jobs/${this.type}/_finish`, { jobs: [{ id, lock }] });
        this.onOutcome(answer.error ?? 'finished');
      }
    }
  }
}
