// Jobs that the server delivers to a web service on the loopback, beside a worker of graphile-worker that sends the same requests. All jobs wait when
// the time begins: Divan's type is paused until then, and graphile-worker's jobs are added by a transaction that commits then.
import pg from 'pg';

import { ADD } from '../jobs/batches.mjs';
import { pause } from '../jobs/instance.mjs';
import { ownSeconds } from '../support/cpu.mjs';
import { figure, median } from '../support/figures.mjs';
import { Child } from './child.mjs';
import { withBoth } from './systems.mjs';

const JOBS = Number(process.env.DIVAN_BENCH_JOBS ?? 10_000);
const ROUNDS = Number(process.env.DIVAN_BENCH_ROUNDS ?? 3);
const CONCURRENCY = 100;
const LONGEST = 120; // seconds
const QUEUE = 'deliver';

const data = (n) => ({ n, to: 'ann@example.com', subject: 'Welcome', text: 'x'.repeat(170) });

// `begin` lets the jobs run, `left` returns how many are not finished, and `seconds` the processor time.
async function measured(name, receiver, { begin, left, seconds }) {
  const received = receiver.ask(`expect ${JOBS}`, LONGEST);
  received.catch(() => {}); // is awaited below
  const before = seconds();
  const began = performance.now();
  await begin();
  const { requests } = await received;
  while ((await left()) > 0) {
    if (performance.now() - began > LONGEST * 1000) throw new Error(`${name}: ${await left()} jobs are not finished after ${LONGEST} s.`);
    await pause(20);
  }
  const elapsed = (performance.now() - began) / 1000;
  await pause(500); // includes what follows the last response
  const result = { rate: JOBS / elapsed, micros: ((seconds() - before) * 1e6) / JOBS };
  console.error(`  ${name}: ${Math.round(result.rate)} deliveries/s, ${result.micros.toFixed(1)} µs CPU each; ${requests} requests for ${JOBS} jobs`);
  return result;
}

async function byDivan(divan, receiver, round) {
  const { server } = divan;
  const type = `/_jobs/${QUEUE}-${round}`;
  await server.ask('PUT', type, { paused: true, deliver: { url: receiver.first, concurrency: CONCURRENCY } });
  for (let n = 0; n < JOBS; n += ADD.batch) {
    await server.ask('POST', `${type}/_bulk`, { jobs: Array.from({ length: Math.min(ADD.batch, JOBS - n) }, (_, i) => ({ data: data(n + i) })) });
  }
  const left = async () => {
    const { counts } = await server.ask('GET', type);
    if (counts.failed) throw new Error(`Deliveries failed: ${JSON.stringify(counts)}`);
    return JOBS - counts.finished;
  };
  try {
    const begin = () => server.ask('PUT', type, { paused: false });
    return await measured('Divan', receiver, { begin, left, seconds: () => divan.cpuSeconds() });
  } catch (error) {
    const shown = await Promise.all([type, '/_deliver'].map((path) => server.send('GET', path).catch(String)));
    throw new Error(`${error.message} ${shown.join(' ')}`);
  }
}

async function byGraphile(graphile, sender, receiver) {
  const client = new pg.Client(graphile.address);
  await client.connect();
  try {
    await client.query('begin');
    const spec = "row($1::text, json_array_elements($2::json), null, null, null, null, null, null)::graphile_worker.job_spec";
    const bodies = JSON.stringify(Array.from({ length: JOBS }, (_, n) => data(n)));
    await client.query(`select count(*) from graphile_worker.add_jobs(array(select ${spec}))`, [QUEUE, bodies]);
    const left = async () => (await graphile.postgres.query('select count(*)::int jobs from graphile_worker.jobs where task_identifier = $1', [QUEUE]))[0].jobs;
    const seconds = () => graphile.cpuSeconds() + ownSeconds(sender.pid);
    return await measured('graphile-worker', receiver, { begin: () => client.query('commit'), left, seconds });
  } finally {
    await client.end();
  }
}

function figures(divan, graphile) {
  const ratios = (field) => divan.map((result, i) => result[field] / graphile[i][field]);
  const rates = ratios('rate');
  const micros = ratios('micros');
  const all = [
    figure('triggers: deliveries per second, to graphile-worker', median(rates), '×', { least: 1, of: rates }),
    figure('triggers: a delivery, to graphile-worker', median(micros), '× CPU', { most: 1, of: micros }),
  ];
  for (const [name, results] of Object.entries({ Divan: divan, 'graphile-worker': graphile })) {
    for (const [field, title, unit] of [['rate', 'deliveries', 'deliveries/s'], ['micros', 'a delivery', 'CPU µs']]) {
      const of = results.map((result) => result[field]);
      all.push(figure(`triggers: ${name}, ${title}`, median(of), unit, { of }));
    }
  }
  return all;
}

async function compare(divan, graphile, start) {
  const receiver = await start('receiver.mjs');
  const sender = await start('sender.mjs', graphile.address, QUEUE, receiver.first, { ...graphile.fast, concurrentJobs: CONCURRENCY });
  const results = { divan: [], graphile: [] };
  const measure = {
    divan: (round) => byDivan(divan, receiver, round),
    graphile: () => byGraphile(graphile, sender, receiver),
  };
  for (let round = 0; round < ROUNDS; ++round) {
    for (const name of round % 2 ? ['graphile', 'divan'] : ['divan', 'graphile']) results[name].push(await measure[name](round));
  }
  return figures(results.divan, results.graphile);
}

export function run() {
  return withBoth(async (divan, graphile) => {
    const helpers = [];
    const start = async (...args) => {
      helpers.push(await Child.start(...args));
      return helpers.at(-1);
    };
    try {
      return await compare(divan, graphile, start);
    } finally {
      for (const helper of helpers) await helper.stop();
    }
  }, { DIVAN_DELIVER_ALLOW: '127.0.0.1' });
}
