// beanstalkd's protocol, with pipelining: any number of commands may be pending on a connection, and
// responses are in order.
import net from 'node:net';

export class Beanstalk {
  static async connect(port) {
    const client = new Beanstalk();
    client.socket = net.connect(port, '127.0.0.1');
    client.socket.setEncoding('latin1');
    client.socket.setNoDelay(true);
    await new Promise((resolve, reject) => client.socket.once('connect', resolve).once('error', reject));
    client.socket.on('data', (text) => client.#take(text));
    return client;
  }

  deletes = 0;
  #waiting = [];
  #text = '';

  #take(text) {
    this.#text += text;
    let at = 0;
    for (;;) {
      const end = this.#text.indexOf('\r\n', at);
      if (end < 0) break;
      const words = this.#text.slice(at, end).split(' ');
      let next = end + 2;
      let data;
      if (words[0] === 'RESERVED' || words[0] === 'OK') {
        const length = Number(words.at(-1));
        if (this.#text.length < next + length + 2) break;
        data = this.#text.slice(next, next + length);
        next += length + 2;
      }
      at = next;
      this.#waiting.shift()({ words, data });
    }
    this.#text = this.#text.slice(at);
  }

  command(line) {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.socket.write(line + '\r\n');
    });
  }

  async put(data, { ttr = 120 } = {}) {
    const { words } = await this.command(`put 0 0 ${ttr} ${data.length}\r\n${data}`);
    if (words[0] !== 'INSERTED') throw new Error(`put: ${words.join(' ')}`);
    return words[1];
  }

  // Waits for a job, and reserves up to `limit` of those that are ready then.
  async reserve(limit = 1) {
    this.socket.cork();
    const answers = [this.command('reserve')];
    while (answers.length < limit) answers.push(this.command('reserve-with-timeout 0'));
    this.socket.uncork();
    const jobs = [];
    for (const { words, data } of await Promise.all(answers)) {
      if (words[0] === 'RESERVED') jobs.push({ id: words[1], data });
      else if (words[0] !== 'TIMED_OUT') throw new Error(`reserve: ${words.join(' ')}`);
    }
    return jobs;
  }

  // The first word of the response: DELETED or NOT_FOUND.
  async delete(id) {
    ++this.deletes;
    const { words } = await this.command(`delete ${id}`);
    --this.deletes;
    return words[0];
  }

  async tube(name) {
    await this.command(`use ${name}`);
    await this.command(`watch ${name}`);
    await this.command('ignore default');
  }

  // Resolves when the pending deletes have completed.
  async settled() {
    while (this.deletes) await new Promise(setImmediate);
  }

  // Sends what is written between these two in one piece.
  cork() {
    this.socket.cork();
  }
  uncork() {
    this.socket.uncork();
  }

  close() {
    this.socket.destroy();
  }
}
