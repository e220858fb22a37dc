// Views: builds, reductions, and freshness. DIVAN_BENCH_PARTS chooses (names with commas between).
import * as besideNode from './views/beside_node.mjs';
import * as disk from './views/disk.mjs';
import * as fresh from './views/fresh.mjs';
import * as holdUp from './views/hold_up.mjs';
import * as reduce from './views/reduce.mjs';
import { chosen } from './support/chosen.mjs';

const PARTS = { beside_node: besideNode, reduce, fresh, hold_up: holdUp, disk };

export async function run() {
  const figures = [];
  for (const part of chosen('DIVAN_BENCH_PARTS', Object.keys(PARTS))) {
    console.error(`\n views: ${part} ...`);
    figures.push(...(await PARTS[part].run()));
  }
  return figures;
}
