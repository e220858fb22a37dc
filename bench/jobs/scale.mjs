// Divan by itself: what an operation costs the server while 1,000, 100,000 and 1,000,000 jobs wait. Processor time,
// since a clock says little on a busy machine; milliseconds of the requests are shown beside it.
import { threadSeconds } from '../support/cpu.mjs';
import { figure, median } from '../support/figures.mjs';
import { addMany, Connection } from './divan_client.mjs';
import * as divan from './systems/divan.mjs';

const PENDING = (process.env.DIVAN_BENCH_PENDING ?? '1000,100000,1000000').split(',').map(Number);
const TIMES = 300;
const ROUNDS = 3;
const MOST = 1.5; // times what it costs with the fewest

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

export async function run() {
  const system = divan.create[0]();
  await system.start();
  try {
    const queues = [];
    for (const pending of PENDING) {
      const queue = `pending-${pending}`;
      await system.prepare(queue);
      const began = system.cpuSeconds();
      await addMany(system.address, queue, pending, undefined, { batch: 1000, connections: 2 });
      console.error(`  ${pending} added at ${(((system.cpuSeconds() - began) * 1e6) / pending).toFixed(1)} µs each`);
      queues.push(queue);
    }
    const figures = [];
    for (const [name, operation] of Object.entries(OPERATIONS)) {
      // In turn, so that what else the machine does falls on all of them.
      const of = queues.map(() => []);
      for (let round = 0; round < ROUNDS; ++round) {
        for (const [i, queue] of queues.entries()) of[i].push(await measure(system, queue, operation));
      }
      const middle = (i, what) => median(of[i].map((one) => one[what]));
      for (const [i, pending] of PENDING.entries()) {
        const aims = i === 0 ? {} : { most: middle(0, 'micros') * MOST };
        const label = `jobs: ${name}, ${pending.toLocaleString('en')} pending`;
        console.error(`  ${label}: ${middle(i, 'micros').toFixed(0)} µs, ${middle(i, 'ms').toFixed(2)} ms`);
        figures.push(figure(label, middle(i, 'micros'), 'CPU µs', { of: of[i].map((one) => one.micros), ...aims }));
      }
    }
    return figures;
  } finally {
    await system.stop();
  }
}
