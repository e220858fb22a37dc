// Compares job queues in one run on one machine with the same number of jobs. docs/benchmarks.md explains the figures. DIVAN_BENCH_PARTS and DIVAN_BENCH_SYSTEMS choose (names with commas between).
import * as beanstalkd from './jobs/systems/beanstalkd.mjs';
import * as bullmq from './jobs/systems/bullmq.mjs';
import * as divan from './jobs/systems/divan.mjs';
import * as graphile from './jobs/systems/graphile.mjs';
import * as pgboss from './jobs/systems/pgboss.mjs';
import * as idle from './jobs/idle.mjs';
import * as oneByOne from './jobs/one_by_one.mjs';
import * as rescue from './jobs/rescue.mjs';
import * as scale from './jobs/scale.mjs';
import * as throughput from './jobs/throughput.mjs';
import { chosen } from './support/chosen.mjs';

const MODULES = [divan, graphile, pgboss, bullmq, beanstalkd];
const PARTS = { throughput, one_by_one: oneByOne, idle, rescue, scale };

export async function run() {
  if (Number(process.versions.node.split('.')[0]) < 20) throw new Error('jobs: the packages that Divan is compared with need Node.js 20.');
  const all = MODULES.flatMap((module) => module.create.map((create) => create()));
  const wanted = chosen('DIVAN_BENCH_SYSTEMS', all.map((system) => system.name));
  const systems = all.filter((system) => system === all[0] || wanted.includes(system.name));
  const figures = [];
  try {
    for (const system of systems) {
      await system.start();
      console.error(`  ${system.name} ${system.version}: ${system.settings}`);
    }
    for (const part of chosen('DIVAN_BENCH_PARTS', Object.keys(PARTS))) {
      console.error(`\n jobs: ${part} ...`);
      figures.push(...(await PARTS[part].run(systems)));
    }
  } finally {
    for (const system of systems) if (system.pid) await system.stop();
  }
  return figures;
}
