// Requests for documents as clients send them, beside the same to pouchdb-server, in turn, and to another server with
// CouchDB's API if DIVAN_BENCH_COUCHDB has its address (http://NAME:PASSWORD@HOST:PORT) and DIVAN_BENCH_COUCHDB_PID its process.
// And the memory that a million documents take.
import { spawn } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import http from 'node:http';

import { cpu, peakBytes, residentBytes } from './support/cpu.mjs';
import { bulkBodies, load, small } from './support/documents.mjs';
import { figure, median } from './support/figures.mjs';
import { firstMatch, send, Server } from './support/server.mjs';

const ROUNDS = Number(process.env.DIVAN_BENCH_ROUNDS ?? 3);
const DOCUMENTS = Number(process.env.DIVAN_BENCH_DOCUMENTS ?? 10_000); // a multiple of 1,000
const MANY = Number(process.env.DIVAN_BENCH_MANY ?? 1_000_000);
const PUTS = 5_000;
const UPDATES = 100; // of each of 64 documents
const QUERIES = 200;
const PEER_DATA = 'build/bench/pouchdb-server';

const DESIGN = {
  filters: { orders: "function (doc, req) { return doc.type === 'order'; }" },
};

// A server with CouchDB's API: url, authorization, pid, stop().
class Peer {
  constructor(name, url, pid, stop = () => {}) {
    const { username, password, origin } = new URL(url);
    this.name = name;
    this.url = origin;
    this.pid = Number(pid);
    this.authorization = username ? 'Basic ' + Buffer.from(`${username}:${password}`).toString('base64') : undefined;
    this.stop = stop;
  }
}

async function startPouchdbServer() {
  rmSync(PEER_DATA, { recursive: true, force: true });
  mkdirSync(PEER_DATA, { recursive: true });
  const main = new URL('node_modules/pouchdb-server/bin/pouchdb-server', import.meta.url).pathname;
  const port = 20_000 + (process.pid % 10_000);
  const child = spawn('node', [main, '--port', String(port), '--dir', '.', '--no-stdout-logs'], { cwd: PEER_DATA, stdio: ['ignore', 'pipe', 'inherit'] });
  await firstMatch(child, /(has started)/);
  return new Peer('pouchdb-server', `http://127.0.0.1:${port}`, child.pid, () => child.kill());
}

// A client with this number of connections.
class Client {
  constructor(server, connections) {
    this.server = server;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: connections });
  }

  send(method, path, body) {
    return send(this.server, this.agent, method, path, body);
  }

  async ask(method, path, body) {
    return JSON.parse(await this.send(method, path, body === undefined ? undefined : JSON.stringify(body)));
  }

  close() {
    this.agent.destroy();
  }
}

async function inParallel(connections, count, job) {
  let next = 0;
  const worker = async () => {
    while (next < count) await job(next++);
  };
  await Promise.all(Array.from({ length: connections }, worker));
}

// The cases: the unit of work, a function that returns how many units it did, and whether it is repeated, since it writes
// nothing. `db` is a database with DOCUMENTS documents, of which a quarter are orders, with an index on `n`; `scratch` is an
// empty one.
const REPEATED = true;
const DOCUMENT = { type: 'order', n: 1, tags: ['a', 'bb'], text: 'x'.repeat(170) };
const puts = (connections, count) => async ({ server }) => {
  const client = new Client(server, connections);
  await inParallel(connections, count, (i) => client.ask('PUT', `/scratch/${connections}-${i}`, DOCUMENT));
  client.close();
  return count;
};
const find = (selector, wanted) => async ({ client }) => {
  const count = wanted === 1 ? QUERIES : 3;
  for (let i = 0; i < count; ++i) {
    const { docs } = await client.ask('POST', '/db/_find', { selector: selector((i * 37) % DOCUMENTS), limit: DOCUMENTS });
    if (docs.length !== wanted) throw new Error(`${docs.length} documents were found, not ${wanted}`);
  }
  return wanted === 1 ? count : count * DOCUMENTS;
};
const changes = (parameters, wanted) => async ({ client }) => {
  const { results } = await client.ask('GET', `/db/_changes?${parameters}`);
  if (results.length < wanted) throw new Error(`${results.length} changes, not ${wanted}`);
  return DOCUMENTS;
};
const CASES = {
  'PUT, 1 connection': ['request', puts(1, 300)],
  'PUT, 64 connections': ['request', puts(64, PUTS)],
  'updates, 64 connections': ['request', async ({ server }) => {
    const client = new Client(server, 64);
    await Promise.all(Array.from({ length: 64 }, async (_, i) => {
      let rev;
      for (let n = 0; n < UPDATES; ++n) rev = (await client.ask('PUT', `/scratch/update-${i}${rev ? `?rev=${rev}` : ''}`, DOCUMENT)).rev;
    }));
    client.close();
    return 64 * UPDATES;
  }],
  'GET, 64 connections': ['request', async ({ server, ids }) => {
    const client = new Client(server, 64);
    await inParallel(64, PUTS, (i) => client.send('GET', `/db/${ids[(i * 37) % ids.length]}`));
    client.close();
    return PUTS;
  }, REPEATED],
  _bulk_docs: ['document', async ({ server, bodies }) => {
    const client = new Client(server, 2);
    await inParallel(2, bodies.length, (i) => client.send('POST', '/scratch/_bulk_docs', bodies[i]));
    client.close();
    return DOCUMENTS;
  }],
  '_all_docs?include_docs=true': ['MB', async ({ client }) => (await client.send('GET', '/db/_all_docs?include_docs=true')).length / 1e6, REPEATED],
  '_changes': ['row', changes('since=0', DOCUMENTS), REPEATED],
  '_changes with a filter': ['row', changes('since=0&filter=d/orders', DOCUMENTS / 4), REPEATED],
  '_find with an index': ['request', find((n) => ({ n: { $eq: n } }), 1), REPEATED],
  '_find without an index': ['document', find(() => ({ type: 'none' }), 0), REPEATED],
};

