// Live feeds: latency of a line after a write, the cost of idle feeds and of one write to many feeds, and the
// cost of the marks for /_db_updates for the writers of one database.
import * as idle from './feeds/idle.mjs';
import * as latency from './feeds/latency.mjs';
import * as marks from './feeds/marks.mjs';

export async function run() {
  const figures = [];
  for (const part of [latency, idle, marks]) figures.push(...(await part.run()));
  return figures;
}
