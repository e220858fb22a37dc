// pg-boss in its fastest documented configuration (batches, which succeed or fail together) and in its default one.
import { readFileSync } from 'node:fs';

import { PgBoss } from 'pg-boss';

import { ADD, inBatches } from '../batches.mjs';
import { Postgres } from './postgres.mjs';

const FAST = { batchSize: 500, localConcurrency: 4, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
const SUPERVISED = { boss: { superviseIntervalSeconds: 1, monitorIntervalSeconds: 1 }, pollingIntervalSeconds: 0.5 };
const { version } = JSON.parse(readFileSync(new URL('../../node_modules/pg-boss/package.json', import.meta.url)));

class Boss {
  name = 'pg-boss';
  module = 'pgboss';
  durable = true;
  fast = FAST;
  idle = [
    { name: 'default, polls every 2 s', options: {}, samples: 5 },
    { name: 'LISTEN', queue: { notify: true }, options: { boss: { useListenNotify: true } } },
  ];
  rescues = [
    { name: 'default', options: {} },
    { name: 'heartbeatSeconds 10, supervised every second', queue: { heartbeatSeconds: 10 }, options: SUPERVISED },
    { name: 'expireInSeconds 2 (no job may take longer), supervised every second', queue: { expireInSeconds: 2 }, options: SUPERVISED },
  ];
  settings = `insert of ${ADD.batch}, ${ADD.connections} at a time; ${JSON.stringify(FAST)}`;

  async start() {
    this.postgres = new Postgres();
    await this.postgres.start('pgboss');
    this.pid = this.postgres.pid;
    this.address = this.postgres.url;
    this.version = `${version} on PostgreSQL ${this.postgres.version}`;
    this.boss = await connect(this.address);
  }

  async stop() {
    await this.boss.stop({ graceful: false, close: true });
    await this.postgres.stop();
  }

  cpuSeconds() {
    return this.postgres.cpuSeconds();
  }

  async prepare(queue, options) {
    await this.boss.createQueue(queue, options);
  }

  async add(queue, count) {
    await inBatches(count, (size) => this.boss.insert(queue, Array.from({ length: size }, () => ({ data: {} }))));
  }

  async adder(queue) {
    return { add: (data) => this.boss.send(queue, data), close() {} };
  }

  worker(queue, handler, options) {
    return startWorker(this.address, queue, handler, options);
  }

  async hasEnded(queue) {
    const rows = await this.postgres.query("select 1 from pgboss.job where name = $1 and state = 'completed'", [queue]);
    return rows.length > 0;
  }
}

async function connect(address, options = {}) {
  const boss = new PgBoss({ connectionString: address, ...options });
  boss.on('error', (error) => console.error(`  pg-boss: ${error.message}`));
  await boss.start();
  return boss;
}

// A rejected finish is not reported.
export async function startWorker(address, queue, handler, { boss: bossOptions, onOutcome, ...options } = {}) {
  const boss = await connect(address, bossOptions);
  await boss.work(queue, options, (jobs) => Promise.all(jobs.map((job) => handler(job.data))));
  const stop = async () => {
    await boss.offWork(queue, { wait: true }); // until the last completes are committed
    await boss.stop({ graceful: false, close: true });
  };
  return { stop };
}

export const create = [() => new Boss()];
