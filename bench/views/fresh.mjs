// How soon indexes contain what was written: by ken in the background, and for queries that wait. With memory
// while it builds, bytes a row, and reads of ranges. DIVAN_BENCH_CHANGES is the size of the database beside
// which 500 small ones are built.
import { residentBytes } from '../support/cpu.mjs';
import { bulkBodies, load, small } from '../support/documents.mjs';
import { openFeed, Requests } from '../support/feed_socket.mjs';
import { figure, median } from '../support/figures.mjs';
import { Server } from '../support/server.mjs';

const DOCUMENTS = 100_000;
const SINGLE = 300;
const CHANGES = Number(process.env.DIVAN_BENCH_CHANGES ?? 1_000_000);
const DATABASES = 500;
const DESIGN = { views: { v: { map: 'function (doc) { emit(doc.type, doc.n); }', reduce: '_sum' } } };

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const pending = async (server, database) =>
  (await server.ask('GET', `/${database}/_design/d/_info`)).view_index.updates_pending.total;

async function upToDate(server, database) {
  while ((await pending(server, database)) > 0) await pause(5);
}

// 100,000 documents in batches of 1,000, the view defined first: from the last response until the index is complete.
async function afterMany(server) {
  const times = [];
  for (let round = 0; round < 3; ++round) {
    const database = `many-${round}`;
    await server.send('PUT', `/${database}`);
    await server.send('PUT', `/${database}/_design/d`, JSON.stringify(DESIGN));
    await load(server, database, bulkBodies(small(DOCUMENTS)), 1);
    const written = performance.now();
    await upToDate(server, database);
    times.push((performance.now() - written) / 1000);
    console.error(`  up to date after ${DOCUMENTS} documents: ${times.at(-1).toFixed(2)} s`);
  }
  return figure(`views: ken, after the last of ${DOCUMENTS}`, median(times), 's', { most: 1, of: times });
}

// A write to a quiet server, from its response until the index's event.
async function afterOne(server) {
  let wake = () => {};
  let commits = 0;
  const socket = await openFeed(server, '/_events/_db/many-0?heartbeat=60000', (text) => {
    commits += text.split('"type":"index_commit"').length - 1;
    wake();
  });
  const requests = await Requests.connect(server);
  const times = [];
  for (let n = 0; n < SINGLE; ++n) {
    await pause(20 + Math.random() * 40);
    const before = commits;
    const answered = await requests.send('PUT', `/many-0/single-${n}`, '{"type":"person","n":1}');
    while (commits === before) await new Promise((resolve) => (wake = resolve));
    times.push(performance.now() - answered);
  }
  socket.removeAllListeners('error').on('error', () => {}).destroy();
  requests.close();
  return figure('views: ken, after a write to a quiet server', median(times), 'ms', { most: 15, of: times });
}

// A write, and a query that shows it.
async function queryAfterWrite(server) {
  const requests = await Requests.connect(server);
  const both = [];
  const queries = [];
  for (let n = 0; n < SINGLE; ++n) {
    await pause(Math.random() * 20);
    const began = performance.now();
    const answered = await requests.send('PUT', `/many-0/asked-${n}`, `{"type":"asked","n":${n}}`);
    const read = await requests.send('GET', '/many-0/_design/d/_view/v?key=%22asked%22', '');
    both.push(read - began);
    queries.push(read - answered);
  }
  requests.close();
  const { rows } = await server.ask('GET', '/many-0/_design/d/_view/v?key=%22asked%22');
  if (rows[0].value !== (SINGLE * (SINGLE - 1)) / 2) throw new Error(JSON.stringify(rows));
  return [
    figure('views: PUT, then GET of the view', median(both), 'ms', { most: 4, of: both }),
    figure('views: the GET of these', median(queries), 'ms', { of: queries }),
  ];
}

async function ranges(server) {
  await server.send('PUT', '/many-0/_design/ranges', JSON.stringify({ views: { n: { map: 'function (doc) { emit(doc.n, null); }' } } }));
  await server.send('GET', '/many-0/_design/ranges/_view/n?limit=1');
  const times = [];
  for (let n = 0; n < SINGLE; ++n) {
    const start = Math.floor(Math.random() * (DOCUMENTS - 100));
    const began = performance.now();
    const { rows } = await server.ask('GET', `/many-0/_design/ranges/_view/n?startkey=${start}&limit=100`);
    times.push(performance.now() - began);
    if (rows.length !== 100) throw new Error(`${rows.length} rows`);
  }
  return [
    figure('views: a range of 100 rows', median(times), 'ms', { of: times }),
    figure('views: rows read in ranges of 100, one after the other', 100_000 / median(times), 'rows/s'),
  ];
}

// One database with many changes is being built while 500 of ten documents are written. Memory and bytes a row are
// those of the large one.
async function beside(server) {
  await server.send('PUT', '/large');
  await load(server, 'large', bulkBodies(small(CHANGES)));
  for (let n = 0; n < DATABASES; ++n) await server.send('PUT', `/small-${n}`);
  await server.send('PUT', '/large/_design/d', JSON.stringify(DESIGN));
  const documents = [JSON.stringify({ _id: '_design/d', ...DESIGN }), ...small(10)];
  const [body] = bulkBodies(documents);
  for (let n = 0; n < DATABASES; ++n) await server.send('POST', `/small-${n}/_bulk_docs`, body);
  const written = performance.now();
  for (let n = 0; n < DATABASES; ++n) await upToDate(server, `small-${n}`);
  const seconds = (performance.now() - written) / 1000;
  const left = await pending(server, 'large');
  console.error(`  ${DATABASES} databases were built ${seconds.toFixed(2)} s after the last write; of the large one ${left} changes were left`);
  if (left === 0) throw new Error('The large database was built before the small ones.');
  let most = 0;
  let built;
  do {
    await pause(100);
    most = Math.max(most, residentBytes(server.pid, true));
    built = (await server.ask('GET', '/large/_design/d/_info')).view_index;
  } while (built.build.state !== 'finished');
  return [
    figure(`views: ${DATABASES} databases beside a build of ${CHANGES}`, seconds, 's', { most: 10 }),
    figure('views: memory meanwhile, with divan-js', most / 1e6, 'MB'),
    figure('views: a row with what it is reduced by, on disk right after that', built.sizes.file / CHANGES, 'bytes'),
  ];
}

export async function run() {
  const server = await Server.start('fresh');
  try {
    return [await afterMany(server), await afterOne(server), ...(await queryAfterWrite(server)), ...(await ranges(server)), ...(await beside(server))];
  } finally {
    await server.stop();
  }
}
