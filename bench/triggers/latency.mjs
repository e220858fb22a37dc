// From the request that writes a document until the handler of the job that its trigger adds begins, in the same process, with each
// system's own worker as it is by default. Quiet, one after the other, and while another process writes RATE documents a second that do not match.
import pg from 'pg';

import { pause } from '../jobs/instance.mjs';
import { Requests } from '../support/feed_socket.mjs';
import { figure, median, percentile } from '../support/figures.mjs';
import { Child, within } from './child.mjs';
import { createDatabase, createTable, createTrigger, withBoth } from './systems.mjs';

const SAMPLES = Number(process.env.DIVAN_BENCH_SAMPLES ?? 300);
const ROUNDS = Number(process.env.DIVAN_BENCH_ROUNDS ?? 3);
const RATE = 2000;
const QUEUE = 'latency';

const order = (n) => JSON.stringify({ kind: 'order', n, text: 'x'.repeat(180) });

// Returns what Side needs: `write(n)` writes document n, and `close()` ends the connection; `target` is for the load.
async function openDivan(divan) {
  await createDatabase(divan, 'latency', { selector: { kind: 'order' }, type: QUEUE, data: { n: '{n}' } });
  const requests = await Requests.connect(divan.server);
  return {
    write: (n) => requests.send('PUT', `/latency/order-${n}`, order(n)),
    close: () => requests.close(),
    target: { ...divan.address, database: 'latency' },
  };
}

async function openGraphile(graphile) {
  const data = (row) => `json_build_object('n', ${row}.doc->'n')`;
  await createTable(graphile, 'documents');
  await createTrigger(graphile, 'documents', { when: "new.doc->>'kind' = 'order'", task: QUEUE, data });
  const client = new pg.Client(graphile.address);
  await client.connect();
  const text = 'insert into documents (id, doc) values ($1, $2)';
  return {
    write: (n) => client.query({ name: 'insert', text, values: [`order-${n}`, order(n)] }),
    close: () => client.end(),
    target: { postgres: graphile.address, table: 'documents' },
  };
}

class Side {
  static async start(system, open) {
    const side = new Side();
    side.name = system.name;
    Object.assign(side, await open(system));
    side.worker = await system.worker(QUEUE, async ({ n }) => side.started(n), {});
    side.load = await Child.start('load.mjs', side.target, RATE);
    side.rounds = { quiet: [], busy: [] };
    side.rates = [];
    for (let n = 0; n < 5; ++n) await side.one(); // warms up
    return side;
  }

  #next = 0;

  // Milliseconds until the handler has begun, and until the write was answered.
  async one() {
    await pause(20 + Math.random() * 40);
    const n = this.#next++;
    const start = new Promise((resolve, reject) => {
      this.started = (got) => (got === n ? resolve(performance.now()) : reject(new Error(`The job of document ${got} came instead of ${n}.`)));
    });
    const before = performance.now();
    const answer = this.write(n).then(() => performance.now());
    const [began, answered] = await within(30, Promise.all([start, answer]), `${this.name}: a job`);
    return { all: began - before, write: answered - before };
  }

  async #samples() {
    const samples = [];
    for (let n = 0; n < Math.ceil(SAMPLES / ROUNDS); ++n) samples.push(await this.one());
    return samples;
  }

  async quiet() {
    this.rounds.quiet.push(await this.#samples());
  }

  async busy() {
    await this.load.ask('start');
    await pause(1000); // until the rate is constant
    this.rounds.busy.push(await this.#samples());
    const { written, seconds } = await this.load.ask('stop');
    this.rates.push(written / seconds);
    await pause(500);
  }

  // The statistic of each round.
  each(kind, statistic) {
    return this.rounds[kind].map((samples) => statistic(samples.map(({ all }) => all)));
  }

  // The statistic of all rounds' samples.
  all(kind, statistic, field = 'all') {
    return statistic(this.rounds[kind].flat().map((sample) => sample[field]));
  }

  async stop() {
    await this.load.stop();
    await this.worker.stop();
    await this.close();
  }
}

const STATISTICS = { median, '99 %': (times) => percentile(times, 0.99) };
const KINDS = { quiet: 'quiet', busy: `beside ${RATE} writes/s` };

function figures(divan, graphile) {
  const ratios = [];
  const times = [];
  for (const [kind, title] of Object.entries(KINDS)) {
    for (const [name, statistic] of Object.entries(STATISTICS)) {
      // A round has too few samples for a 99th percentile of its own, which is only shown as the range.
      const of = divan.each(kind, statistic).map((time, i) => time / graphile.each(kind, statistic)[i]);
      const ratio = name === 'median' ? median(of) : divan.all(kind, statistic) / graphile.all(kind, statistic);
      ratios.push(figure(`triggers: write to start of the job, ${title}, ${name}, to graphile-worker`, ratio, '× time', { most: 1, of }));
      for (const side of [divan, graphile]) {
        times.push(figure(`triggers: ${side.name}, write to start, ${title}, ${name}`, side.all(kind, statistic), 'ms', { of: side.each(kind, statistic) }));
      }
    }
    for (const side of [divan, graphile]) {
      const at = (field) => [0.5, 0.9, 0.99].map((share) => side.all(kind, (times) => percentile(times, share), field).toFixed(2)).join(', ');
      console.error(`  ${side.name}, ${title}: median, p90, p99: ${at('all')} ms; until the write was answered ${at('write')} ms`);
    }
  }
  const rates = [divan, graphile].map(({ name, rates }) => figure(`triggers: ${name}, writes beside it`, median(rates), 'documents/s', { of: rates }));
  return [...ratios, ...times, ...rates];
}

export function run() {
  return withBoth(async (divan, graphile) => {
    const sides = [];
    try {
      sides.push(await Side.start(divan, openDivan));
      sides.push(await Side.start(graphile, openGraphile));
      for (let round = 0; round < ROUNDS; ++round) {
        const turn = round % 2 ? [...sides].reverse() : sides;
        for (const kind of Object.keys(KINDS)) {
          for (const side of turn) await side[kind]();
        }
      }
      return figures(...sides);
    } finally {
      for (const side of sides) await side.stop();
    }
  });
}