async function prepare(server, bodies) {
  const client = new Client(server, 2);
  await client.send('PUT', '/db');
  await inParallel(2, bodies.length, (i) => client.send('POST', '/db/_bulk_docs', bodies[i]));
  await client.ask('PUT', '/db/_design/d', DESIGN);
  await client.ask('POST', '/db/_index', { index: { fields: ['n'] }, name: 'by_n' });
  await client.ask('POST', '/db/_find', { selector: { n: 0 } }); // builds the index, if that is not done yet
  return client;
}

// A case, for at least a second if it is repeated, since processor time is counted in hundredths.
async function measured(server, [, job, isRepeated], state) {
  const before = cpu(server.pid).all;
  const began = performance.now();
  let units = 0;
  do units += await job(state);
  while (isRepeated && performance.now() < began + 1000);
  return { rate: (units * 1000) / (performance.now() - began), micros: ((cpu(server.pid).all - before) * 1e6) / units };
}

async function memory() {
  const server = await Server.start('docs-many');
  await server.send('PUT', '/many');
  for (let first = 0; first < MANY; first += 100_000) {
    const documents = small(100_000).map((text) => text.replace('"doc-', `"doc-${first / 100_000}-`));
    await load(server, 'many', bulkBodies(documents.slice(0, MANY - first)));
  }
  // Freed memory is returned to the system after a second, and tables are written and merged in the background.
  await new Promise((resolve) => setTimeout(resolve, 5000));
  const rest = residentBytes(server.pid) / 1e6;
  const peak = peakBytes(server.pid) / 1e6;
  console.error(`  ${MANY} documents: ${rest.toFixed(0)} MB, at most ${peak.toFixed(0)} MB`);
  await server.stop();
  return { rest, peak };
}

export async function run() {
  const documents = small(DOCUMENTS);
  const bodies = bulkBodies(documents);
  const ids = documents.map((text) => JSON.parse(text)._id);
  const divan = await Server.start('docs', { DIVAN_CHTTPD_AUTH_ITERATIONS: '1000' });
  divan.name = 'Divan';
  const servers = [divan, await startPouchdbServer()];
  const { DIVAN_BENCH_COUCHDB: url, DIVAN_BENCH_COUCHDB_PID: pid } = process.env;
  if (url) servers.push(new Peer('CouchDB', url, pid));
  const results = {};
  const clients = new Map();
  for (const server of servers) clients.set(server, await prepare(server, bodies));
  for (let round = 0; round < ROUNDS; ++round) {
    for (const [name, one] of Object.entries(CASES)) {
      for (const server of servers) {
        const client = clients.get(server);
        await client.send('PUT', '/scratch');
        const result = await measured(server, one, { server, client, bodies, ids });
        await client.send('DELETE', '/scratch');
        (results[name] ??= new Map()).set(server, [...(results[name].get(server) ?? []), result]);
        console.error(`  ${name}, ${server.name}: ${result.rate.toFixed(0)}/s, ${result.micros.toFixed(1)} µs CPU`);
      }
    }
  }
  // The bodies of replaced revisions cost this much.
  await clients.get(divan).send('PUT', '/_node/_local/_config/couchdb/max_old_revisions', '"0"');
  const withoutOld = [];
  for (let round = 0; round < ROUNDS; ++round) {
    await clients.get(divan).send('PUT', '/scratch');
    withoutOld.push((await measured(divan, CASES['updates, 64 connections'], { server: divan })).micros);
    await clients.get(divan).send('DELETE', '/scratch');
  }
  for (const client of clients.values()) client.close();
  for (const server of servers) await server.stop();
  rmSync(PEER_DATA, { recursive: true, force: true });

  const figures = [];
  for (const [name, of] of Object.entries(results)) {
    const unit = CASES[name][0];
    const values = (server, field) => of.get(server).map((result) => result[field]);
    figures.push(figure(`docs: ${name}`, median(values(divan, 'rate')), unit === 'MB' ? 'MB/s' : `${unit}s/s`, { of: values(divan, 'rate') }));
    figures.push(figure(`docs: ${name}`, median(values(divan, 'micros')), `CPU µs/${unit}`, { of: values(divan, 'micros') }));
    for (const peer of servers.slice(1)) {
      const ratios = values(divan, 'micros').map((micros, i) => micros / values(peer, 'micros')[i]);
      figures.push(figure(`docs: ${name}, to ${peer.name}`, median(ratios), '× CPU', { of: ratios }));
      const rates = values(divan, 'rate').map((rate, i) => rate / values(peer, 'rate')[i]);
      figures.push(figure(`docs: ${name}, to ${peer.name}`, median(rates), '× rate', { of: rates }));
    }
  }
  figures.push(figure('docs: updates without replaced revisions', median(withoutOld), 'CPU µs/request', { of: withoutOld }));
  const memories = [];
  for (let round = 0; round < ROUNDS; ++round) memories.push(await memory());
  const rests = memories.map(({ rest }) => rest);
  const peaks = memories.map(({ peak }) => peak);
  figures.push(figure(`docs: memory, ${MANY} documents, 5 s later`, median(rests), 'MB', { most: 300, of: rests }));
  figures.push(figure('docs: memory, maximum while they were loaded', median(peaks), 'MB', { of: peaks }));
  return figures;
}
