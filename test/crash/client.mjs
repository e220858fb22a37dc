// Sends requests, and reports those without a response.
//
// Node's fetch() may send a request a second time when a connection breaks; a test that counts acknowledged
// writes must know that each was sent once. node:http does that.
import http from 'node:http';

/** There is no complete response: the request was executed or not. */
export class Lost extends Error {}

/** Divan has violated a guarantee. */
export class Violation extends Error {}

export function check(condition, words) {
  if (!condition) throw new Violation(typeof words === 'function' ? words() : words);
}

const kAnswerLimitMs = 120_000;

/** One connection after the other to a server that is restarted. */
export class Client {
  /** `server`: an object with the present `port` and `credentials`. */
  constructor(server) {
    this.server = server;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  }

  /** Forgets connections to a server that is gone. */
  close() {
    this.agent.destroy();
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  }

  options(method, path) {
    const auth = this.server.credentials;
    return { host: '127.0.0.1', port: this.server.port, method, path, auth, agent: this.agent };
  }

  /** Sends once and returns {status, text}; throws Lost if there is no complete response. */
  send(method, path, body) {
    return new Promise((resolve, reject) => {
      const lost = (why) => reject(new Lost(`${method} ${path}: ${why}`));
      const request = http.request(this.options(method, path), (response) => {
        const pieces = [];
        response.on('data', (piece) => pieces.push(piece));
        response.on('end', () => {
          if (!response.complete) return lost('the answer was cut off');
          resolve({ status: response.statusCode, text: Buffer.concat(pieces).toString() });
        });
        response.on('error', (error) => lost(error.message));
      });
      request.setTimeout(kAnswerLimitMs, () => {
        reject(new Violation(`${method} ${path} got no response within ${kAnswerLimitMs / 1000} s`));
        request.destroy();
      });
      request.on('error', (error) => lost(error.message));
      if (body !== undefined) request.setHeader('Content-Type', 'application/json');
      request.end(body);
    });
  }

  /**
   * Returns {status, json}. A status that is not among `expected` is a fault of the server, except 503 while it
   * stops.
   */
  async call(method, path, body, expected = [200, 201, 202]) {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await this.send(method, path, text);
    if (answer.status === 503 && this.server.stopping) throw new Lost(`${method} ${path}: 503`);
    check(expected.includes(answer.status), () =>
      `${method} ${path} was answered ${answer.status} ${answer.text.slice(0, 300)}`);
    return { status: answer.status, json: answer.text === '' ? null : JSON.parse(answer.text) };
  }

  async get(path) {
    return (await this.call('GET', path, undefined, [200])).json;
  }

  /**
   * A feed: calls `row` with each line of JSON until the connection ends. `opened` is called with a
   * function that cuts it. `parse` replaces the parser of lines.
   */
  lines(method, path, body, row, opened, { headers = {}, parse = JSON.parse } = {}) {
    return new Promise((resolve, reject) => {
      let rest = '';
      const request = http.request({ ...this.options(method, path), headers, agent: false }, (response) => {
        if (response.statusCode >= 400) {
          response.resume();
          return reject(new Violation(`${method} ${path} was answered ${response.statusCode}`));
        }
        response.setEncoding('utf8');
        response.on('data', (piece) => {
          const lines = (rest + piece).split('\n');
          rest = lines.pop();
          try {
            for (const line of lines) if (line !== '') row(parse(line));
          } catch (error) {
            reject(error);
            request.destroy();
          }
        });
        response.on('close', resolve);
        response.on('error', () => resolve());
      });
      request.on('error', () => resolve());
      opened(() => request.destroy());
      if (body !== undefined) request.setHeader('Content-Type', 'application/json');
      request.end(body);
    });
  }
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for a condition; the limit only ends a wait that would hang. */
export async function until(words, condition, limitMs = 120_000, pauseMs = 20) {
  const end = Date.now() + limitMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    check(Date.now() < end, () => `Waited ${limitMs / 1000} s without success: ${words}`);
    await sleep(pauseMs);
  }
}
