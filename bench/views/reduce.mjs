// Views with a reduce function. The cost of their builds for the server, and the time of reductions of
// ranges: random ranges of a million rows, and groups of different sizes.
import { endOfBuild } from '../support/builds.mjs';
import { cpu, residentBytes } from '../support/cpu.mjs';
import { bulkBodies, load, small } from '../support/documents.mjs';
import { figure, median } from '../support/figures.mjs';
import { Server } from '../support/server.mjs';

const BUILT = 100_000;
const ROUNDS = 5;
const ROWS = Number(process.env.DIVAN_BENCH_ROWS ?? 1_000_000);
const QUERIES = 200;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Resolves when the store has finished its background work.
async function quiet(server) {
  for (let before = -1, now; (now = cpu(server.pid).all) - before > 0.01; before = now) await pause(300);
}

// Waits until the index is up to date; returns the seconds of processor time and the peak memory.
async function build(server, database, design, views) {
  await quiet(server);
  const before = cpu(server.pid).all;
  let memory = 0;
  const timer = setInterval(() => (memory = Math.max(memory, residentBytes(server.pid, true))), 50);
  const { rev } = await server.ask('PUT', `/${database}/_design/${design}`, { views });
  const { view_index: index } = await server.ask('GET', `/${database}/_design/${design}/_info`);
  await endOfBuild(server, index.signature);
  clearInterval(timer);
  return { rev, used: cpu(server.pid).all - before, memory };
}

async function builds(server) {
  await server.send('PUT', '/built');
  await load(server, 'built', bulkBodies(small(BUILT)));
  const rates = { _sum: [], none: [], 'a function': [] };
  const memories = [];
  const reduces = { _sum: '_sum', none: undefined, 'a function': 'function (keys, values) { return sum(values); }' };
  for (let round = 0; round < ROUNDS; ++round) {
    for (const [name, reduce] of Object.entries(reduces)) {
      const map = `function (doc) { emit(doc.type, doc.n); } // ${round}`;
      const { rev, used, memory } = await build(server, 'built', 'd', { v: { map, reduce } });
      rates[name].push(BUILT / used);
      memories.push(memory / 1e6);
      console.error(`  build, reduce ${name}: ${((used * 1e6) / BUILT).toFixed(1)} CPU µs/document`);
      await server.send('DELETE', `/built/_design/d?rev=${rev}`);
    }
  }
  const unit = 'documents/CPU-second';
  return [
    figure('reduce: build of 100,000, _sum', median(rates._sum), unit, { least: 100_000, of: rates._sum }),
    figure('reduce: build of 100,000, no reduce', median(rates.none), unit, { of: rates.none }),
    figure('reduce: build of 100,000, JavaScript', median(rates['a function']), unit, { of: rates['a function'] }),
    figure('reduce: memory meanwhile, with divan-js', median(memories), 'MB', { most: 400, of: memories }),
  ];
}

// Milliseconds of requests, one after the other.
async function times(server, count, path) {
  const all = [];
  for (let i = 0; i < count; ++i) {
    const url = path();
    const start = process.hrtime.bigint();
    await server.send('GET', url);
    all.push(Number(process.hrtime.bigint() - start) / 1e6);
  }
  return all;
}

function randomRange() {
  const ends = [Math.floor(Math.random() * ROWS), Math.floor(Math.random() * ROWS)].sort((a, b) => a - b);
  return `startkey=${ends[0]}&endkey=${ends[1]}`;
}

async function queries(server) {
  await server.send('PUT', '/million');
  await load(server, 'million', bulkBodies(small(ROWS)));
  const map = 'function (doc) { emit(doc.n, doc.n); }';
  const { used } = await build(server, 'million', 'd', {
    stats: { map, reduce: '_stats' },
    function: { map, reduce: 'function (keys, values) { return sum(values); }' },
    types: { map: 'function (doc) { emit([doc.type, doc.n % 1000], doc.n); }', reduce: '_stats' },
  });
  console.error(`  ${ROWS} documents, three views: ${((used * 1e6) / ROWS).toFixed(1)} CPU µs/document`);
  const figures = [];
  const measure = async (name, count, path, aim = {}) => {
    await times(server, 1, path);
    const all = await times(server, count, path);
    console.error(`  ${name}: ${median(all).toFixed(2)} ms`);
    figures.push(figure(`reduce: ${name}`, median(all), 'ms', { ...aim, of: all }));
  };
  const view = '/million/_design/d/_view/';
  await measure('_stats of a random range', QUERIES, () => `${view}stats?${randomRange()}`, { most: 5 });
  await measure('JavaScript, a random range', QUERIES, () => `${view}function?${randomRange()}`);
  await measure('_stats of all rows', QUERIES, () => `${view}stats`, { most: 5 });
  await measure('group_level=1, 4 groups of all rows', 20, () => `${view}types?group_level=1`);
  await measure('group_level=2, 1,000 groups of all rows', 5, () => `${view}types?group_level=2`);
  await measure('a range of 10,000 rows, group=true', 5, () => `${view}stats?startkey=50000&endkey=59999&group=true`);
  await measure('the same, rows only', 5, () => `${view}stats?startkey=50000&endkey=59999&reduce=false`);
  return figures;
}

export async function run() {
  const server = await Server.start('reduce');
  try {
    return [...(await builds(server)), ...(await queries(server))];
  } finally {
    await server.stop();
  }
}
