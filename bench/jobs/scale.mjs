// Divan alone: the server's processor time for an operation while 1,000, 100,000 and 1,000,000 jobs are
// pending, and on a queue that was emptied of as many. Elapsed time means little on a busy machine;
// milliseconds of the requests are shown in addition.
import { threadSeconds } from '../support/cpu.mjs';
import { figure, median } from '../support/figures.mjs';
import { Connection } from './divan_client.mjs';
import * as divan from './systems/divan.mjs';

const PENDING = (process.env.DIVAN_BENCH_PENDING ?? '1000,100000,1000000').split(',').map(Number);
const TAKEN = (process.env.DIVAN_BENCH_TAKEN ?? '1000,100000').split(',').map(Number);
const TIMES = 300;
const ROUNDS = 3;
const MOST = 1.5; // the largest ratio to the cost with the fewest jobs

const OPERATIONS = {
  'add one': (connection, queue) => connection.ask('POST', `/_jobs/${queue}`, { data: {} }),
  'accept and release one': async (connection, queue) => {
    const { jobs } = await connection.ask('POST', `/_jobs/${queue}/_accept`, { limit: 1 });
    await connection.ask('POST', `/_jobs/${queue}/${jobs[0].id}/_release`, { lock: jobs[0].lock });
  },
  'accept and finish one': async (connection, queue) => {
    const { jobs } = await connection.ask('POST', `/_jobs/${queue}/_accept`, { limit: 1 });
    await connection.ask('POST', `/_jobs/${queue}/${jobs[0].id}/_finish`, { lock: jobs[0].lock });
  },
  counts: (connection, queue) => connection.ask('GET', `/_jobs/${queue}`),
};

async function measure(system, queue, operation) {
  const connection = await Connection.open(system.address);
  for (let n = 0; n < 20; ++n) await operation(connection, queue);
  const cpu = threadSeconds(system.pid);
  const times = [];
  for (let n = 0; n < TIMES; ++n) {
    const began = performance.now();
    await operation(connection, queue);
    times.push(performance.now() - began);
  }
  const micros = ((threadSeconds(system.pid) - cpu) * 1e6) / TIMES;
  connection.close();
  return { micros, ms: median(times) };
}

function figures(name, numbers, of) {
  const middle = (i, what) => median(of[i].map((one) => one[what]));
  return numbers.map((number, i) => {
    const aims = i === 0 ? {} : { most: middle(0, 'micros') * MOST };
    const label = `jobs: ${name.replace('N', number.toLocaleString('en'))}`;
    console.error(`  ${label}: ${middle(i, 'micros').toFixed(0)} µs, ${middle(i, 'ms').toFixed(2)} ms`);
    return figure(label, middle(i, 'micros'), 'CPU µs', { of: of[i].map((one) => one.micros), ...aims });
  });
}

// Operations alternate between the queues, so that other load of the machine affects all of them.
async function compare(system, queues, operation) {
  const of = queues.map(() => []);
  for (let round = 0; round < ROUNDS; ++round) {
    for (const [i, queue] of queues.entries()) of[i].push(await measure(system, queue, operation));
  }
  return of;
}

async function fill(system, queue, count) {
  await system.prepare(queue, { timeout: 3_600_000 }); // accepted jobs are not reclaimed
  const began = system.cpuSeconds();
  await system.add(queue, count);
  console.error(`  ${count} added at ${(((system.cpuSeconds() - began) * 1e6) / count).toFixed(1)} µs each`);
  return queue;
}

async function empty(system, queue) {
  const connection = await Connection.open(system.address);
  while ((await connection.ask('POST', `/_jobs/${queue}/_accept`, { limit: 1000 })).jobs.length) {}
  connection.close();
}

export async function run() {
  const system = divan.create[0]();
  await system.start();
  try {
    const all = [];
    const taken = [];
    for (const count of TAKEN) {
      taken.push(await fill(system, `taken-${count}`, count));
      await empty(system, taken.at(-1));
    }
    const accept = (connection, queue) => connection.ask('POST', `/_jobs/${queue}/_accept`, {});
    all.push(...figures('accept of nothing, N taken before', TAKEN, await compare(system, taken, accept)));
    const queues = [];
    for (const count of PENDING) queues.push(await fill(system, `pending-${count}`, count));
    for (const [name, operation] of Object.entries(OPERATIONS)) {
      all.push(...figures(`${name}, N pending`, PENDING, await compare(system, queues, operation)));
    }
    return all;
  } finally {
    await system.stop();
  }
}
