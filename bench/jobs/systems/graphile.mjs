// graphile-worker in the fastest configuration that its documentation describes (docs/performance: local queue and batched
// completes), and in its default one.
import { readFileSync } from 'node:fs';

import { Logger, makeWorkerUtils, run } from 'graphile-worker';

import { ADD, inBatches } from '../batches.mjs';
import { Postgres } from './postgres.mjs';

const FAST = { concurrentJobs: 24, maxPoolSize: 10, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const logger = new Logger(() => () => {});
const { version } = JSON.parse(readFileSync(new URL('../../node_modules/graphile-worker/package.json', import.meta.url)));

class Graphile {
  name = 'graphile-worker';
  module = 'graphile';
  durable = true;
  fast = FAST;
  // Its timeout of four hours is fixed; only the interval of its checks can be set (8 to 10 minutes).
  rescues = [{ name: 'polls every second', options: { minResetLockedInterval: 1000, maxResetLockedInterval: 1000 } }];
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
    await inBatches(count, (size) => this.utils.addJobs(Array.from({ length: size }, () => ({ identifier: queue, payload: {} }))));
  }

  async adder(queue) {
    return { add: (data) => this.utils.addJob(queue, data), close() {} };
  }

  worker(queue, handler, options) {
    return startWorker(this.address, queue, handler, options);
  }

  // Jobs that have ended are deleted.
  async hasEnded(queue) {
    return (await this.postgres.query('select 1 from graphile_worker.jobs where task_identifier = $1', [queue])).length === 0;
  }

  // Simulates that the fixed four hours have passed.
  async age() {
    await this.postgres.query("update graphile_worker._private_jobs set locked_at = locked_at - interval '5 hours'");
    await this.postgres.query("update graphile_worker._private_job_queues set locked_at = locked_at - interval '5 hours'");
  }
}

export async function startWorker(address, queue, handler, { onOutcome, ...worker } = {}) {
  const preset = { worker };
  const runner = await run({ connectionString: address, logger, noHandleSignals: true, taskList: { [queue]: handler }, preset });
  runner.events.on('job:success', () => onOutcome?.('finished'));
  runner.events.on('job:error', ({ error }) => onOutcome?.(error.message));
  return runner; // its stop() sends the pending completes
}

export const create = [() => new Graphile()];
