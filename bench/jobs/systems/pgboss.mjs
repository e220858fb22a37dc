// pg-boss in its fastest documented configuration (batches, which succeed or fail together) and in its default one.
import { readFileSync } from 'node:fs';

import { PgBoss } from 'pg-boss';

import { Postgres } from './postgres.mjs';

const FAST = { batchSize: 500, localConcurrency: 4, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
const ADD = { batch: 1000, connections: 4 };
const { version } = JSON.parse(readFileSync(new URL('../../node_modules/pg-boss/package.json', import.meta.url)));

class Boss {
  name = 'pg-boss';
  durable = true;
  settings = `insert of ${ADD.batch}, ${ADD.connections} at a time; ${JSON.stringify(FAST)}`;

  async start() {
    this.postgres = new Postgres();
    await this.postgres.start('pgboss');
    this.pid = this.postgres.pid;
    this.address = this.postgres.url;
    this.version = `${version} on PostgreSQL ${this.postgres.version}`;
    this.boss = await this.connect();
  }

  async connect(options = {}) {
    const boss = new PgBoss({ connectionString: this.address, ...options });
    boss.on('error', (error) => console.error(`  pg-boss: ${error.message}`));
    await boss.start();
    return boss;
  }

  async stop() {
    await this.boss.stop({ graceful: false, close: true });
    await this.postgres.stop();
  }

  cpuSeconds() {
    return this.postgres.cpuSeconds();
  }

  async prepare(queue) {
    await this.boss.createQueue(queue);
  }

  async add(queue, count) {
    let next = 0;
    const adder = async () => {
      while (next < count) {
        const size = Math.min(ADD.batch, count - next);
        next += size;
        await this.boss.insert(queue, Array.from({ length: size }, () => ({ data: {} })));
      }
    };
    await Promise.all(Array.from({ length: ADD.connections }, adder));
  }

  work(queue, count) {
    return this.#work(queue, count, FAST);
  }

  async #work(queue, count, options) {
    let ran = 0;
    let done;
    const all = new Promise((resolve) => (done = resolve));
    await this.boss.work(queue, options, async (jobs) => {
      ran += jobs.length;
      if (ran >= count) done();
    });
    await all;
    await this.boss.offWork(queue, { wait: true }); // until the last completes are there
    const [{ left }] = await this.postgres.query("select count(*)::int as left from pgboss.job where name = $1 and state < 'completed'", [queue]);
    if (left !== 0) throw new Error(`pg-boss left ${left} jobs`);
  }
}

export const create = [() => new Boss()];
