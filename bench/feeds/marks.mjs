// Whether the marks for /_db_updates cost the writers of a hot database anything: 32 connections write to one
// database, with the feed recorded and without, alternating, each time to a new database.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { ownSeconds } from '../support/cpu.mjs';
import { figure, median } from '../support/figures.mjs';
import { Server } from '../support/server.mjs';

const CONNECTIONS = 32;
const SECONDS = 2; // short runs, so that the load of the machine changes little between two of them
const ROUNDS = Number(process.env.DIVAN_BENCH_ROUNDS ?? 15);
const BATCHES = { 'single PUTs': 1, '10 documents a request': 10 };

async function drive(server, database, batch) {
  await server.send('PUT', `/${database}`);
  const before = ownSeconds(server.pid);
  const { stdout } = await promisify(execFile)('wrk', [
    '-t', '1', '-c', String(CONNECTIONS), '-d', `${SECONDS}s`, '-H', `Authorization: ${server.authorization}`,
    '-s', 'bench/feeds/put.lua', server.url, '--', database, String(batch),
  ]);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(stdout);
  const seconds = ownSeconds(server.pid) - before;
  const { doc_count: documents } = await server.ask('GET', `/${database}`);
  const rate = Number(stdout.match(/Requests\/sec:\s+([\d.]+)/)[1]) * batch;
  await server.send('DELETE', `/${database}`);
  return { rate, micros: (seconds * 1e6) / documents };
}

async function compare(server, name, batch) {
  const results = { true: [], false: [] };
  for (let round = -1; round < ROUNDS; ++round) {
    // Alternate the order, so that after-effects of a run do not always affect the same side.
    for (const recording of round % 2 ? ['true', 'false'] : ['false', 'true']) {
      await server.send('PUT', '/_node/_local/_config/global_changes/update_db', JSON.stringify(recording));
      const result = await drive(server, `hot-${batch}-${round + 1}-${recording}`, batch);
      if (round < 0) continue; // warm-up
      results[recording].push(result);
      const { rate, micros } = result;
      console.error(`  ${name}, update_db=${recording}: ${Math.round(rate)} documents/s, ${micros.toFixed(1)} µs CPU each`);
    }
  }
  const of = (recording, member) => results[recording].map((result) => result[member]);
  const ratio = (member) => of('true', member).map((value, i) => value / of('false', member)[i]);
  const rates = ratio('rate');
  const micros = ratio('micros');
  const base = `feeds: ${CONNECTIONS} writers of a database, ${name}`;
  return [
    figure(`${base}, update_db=true`, median(of('true', 'rate')), 'documents/s', { of: of('true', 'rate') }),
    figure(`${base}, update_db=false`, median(of('false', 'rate')), 'documents/s', { of: of('false', 'rate') }),
    figure(`${base}, with the feed to without`, median(rates), '× documents/s', { least: 0.95, of: rates }),
    figure(`${base}, update_db=true`, median(of('true', 'micros')), 'CPU µs/document', { of: of('true', 'micros') }),
    figure(`${base}, update_db=false`, median(of('false', 'micros')), 'CPU µs/document', { of: of('false', 'micros') }),
    figure(`${base}, CPU with the feed to without`, median(micros), '× CPU', { most: 1.05, of: micros }),
  ];
}

export async function run() {
  const server = await Server.start('marks');
  const figures = [];
  for (const [name, batch] of Object.entries(BATCHES)) figures.push(...(await compare(server, name, batch)));
  await server.stop();
  return figures;
}
