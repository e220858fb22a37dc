// From the call that adds a job to a queue that is empty until its handler begins, in the same process; each system as it
// comes, or as its `idle` names.
import { figure } from '../support/figures.mjs';
import { pause } from './instance.mjs';

const SAMPLES = 300;

async function sample(system, queue, { options = {}, queue: settings, samples = SAMPLES }) {
  await system.prepare(queue, settings);
  const adder = await system.adder(queue);
  let started;
  const worker = await system.worker(queue, async () => started(performance.now()), options);
  await pause(1000);
  const times = [];
  for (let n = -1; n < samples; ++n) {
    await pause(20 + Math.random() * 40);
    const start = new Promise((resolve) => (started = resolve));
    const before = performance.now();
    await adder.add({ n });
    const time = (await start) - before;
    if (n >= 0) times.push(time); // the first warms up
  }
  await worker.stop();
  await adder.close();
  return times.sort((a, b) => a - b);
}

export async function run(systems) {
  const figures = [];
  for (const system of systems) {
    for (const [n, how] of (system.idle ?? [{ name: 'default' }]).entries()) {
      const times = await sample(system, `idle${n}`, how);
      const at = (part) => times[Math.min(times.length - 1, Math.floor(part * times.length))];
      const name = `jobs: ${system.name}${system.durable ? '' : ' (not durable)'}, ${how.name}: add to start`;
      console.error(`  ${name}: median ${at(0.5).toFixed(2)} ms, p90 ${at(0.9).toFixed(2)}, p99 ${at(0.99).toFixed(2)}, most ${at(1).toFixed(2)} of ${times.length}`);
      figures.push(figure(`${name}, median`, at(0.5), 'ms'), figure(`${name}, 99th percentile`, at(0.99), 'ms'));
    }
  }
  return figures;
}
