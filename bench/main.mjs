// Runs the named benchmarks (all without a name) and prints one table of figures.
import { table } from './support/figures.mjs';

const NAMES = ['micro', 'kv', 'events', 'feeds', 'http', 'put', 'bulk', 'docs', 'attachments', 'views', 'geo', 'search', 'replication', 'jobs', 'triggers', 'cluster', 'dashboard'];

const names = process.argv.length > 2 ? process.argv.slice(2) : NAMES;
for (const name of names) {
  if (NAMES.includes(name)) continue;
  console.error(`bench: there is no ${name}; there are ${NAMES.join(', ')}.`);
  process.exit(2);
}

const figures = [];
for (const name of names) {
  console.error(`\n${name} ...`);
  const { run } = await import(`./${name}.mjs`);
  figures.push(...(await run()));
}
console.log('\n' + table(figures));
