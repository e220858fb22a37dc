// Divan over HTTP with its own worker kit, every answered request synced. Workers that will be killed or
// frozen are those of divan_client.mjs, which can run without a held connection.
import { execFileSync } from 'node:child_process';

import { Divan as Kit } from '../../../clients/js/index.mjs';
import { cpu } from '../../support/cpu.mjs';
import { Server } from '../../support/server.mjs';
import { inBatches } from '../batches.mjs';
import { Worker } from '../divan_client.mjs';
import { endWithUs } from '../instance.mjs';

const FAST = { concurrency: 1000 };

let started = 0;

class Divan {
  name = 'Divan';
  module = 'divan';
  durable = true;
  fast = FAST;
  // The targets in seconds: 0.1 if a connection breaks; otherwise the timeout plus one second.
  rescues = [
    { name: 'held connection (default)', options: {}, most: { SIGKILL: 0.1, SIGSTOP: 16 } },
    { name: 'heartbeats, 15 s (default)', options: { heartbeat: 15000 }, most: { SIGKILL: 16, SIGSTOP: 16 } },
    { name: 'heartbeats, 1 s', options: { heartbeat: 1000 }, most: { SIGKILL: 2, SIGSTOP: 2 } },
  ];
  settings = `the kit of clients/js: enqueueMany of 1000, 4 at a time; ${JSON.stringify(FAST)}`;

  // `settings` are environment variables.
  async start(settings = {}) {
    this.server = await Server.start(`jobs-${++started}-${process.pid}`, settings);
    endWithUs(this.server.process, this.server.data);
    this.pid = this.server.pid;
    this.address = { url: this.server.url, authorization: this.server.authorization };
    this.kit = new Kit(this.server.url.replace('//', `//admin:${this.server.password}@`));
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
    return inBatches(count, (batch) => this.kit.enqueueMany(queue, Array.from({ length: batch }, () => ({}))));
  }

  // Adds one at a time; `add(data)` resolves when the job is committed.
  async adder(queue) {
    return { add: (data) => this.kit.enqueue(queue, null, data), close: () => {} };
  }

  async worker(queue, handler, options) {
    const worker = this.kit.worker({ role: 'bench' });
    worker.handle(queue, (job) => handler(job.data), options);
    const online = new Promise((resolve) => worker.once('online', resolve));
    const ended = worker.run();
    await online;
    return { stop: () => Promise.all([worker.stop(), ended]) };
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
