// A continuous feed on a plain socket, which costs the client so little that one process can hold ten thousand while
// it measures the server.
import net from 'node:net';

// A socket that has asked for `path` and whose answer has begun. `onText` gets every later piece of it, as text
// with HTTP's chunk sizes in it.
export function openFeed(server, path, onText = () => {}) {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(server.url);
    const socket = net.connect(Number(port), hostname);
    socket.setEncoding('latin1');
    socket.setNoDelay(true);
    socket.on('connect', () => {
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: ${server.authorization}\r\n\r\n`);
    });
    let begun = false;
    socket.on('data', (text) => {
      if (begun) return onText(text);
      begun = true;
      if (text.startsWith('HTTP/1.1 200')) resolve(socket);
      else reject(new Error(`GET ${path}: ${text}`));
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`GET ${path}: the connection ended before a response`)));
  });
}

// A kept connection for small requests, one after the other; returns the time at which the response arrived.
export class Requests {
  static async connect(server) {
    const requests = new Requests();
    const { hostname, port } = new URL(server.url);
    requests.head = `Host: ${hostname}\r\nAuthorization: ${server.authorization}\r\nContent-Type: application/json\r\n`;
    requests.socket = net.connect(Number(port), hostname);
    requests.socket.setEncoding('latin1');
    requests.socket.setNoDelay(true);
    await new Promise((resolve, reject) => requests.socket.once('connect', resolve).once('error', reject));
    requests.socket.on('data', (text) => requests.#take(text));
    return requests;
  }

  #text = '';

  // Responses must have a Content-Length.
  #take(text) {
    const now = performance.now();
    this.#text += text;
    const head = this.#text.indexOf('\r\n\r\n');
    if (head < 0) return;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(this.#text)[1]);
    if (this.#text.length < head + 4 + length) return;
    const answer = this.#text;
    this.#text = '';
    if (/^HTTP\/1.1 2/.test(answer)) this.resolve(now);
    else this.reject(new Error(answer));
  }

  send(method, path, body) {
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
      this.socket.write(`${method} ${path} HTTP/1.1\r\n${this.head}Content-Length: ${body.length}\r\n\r\n${body}`);
    });
  }

  close() {
    this.socket.destroy();
  }
}
