// Divan over HTTP, every answered request synced.
import { execFileSync } from 'node:child_process';

import { cpu } from '../../support/cpu.mjs';
import { Server } from '../../support/server.mjs';
import { addMany, Connection, Worker } from '../divan_client.mjs';
import { endWithUs } from '../instance.mjs';

const FAST = { batch: 1000, connections: 4, limit: 500, acceptors: 4, finishers: 4 };

let started = 0;

class Divan {
  name = 'Divan';
  module = 'divan';
  durable = true;
  fast = FAST;
  // The aims, in seconds: 0.1 when a connection breaks; the timeout and one second else.
  rescues = [
    { name: 'held connection (default)', options: {}, most: { SIGKILL: 0.1, SIGSTOP: 16 } },
    { name: 'heartbeats, 15 s (default)', options: { heartbeat: 15000 }, most: { SIGKILL: 16, SIGSTOP: 16 } },
    { name: 'heartbeats, 1 s', options: { heartbeat: 1000 }, most: { SIGKILL: 2, SIGSTOP: 2 } },
  ];
  settings = `_bulk of ${FAST.batch} over ${FAST.connections} connections; _hold, ${FAST.acceptors} × _accept of ${FAST.limit}, _finish of up to ${FAST.limit} over ${FAST.finishers}`;

  async start() {
    this.server = await Server.start(`jobs-${++started}-${process.pid}`);
    endWithUs(this.server.process, this.server.data);
    this.pid = this.server.pid;
    this.address = { url: this.server.url, authorization: this.server.authorization };
    this.version = execFileSync('build/release/divan', ['--version'], { encoding: 'utf8' }).trim();
  }

  stop() {
    return this.server.stop();
  }

  cpuSeconds() {
    return cpu(this.pid).all;
  }

  async counters() {
    const read = async (name) => [name, await this.server.metric(`divan_store_${name}_total`)];
    return Object.fromEntries(await Promise.all(['commits', 'commit_groups', 'conflicts'].map(read)));
  }

  // A queue without jobs.
  async prepare(queue, settings = {}) {
    await this.server.ask('PUT', `/_jobs/${queue}`, settings);
  }

  add(queue, count) {
    return addMany(this.address, queue, count, undefined, FAST);
  }

  // Adds one at a time; `add(data)` answers when it is there.
  async adder(queue) {
    const connection = await Connection.open(this.address);
    return {
      add: (data) => connection.ask('POST', `/_jobs/${queue}`, { data }),
      close: () => connection.close(),
    };
  }

  worker(queue, handler, options) {
    return startWorker(this.address, queue, handler, options);
  }

  // Whether a job of the queue has been finished.
  async hasEnded(queue) {
    return (await this.server.ask('GET', `/_jobs/${queue}/_list?state=finished`)).jobs.length > 0;
  }
}

export async function startWorker(address, queue, handler, options) {
  const worker = new Worker(address, queue, (job) => handler(job.data), options);
  await worker.start();
  return worker;
}

export const create = [() => new Divan()];
