// beanstalkd with its log: -f0 syncs at each write of it, -f50 at most every 50 ms. It has no batches:
// pipelining on several connections is fastest.
import { execFileSync } from 'node:child_process';

import { cpu } from '../../support/cpu.mjs';
import { Beanstalk } from '../beanstalk_client.mjs';
import { Instance } from '../instance.mjs';

const FAST = { connections: 8, window: 50 };

class Beanstalkd {
  constructor(flush) {
    this.flush = flush;
    this.name = `beanstalkd -f${flush}`;
    this.module = 'beanstalkd';
    this.fast = FAST;
    this.rescues = [{ name: 'time to run 1 s (the least)', job: { ttr: 1 }, options: {} }];
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

  // `options` are the job's: beanstalkd's workers have no settings.
  async adder(queue, options) {
    const client = await Beanstalk.connect(this.address);
    await client.tube(queue);
    return { add: (data) => client.put(JSON.stringify(data), options), close: () => client.close() };
  }

  worker(queue, handler, options) {
    return startWorker(this.address, queue, handler, options);
  }

  async hasEnded(queue) {
    const client = await Beanstalk.connect(this.address);
    const { data } = await client.command(`stats-tube ${queue}`);
    client.close();
    return /cmd-delete: [1-9]/.test(data);
  }
}

// Reserves and deletes a window of jobs at a time on each connection.
export async function startWorker(address, queue, handler, { connections = 1, window = 1, onOutcome } = {}) {
  let stopping = false;
  const run = async (client) => {
    while (!stopping) {
      const jobs = await client.reserve(window);
      client.cork();
      setImmediate(() => client.uncork());
      await Promise.all(jobs.map(async (job) => {
        await handler(JSON.parse(job.data));
        const answer = await client.delete(job.id);
        if (answer === 'DELETED') onOutcome?.('finished');
        else if (onOutcome) onOutcome(answer);
        else throw new Error(`delete: ${answer}`);
      }));
    }
  };
  const clients = await Promise.all(Array.from({ length: connections }, () => Beanstalk.connect(address)));
  for (const client of clients) await client.tube(queue);
  clients.forEach(run);
  const stop = async () => {
    stopping = true;
    for (const client of clients) await client.settled();
    for (const client of clients) client.close();
  };
  return { stop };
}

export const create = [() => new Beanstalkd(0), () => new Beanstalkd(50)];
