// Writes of one document each, synced, over 32 and 64 connections, beside the same in PostgreSQL: pgbench with as many
// clients and a prepared INSERT of the same document as jsonb. And one PUT after the other on one connection, beside a
// server that only appends the request to a file and syncs it.
import { execFile, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';

import { contextSwitches, cpu, threads } from './support/cpu.mjs';
import { Requests } from './support/feed_socket.mjs';
import { figure, median } from './support/figures.mjs';
import { BIN, Postgres } from './support/postgres.mjs';
import { firstMatch, Server } from './support/server.mjs';

const SECONDS = Number(process.env.DIVAN_BENCH_SECONDS ?? 4);
const ROUNDS = Number(process.env.DIVAN_BENCH_ROUNDS ?? 5);
const ALONE = 1000; // requests, one after the other

const VALIDATION = "function (doc, old, user) { if (typeof doc.n !== 'number') throw {forbidden: 'n must be a number'}; }";

const SCRIPT = 'build/bench/insert.sql';
const INSERT = `\\set n random(1, 1000000000)
INSERT INTO documents (id, doc) VALUES (gen_random_uuid()::text, jsonb_build_object('type', 'order', 'n', :n::bigint,
  'tags', jsonb_build_array('a', 'bb'), 'text', repeat('x', 170)));
`;

// What the process used, with its children, for each of the requests that `drive` returns the number of. (The
// switches do not include children.)
async function measured(pid, drive) {
  const before = { seconds: cpu(pid).all, switches: contextSwitches(pid) };
  const began = performance.now();
  const requests = await drive();
  const elapsed = (performance.now() - began) / 1000;
  return {
    rate: requests / elapsed,
    micros: ((cpu(pid).all - before.seconds) * 1e6) / requests,
    switches: (contextSwitches(pid) - before.switches) / requests,
  };
}

async function wrk(server, connections, path, script = [], args = []) {
  const options = ['-t', '1', '-c', String(connections), '-d', `${SECONDS}s`, '-H', `Authorization: ${server.authorization}`];
  const { stdout } = await promisify(execFile)('wrk', [...options, ...script, server.url + path, ...args]);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(stdout);
  return Number(stdout.match(/(\d+) requests in/)[1]);
}

export async function run() {
  const server = await Server.start('put');
  await server.send('PUT', '/documents');
  await server.send('PUT', '/documents/one', '{"type":"order"}');
  await server.send('PUT', '/validated');
  await server.send('PUT', '/validated/_design/v', JSON.stringify({ validate_doc_update: VALIDATION }));
  const postgres = await Postgres.start('put');
  postgres.query('CREATE TABLE documents (id text PRIMARY KEY, doc jsonb NOT NULL)');
  writeFileSync(SCRIPT, INSERT);

  let round = 0;
  const puts = (connections, database = '/documents') => () =>
    wrk(server, connections, '', ['-s', 'bench/support/put.lua'], ['--', database, `${connections}-${round}`]);
  const inserts = (clients) => async () => {
    const { stdout } = await promisify(execFile)(`${BIN}/pgbench`, [
      ...postgres.connection, '-n', '-M', 'prepared', '-c', String(clients), '-j', '1', '-T', String(SECONDS), '-f', SCRIPT]);
    return Number(stdout.match(/actually processed: (\d+)/)[1]);
  };
  const sync = spawn('node', ['bench/support/sync_server.mjs', 'build/bench/sync'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const least = { url: await firstMatch(sync, /(http\S+)/), authorization: server.authorization };
  const alone = (to) => async () => {
    const requests = await Requests.connect(to);
    const body = JSON.stringify({ type: 'order', n: 1, tags: ['a', 'bb'], text: 'x'.repeat(170) });
    for (let i = 0; i < ALONE; ++i) await requests.send('PUT', `/documents/alone-${round}-${i}`, body);
    requests.close();
    return ALONE;
  };
  const cases = {
    'PUT, 32 connections': [server.pid, puts(32)],
    'PostgreSQL INSERT, 32 connections': [postgres.pid, inserts(32)],
    'PUT, 64 connections': [server.pid, puts(64)],
    'PostgreSQL INSERT, 64 connections': [postgres.pid, inserts(64)],
    'PUT with validation, 64 connections': [server.pid, puts(64, '/validated')],
    'GET, 32 connections': [server.pid, () => wrk(server, 32, '/documents/one')],
    'one PUT after the other': [server.pid, alone(server)],
    'one request to a file, synced': [sync.pid, alone(least)],
  };
  const results = Object.fromEntries(Object.keys(cases).map((name) => [name, []]));
  for (; round < ROUNDS; ++round) {
    for (const [name, [pid, drive]] of Object.entries(cases)) {
      const result = await measured(pid, drive);
      results[name].push(result);
      const { rate, micros, switches } = result;
      console.error(`  ${name}: ${Math.round(rate)}/s, ${micros.toFixed(1)} µs CPU, ${switches.toFixed(2)} context switches each`);
    }
  }
  console.error(`  threads of the server: ${threads(server.pid)}`);
  sync.kill();
  await postgres.stop();
  await server.stop();

  const aims = { 'PUT, 32 connections': 60, 'PUT, 64 connections': 60, 'GET, 32 connections': 35 };
  const figures = [];
  for (const [name, of] of Object.entries(results)) {
    const values = (field) => of.map((result) => result[field]);
    const add = (field, unit, aim) => figures.push(figure(`put: ${name}`, median(values(field)), unit, { ...aim, of: values(field) }));
    add('rate', 'requests/s');
    add('micros', 'CPU µs/request', { most: aims[name] });
    if (name.startsWith('PUT')) add('switches', 'context switches/request', { most: 1 });
  }
  const times = (name) => results[name].map(({ rate }) => 1 / rate);
  const ratios = times('one PUT after the other').map((time, i) => time / times('one request to a file, synced')[i]);
  figures.push(figure('put: one PUT, to a request to a file', median(ratios), '× time', { most: 1.3, of: ratios }));
  return figures;
}
