// One FoundationDB cluster, served by 1, 2 and 4 Divan processes: throughput of clients per second, and the
// cost of an operation for the cluster. The number of clients is the same for any number of processes, over
// which they are distributed. FDB_CLUSTER_FILE names the cluster, DIVAN_FDB_LIBRARY its client library if the
// system does not find it.
import { randomBytes } from 'node:crypto';

import { Connection } from './jobs/divan_client.mjs';
import { bulkBodies, small } from './support/documents.mjs';
import { figure } from './support/figures.mjs';
import { Server } from './support/server.mjs';

const PROCESSES = (process.env.DIVAN_BENCH_PROCESSES ?? '1,2,4').split(',').map(Number);
const SECONDS = Number(process.env.DIVAN_BENCH_SECONDS ?? 5);
const READ = 1000; // documents that are read
const CONNECTIONS = 32;
const BULK = 1000;
const JOBS = 20_000;

// Each kind of operation: one turn of a client, which returns how many operations it was (0: there is no more
// to do), what is done before, and how many connections do it.
const KINDS = {
  GET: {
    turn: async (connection) => {
      await connection.send('GET', `/bench/doc-${String(Math.floor(Math.random() * READ)).padStart(8, '0')}`);
      return 1;
    },
  },
  PUT: {
    turn: async (connection) => {
      await connection.send('PUT', `/bench/${randomBytes(8).toString('hex')}`, `{"text":"${'x'.repeat(200)}"}`);
      return 1;
    },
  },
  'document of _bulk_docs': {
    connections: 4,
    turn: async (connection) => {
      const docs = Array.from({ length: BULK }, (_, n) => ({ type: 'order', n, text: 'x'.repeat(200) }));
      await connection.send('POST', '/bench/_bulk_docs', JSON.stringify({ docs }));
      return BULK;
    },
  },
  'job (accept, finish)': {
    prepare: async (server) => {
      await server.ask('PUT', '/_jobs/bench', { timeout: 60_000 });
      for (let i = 0; i < JOBS; i += 1000) {
        await server.ask('POST', '/_jobs/bench/_bulk', { jobs: Array.from({ length: 1000 }, (_, n) => ({ id: `job${i + n}`, data: {} })) });
      }
    },
    turn: async (connection) => {
      const { jobs } = await connection.ask('POST', '/_jobs/bench/_accept', { timeout: 0 });
      if (jobs.length === 0) return 0;
      await connection.ask('POST', `/_jobs/bench/${jobs[0].id}/_finish`, { lock: jobs[0].lock });
      return 1;
    },
  },
};
const COUNTED = {
  commits: 'divan_store_commits_total',
  'round trips': 'divan_store_round_trips_total',
  conflicts: 'divan_store_conflicts_total',
  'of them of the feed of updates': 'divan_global_changes_conflicts_total',
};

async function counts(servers) {
  const sums = {};
  for (const [name, metric] of Object.entries(COUNTED)) {
    sums[name] = 0;
    for (const server of servers) sums[name] += await server.metric(metric);
  }
  return sums;
}

async function measure(servers, { prepare, turn, connections = CONNECTIONS }) {
  await prepare?.(servers[0]);
  const open = await Promise.all(Array.from({ length: connections }, (_, i) => Connection.open(servers[i % servers.length])));
  const before = await counts(servers);
  const began = performance.now();
  const end = began + SECONDS * 1000;
  let done = 0;
  await Promise.all(
    open.map(async (connection) => {
      for (let more = true; more && performance.now() < end; ) {
        const operations = await turn(connection);
        done += operations;
        more = operations > 0;
      }
      connection.close();
    }),
  );
  const seconds = (performance.now() - began) / 1000;
  const after = await counts(servers);
  const each = Object.fromEntries(Object.keys(COUNTED).map((name) => [name, (after[name] - before[name]) / done]));
  return { rate: done / seconds, each };
}

export async function run() {
  const file = process.env.FDB_CLUSTER_FILE;
  if (!file) {
    console.error('  skipped: FDB_CLUSTER_FILE is not set. It names the cluster file of a FoundationDB to measure on.');
    return [];
  }
  const rates = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, {}]));
  for (const processes of PROCESSES) {
    const settings = { DIVAN_DIVAN_STORE: `fdb:${file}`, DIVAN_FDB_NAME: `bench ${randomBytes(4).toString('hex')}` };
    const servers = [];
    try {
      for (let i = 0; i < processes; ++i) servers.push(await Server.start(`cluster-${i}`, settings));
      await servers[0].ask('PUT', '/bench');
      for (const body of bulkBodies(small(READ))) await servers[0].send('POST', '/bench/_bulk_docs', body);
      for (const [kind, how] of Object.entries(KINDS)) {
        const { rate, each } = await measure(servers, how);
        rates[kind][processes] = rate;
        const costs = Object.entries(each).map(([name, value]) => `${value.toPrecision(3)} ${name}`);
        console.error(`  ${processes} processes: ${Math.round(rate)} ${kind}/s; each ${costs.join(', ')}`);
      }
      await servers[0].ask('DELETE', '/bench');
    } finally {
      for (const server of servers) await server.stop();
    }
  }
  const [one, ...more] = PROCESSES;
  return Object.entries(rates).flatMap(([kind, rate]) => [
    figure(`cluster: ${kind}, ${one} process`, rate[one], 'a second'),
    ...more.map((processes) => figure(`cluster: ${kind}, ${processes} processes beside ${one}`, rate[processes] / rate[one], '×')),
  ]);
}
