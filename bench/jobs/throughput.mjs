// Empty jobs from the first add to the last finish, each system in its fastest documented configuration and,
// one at a time, in its default one. First all are added, then all are run, as with a backlog.
import { figure, median } from '../support/figures.mjs';
import { pause } from './instance.mjs';
import { countSyncs } from './syncs.mjs';

const JOBS = Number(process.env.DIVAN_BENCH_JOBS ?? 100_000);
const ROUNDS = Number(process.env.DIVAN_BENCH_ROUNDS ?? 3);

async function phase(system, run) {
  const syncs = await countSyncs(system.pid);
  const before = { cpu: system.cpuSeconds(), counters: await system.counters?.() };
  const began = performance.now();
  await run();
  const seconds = (performance.now() - began) / 1000;
  await pause(500); // includes the server's work after its last response
  const cpu = system.cpuSeconds() - before.cpu;
  const after = await system.counters?.();
  const counters = after && Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - before.counters[name]]));
  return { seconds, cpu, syncs: await syncs(), counters };
}

// Resolves when `count` handlers have run and their ends are confirmed.
async function doAll(system, queue, count, options) {
  let ran = 0;
  let done;
  const all = new Promise((resolve) => (done = resolve));
  const worker = await system.worker(queue, async () => void (++ran === count && done()), options);
  await all;
  await worker.stop();
}

async function round(system, n) {
  const queue = `fast${n}`;
  await system.prepare(queue);
  const add = await phase(system, () => system.add(queue, JOBS));
  const work = await phase(system, () => doAll(system, queue, JOBS, system.fast));
  const both = (of) => (add[of] === undefined ? undefined : add[of] + work[of]);
  return { add, work, seconds: both('seconds'), cpu: both('cpu'), syncs: both('syncs') };
}

const micros = (cpu) => ((cpu * 1e6) / JOBS).toFixed(1);

function print(system, { add, work, seconds, syncs }) {
  const one = (name, { seconds, cpu, syncs, counters }) =>
    `    ${name} ${Math.round(JOBS / seconds)}/s, ${micros(cpu)} µs of the server's CPU, ${(syncs / JOBS).toFixed(4)} syncs a job` +
    (counters ? ` ${JSON.stringify(counters)}` : '');
  console.error(`  ${system.name}: add to finish ${Math.round(JOBS / seconds)}/s, ${(syncs / JOBS).toFixed(4)} syncs a job`);
  console.error(`${one('add', add)}\n${one('work', work)}`);
}

export async function run(systems) {
  const results = new Map(systems.map((system) => [system, []]));
  for (let n = 0; n < ROUNDS; ++n) {
    for (const system of systems) {
      const result = await round(system, n);
      results.get(system).push(result);
      print(system, result);
    }
  }
  const ours = results.get(systems[0]);
  const figures = [];
  for (const [system, rounds] of results) {
    const label = `jobs: ${system.name}${system.durable ? '' : ' (not durable)'}`;
    const add = (name, of, unit, aims) => figures.push(figure(`${label}, ${name}`, median(of), unit, { of, ...aims }));
    add('add to finish', rounds.map((r) => JOBS / r.seconds), 'jobs/s');
    add('server', rounds.map((r) => (r.cpu * 1e6) / JOBS), 'CPU µs a job', system === systems[0] ? { most: 30 } : {});
    if (rounds[0].syncs !== undefined) add('syncs', rounds.map((r) => r.syncs / JOBS), 'a job');
    if (system === systems[0]) continue;
    const least = !system.durable ? {} : { least: system.name.startsWith('graphile') ? 2 : 3 };
    add('Divan is faster by', rounds.map((r, i) => r.seconds / ours[i].seconds), 'times', least);
  }
  return figures;
}
