// Triggers and delivery, beside a trigger of PostgreSQL that adds jobs of graphile-worker. DIVAN_BENCH_PARTS chooses (names with commas between).
import * as cost from './triggers/cost.mjs';
import * as delivery from './triggers/delivery.mjs';
import * as latency from './triggers/latency.mjs';
import { chosen } from './support/chosen.mjs';

const PARTS = { latency, cost, delivery };

export async function run() {
  const figures = [];
  for (const part of chosen('DIVAN_BENCH_PARTS', Object.keys(PARTS))) {
    console.error(`\n triggers: ${part} ...`);
    figures.push(...(await PARTS[part].run()));
  }
  return figures;
}
