// What a worker kit does, as little of it as the benchmark needs: kept connections with one request at a time on
// each, a held registration, jobs accepted ahead of their handlers, and finishes that are sent together with
// all that gather while the last ones are under way.
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

  // Answers have a Content-Length, but for those of held connections, which #lines gets.
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

// Adds jobs with `data(n)`, n from 0 to count - 1, some at a time over several connections.
export async function addMany(address, type, count, data, { batch, connections }) {
  let next = 0;
  const adder = async () => {
    const connection = await Connection.open(address);
    while (next < count) {
      const jobs = [];
      for (const end = Math.min(next + batch, count); next < end; ++next) jobs.push(data === undefined ? {} : { data: data(next) });
      await connection.send('POST', `/_jobs/${type}/_bulk`, JSON.stringify({ jobs }));
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: connections }, adder));
}

// Registers a worker, by its heartbeats alone or, with `held`, by a connection, too: then it is gone when that closes.
// It is gone in any case when no heartbeat comes for `timeout` milliseconds.
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
  const timer = setInterval(async () => {
    if (underWay) return;
    underWay = true;
    try {
      await connection.ask('POST', `${path}/_heartbeat`, { incarnation: registration.incarnation });
    } catch (error) {
      if (error.status === 409) {
        registration.holding?.close();
        registration = await enter(); // evicted meanwhile: its jobs are others'
      }
    }
    underWay = false;
  }, timeout / 3);
  const close = () => {
    clearInterval(timer);
    connection.close();
    registration.holding?.close();
  };
  return { close };
}

export class Worker {
  // `handler(job)` may be async. `limit` jobs are accepted at a time by each of `acceptors`. With `heartbeat`
  // (milliseconds) the worker is a member by its heartbeats, else by a held connection, too. `onOutcome` gets the answer
  // to each finish; without it a refused one is an error.
  constructor(address, type, handler, { limit = 1, acceptors = 1, finishers = 1, heartbeat, onOutcome } = {}) {
    Object.assign(this, { address, type, handler, limit, acceptors, finishers, heartbeat, onOutcome });
    this.id = `worker-${process.pid}-${++Worker.count}`;
  }

  static count = 0;

  async start() {
    this.held = await register(this.address, 'bench', this.id, { timeout: this.heartbeat, held: !this.heartbeat });
    this.accepting = await Promise.all(Array.from({ length: this.acceptors }, () => Connection.open(this.address)));
    this.free = await Promise.all(Array.from({ length: this.finishers }, () => Connection.open(this.address)));
    this.running = this.accepting.map((connection) => this.#accept(connection));
  }

  #done = []; // to be finished: {id, lock}
  #finishing = new Set();

  async #accept(connection) {
    const body = JSON.stringify({ limit: this.limit, timeout: 30000, worker: { role: 'bench', id: this.id } });
    while (!this.stopping) {
      let answer;
      try {
        answer = await connection.send('POST', `/_jobs/${this.type}/_accept`, body);
      } catch (error) {
        if (this.stopping) return;
        if (error.status !== 404) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100)); // until it is registered again
        continue;
      }
      await Promise.all(JSON.parse(answer).jobs.map((job) => this.#run(job)));
    }
  }

  async #run(job) {
    await this.handler(job);
    this.#done.push({ id: job.id, lock: job.lock });
    if (this.#done.length === 1) setImmediate(() => this.#flush());
  }

  // Sends what has gathered over a connection that is free; the others' end sends the rest.
  #flush() {
    const connection = this.#done.length && this.free.pop();
    if (!connection) return;
    const jobs = this.#done.splice(0, this.limit);
    const sent = connection.send('POST', `/_jobs/${this.type}/_finish`, JSON.stringify({ jobs })).then((answer) => {
      for (const one of JSON.parse(answer)) {
        if (this.onOutcome) this.onOutcome(one.error ?? 'finished');
        else if (one.error) throw new Error(JSON.stringify(one));
      }
      this.#finishing.delete(sent);
      this.free.push(connection);
      this.#flush();
    });
    this.#finishing.add(sent);
    this.#flush();
  }

  // Ends when the server has answered the finishes of all jobs whose handlers have ended.
  async stop() {
    this.stopping = true;
    await new Promise(setImmediate);
    while (this.#finishing.size) await Promise.all(this.#finishing);
    for (const connection of [this.held, ...this.accepting, ...this.free]) connection.close();
  }
}
