// Live feeds: how soon a line comes after a write, what idle ones cost and what one write to many of them costs, and
// what the marks for /_db_updates cost the writers of one database.
import * as idle from './feeds/idle.mjs';
import * as latency from './feeds/latency.mjs';
import * as marks from './feeds/marks.mjs';

export async function run() {
  const figures = [];
  for (const part of [latency, idle, marks]) figures.push(...(await part.run()));
  return figures;
}
