// graphile-worker in the fastest configuration that its documentation describes (docs/performance: local queue and batched
// completes), and in its default one.
import { readFileSync } from 'node:fs';

import { Logger, makeWorkerUtils, run } from 'graphile-worker';

import { Postgres } from './postgres.mjs';

const FAST = { concurrentJobs: 24, maxPoolSize: 10, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const ADD = { batch: 1000, connections: 4 };
const logger = new Logger(() => () => {});
const { version } = JSON.parse(readFileSync(new URL('../../node_modules/graphile-worker/package.json', import.meta.url)));

class Graphile {
  name = 'graphile-worker';
  durable = true;
  settings = `addJobs of ${ADD.batch}, ${ADD.connections} at a time; ${JSON.stringify(FAST)}`;

  async start() {
    this.postgres = new Postgres();
    await this.postgres.start('graphile');
    this.pid = this.postgres.pid;
    this.address = this.postgres.url;
    this.version = `${version} on PostgreSQL ${this.postgres.version}`;
    this.utils = await makeWorkerUtils({ connectionString: this.address, logger });
    await this.utils.migrate();
  }

  async stop() {
    await this.utils.release();
    await this.postgres.stop();
  }

  cpuSeconds() {
    return this.postgres.cpuSeconds();
  }

  async prepare() {}

  async add(queue, count) {
    let next = 0;
    const adder = async () => {
      while (next < count) {
        const size = Math.min(ADD.batch, count - next);
        next += size;
        await this.utils.addJobs(Array.from({ length: size }, () => ({ identifier: queue, payload: {} })));
      }
    };
    await Promise.all(Array.from({ length: ADD.connections }, adder));
  }

  work(queue, count) {
    return this.#work(queue, count, { preset: { worker: FAST } });
  }

  async #work(queue, count, options) {
    let ran = 0;
    let done;
    const all = new Promise((resolve) => (done = resolve));
    const task = async () => {
      if (++ran === count) done();
    };
    const runner = await run({ connectionString: this.address, logger, noHandleSignals: true, taskList: { [queue]: task }, ...options });
    await all;
    await runner.stop(); // sends the completes that wait
    const [{ left }] = await this.postgres.query('select count(*)::int as left from graphile_worker.jobs');
    if (left !== 0) throw new Error(`graphile-worker left ${left} jobs`);
  }
}

export const create = [() => new Graphile()];
