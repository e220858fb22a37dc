// Divan over HTTP, every answered request synced.
import { execFileSync } from 'node:child_process';

import { cpu } from '../../support/cpu.mjs';
import { Server } from '../../support/server.mjs';
import { addMany, Connection, Worker } from '../divan_client.mjs';

const FAST = { batch: 1000, connections: 4, limit: 500, acceptors: 4, finishers: 4 };

class Divan {
  name = 'Divan';
  durable = true;
  settings = `_bulk of ${FAST.batch} over ${FAST.connections} connections; _hold, ${FAST.acceptors} × _accept of ${FAST.limit}, _finish of up to ${FAST.limit} over ${FAST.finishers}`;

  async start() {
    this.server = await Server.start('jobs');
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
  async prepare(queue) {
    await this.server.ask('PUT', `/_jobs/${queue}`, {});
  }

  add(queue, count) {
    return addMany(this.address, queue, count, undefined, FAST);
  }

  async work(queue, count) {
    const worker = new Worker(this.address, queue, () => {}, FAST);
    await worker.start();
    await worker.finishedCount(count);
    worker.stop();
  }
}

export const create = [() => new Divan()];
