// Each system with its defaults: one add after the other, then one worker that runs one job after the other,
// until all jobs are done or SECONDS have passed.
import { figure, median } from '../support/figures.mjs';

const JOBS = 1000;
const SECONDS = 10;
const ROUNDS = Number(process.env.DIVAN_BENCH_ROUNDS ?? 3);

async function round(system, queue) {
  await system.prepare(queue);
  const adder = await system.adder(queue);
  let added = 0;
  const began = performance.now();
  while (added < JOBS && performance.now() - began < SECONDS * 1000) {
    await adder.add({});
    ++added;
  }
  const addSeconds = (performance.now() - began) / 1000;
  await adder.close();

  let ran = 0;
  let done;
  const all = new Promise((resolve) => (done = resolve));
  const start = performance.now();
  const worker = await system.worker(queue, async () => void (++ran === added && done()), {});
  const timer = setTimeout(done, SECONDS * 1000);
  await all;
  clearTimeout(timer);
  const workSeconds = (performance.now() - start) / 1000;
  const result = { add: added / addSeconds, work: ran / workSeconds };
  await worker.stop();
  console.error(`  ${system.name}: adds ${result.add.toFixed(0)}/s, does ${result.work.toFixed(1)}/s (${ran} jobs)`);
  return { ...result, both: 1 / (1 / result.add + 1 / result.work) };
}

export async function run(systems) {
  const results = new Map(systems.map((system) => [system, []]));
  for (let n = 0; n < ROUNDS; ++n) {
    for (const system of systems) results.get(system).push(await round(system, `one${n}`));
  }
  const ours = results.get(systems[0]);
  return [...results].map(([system, rounds]) => {
    const name = `jobs: ${system.name}${system.durable ? '' : ' (not durable)'}`;
    if (system === systems[0]) return figure(`${name}, one at a time`, median(rounds.map((r) => r.both)), 'jobs/s', { of: rounds.map((r) => r.both) });
    const times = rounds.map((r, i) => ours[i].both / r.both);
    return figure(`${name}, one at a time: Divan is faster by`, median(times), 'times', { of: times, ...(system.durable ? { least: 1 } : {}) });
  });
}
