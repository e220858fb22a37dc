// beanstalkd with its log: -f0 syncs at each write of it, -f50 at most every 50 ms. It has no batches: the fastest way is
// to have many commands under way on several connections.
import { execFileSync } from 'node:child_process';

import { cpu } from '../../support/cpu.mjs';
import { Beanstalk } from '../beanstalk_client.mjs';
import { Instance } from '../instance.mjs';

const FAST = { connections: 8, window: 50 };

class Beanstalkd {
  constructor(flush) {
    this.flush = flush;
    this.name = `beanstalkd -f${flush}`;
    this.durable = flush === 0;
    this.settings = `${FAST.connections} connections, ${FAST.window} commands under way on each`;
  }

  async start() {
    this.instance = new Instance(`beanstalkd-f${this.flush}`, 'beanstalkd');
    const { data } = this.instance;
    await this.instance.start('/usr/bin/beanstalkd', (port) => ['-l', '127.0.0.1', '-p', String(port), '-b', data, `-f${this.flush}`]);
    this.pid = this.instance.pid;
    this.address = this.instance.port;
    this.version = execFileSync('/usr/bin/beanstalkd', ['-v'], { encoding: 'utf8' }).trim().replace('beanstalkd ', '');
  }

  stop() {
    return this.instance.stop();
  }

  cpuSeconds() {
    return cpu(this.pid).all;
  }

  async prepare() {}

  // `step(client, n)` for n jobs, a window of them at a time, on several connections.
  async #windows(queue, count, step) {
    let begun = 0;
    const run = async () => {
      const client = await Beanstalk.connect(this.address);
      await client.tube(queue);
      while (begun < count) {
        const size = Math.min(FAST.window, count - begun);
        begun += size;
        await step(client, size);
      }
      client.close();
    };
    await Promise.all(Array.from({ length: FAST.connections }, run));
  }

  add(queue, count) {
    return this.#windows(queue, count, async (client, size) => {
      client.cork();
      const puts = Array.from({ length: size }, () => client.put('{}'));
      client.uncork();
      await Promise.all(puts);
    });
  }

  work(queue, count) {
    return this.#windows(queue, count, async (client, size) => {
      client.cork();
      const reserves = Array.from({ length: size }, () => client.reserve());
      client.uncork();
      const jobs = await Promise.all(reserves);
      client.cork();
      const deletes = jobs.map(({ id }) => client.delete(id));
      client.uncork();
      for (const answer of await Promise.all(deletes)) if (answer !== 'DELETED') throw new Error(`delete: ${answer}`);
    });
  }
}

export const create = [() => new Beanstalkd(0), () => new Beanstalkd(50)];
