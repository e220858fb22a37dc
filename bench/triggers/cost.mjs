// The processor time of the servers for documents that a trigger turns into jobs, which no worker accepts, and for the same documents without a trigger.
import pg from 'pg';

import { pause } from '../jobs/instance.mjs';
import { bulkBodies, load, small } from '../support/documents.mjs';
import { figure, median } from '../support/figures.mjs';
import { createDatabase, createStatementTrigger, createTable, createTrigger, withBoth } from './systems.mjs';

const DOCUMENTS = Number(process.env.DIVAN_BENCH_DOCUMENTS ?? 20_000);
const ROUNDS = Number(process.env.DIVAN_BENCH_ROUNDS ?? 3);
const BATCH = 500;
const TITLES = { without: 'without a trigger', triggered: 'with a trigger', statement: 'with a trigger of a statement' };

// Microseconds a document, until half a second after `drive` has ended.
async function measured(system, name, drive) {
  const before = system.cpuSeconds();
  const began = performance.now();
  await drive();
  const seconds = (performance.now() - began) / 1000;
  await pause(500);
  const micros = ((system.cpuSeconds() - before) * 1e6) / DOCUMENTS;
  console.error(`  ${system.name}, ${name}: ${micros.toFixed(1)} µs a document; all done after ${seconds.toFixed(2)} s`);
  return micros;
}

async function untilTriggered({ server }, database) {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const state = await server.ask('GET', `/${database}/_design/t/_trigger/t`);
    if (state.behind === 0 && state.jobs_added === DOCUMENTS) return;
    if (state.waits || performance.now() > deadline) throw new Error(`The trigger has not added all jobs: ${JSON.stringify(state)}`);
    await pause(100);
  }
}

async function inDivan(divan, bodies, kind, round) {
  const database = `${kind}-${round}`;
  const triggered = kind !== 'without';
  if (triggered) await createDatabase(divan, database, { type: database, data: { id: '{_id}', n: '{n}', kind: '{type}' } });
  else await divan.server.ask('PUT', `/${database}`);
  return measured(divan, TITLES[kind], async () => {
    await load(divan.server, database, bodies, 1);
    if (triggered) await untilTriggered(divan, database);
  });
}

async function inPostgres(graphile, batches, kind, round) {
  const table = `${kind}_${round}`;
  await createTable(graphile, table);
  const trigger = { task: table, data: (row) => `json_build_object('id', ${row}.id, 'n', ${row}.doc->'n', 'kind', ${row}.doc->'type')` };
  if (kind === 'triggered') await createTrigger(graphile, table, trigger);
  if (kind === 'statement') await createStatementTrigger(graphile, table, trigger);
  // Its planner knows how many jobs there are, as that of a server which has run for some minutes: otherwise add_job() reads all jobs.
  await graphile.postgres.query('vacuum analyze graphile_worker._private_jobs');
  const client = new pg.Client(graphile.address);
  await client.connect();
  try {
    const text = `insert into ${table} (id, doc) select * from unnest($1::text[], $2::jsonb[])`;
    const micros = await measured({ name: 'PostgreSQL', cpuSeconds: () => graphile.cpuSeconds() }, TITLES[kind], async () => {
      for (const values of batches) await client.query({ name: 'insert', text, values });
    });
    const [{ jobs }] = await graphile.postgres.query('select count(*)::int jobs from graphile_worker.jobs where task_identifier = $1', [table]);
    if (jobs !== (kind === 'without' ? 0 : DOCUMENTS)) throw new Error(`PostgreSQL has added ${jobs} jobs for ${DOCUMENTS} rows.`);
    return micros;
  } finally {
    await client.end();
  }
}

// Arrays of ids and of documents, for an INSERT each.
function batchesOf(documents) {
  const batches = [];
  for (let i = 0; i < documents.length; i += BATCH) {
    const batch = documents.slice(i, i + BATCH);
    batches.push([batch.map((document) => JSON.parse(document)._id), batch]);
  }
  return batches;
}

// The kinds of each system, in the order of the first round.
const SYSTEMS = {
  Divan: ['without', 'triggered'],
  PostgreSQL: ['without', 'triggered', 'statement'],
};

function figures(results) {
  const all = [];
  const extra = (system, kind) => results[system][kind].map((micros, i) => micros - results[system].without[i]);
  for (const [system, kinds] of Object.entries(SYSTEMS)) {
    const add = (title, of) => all.push(figure(`triggers: ${system}, a document: ${title}`, median(of), 'CPU µs', { of }));
    for (const kind of kinds) add(TITLES[kind], results[system][kind]);
    for (const kind of kinds.slice(1)) add(`more ${TITLES[kind]} than without`, extra(system, kind));
  }
  for (const kind of SYSTEMS.PostgreSQL.slice(1)) {
    const peers = extra('PostgreSQL', kind);
    const of = extra('Divan', 'triggered').map((micros, i) => micros / peers[i]);
    all.push(figure(`triggers: what a trigger adds, to PostgreSQL ${TITLES[kind]}`, median(of), '× CPU', { most: 1, of }));
  }
  return all;
}

export function run() {
  return withBoth(async (divan, graphile) => {
    const documents = small(DOCUMENTS);
    const bodies = bulkBodies(documents, BATCH);
    const batches = batchesOf(documents);
    const results = Object.fromEntries(Object.entries(SYSTEMS).map(([system, kinds]) => [system, Object.fromEntries(kinds.map((kind) => [kind, []]))]));
    await graphile.add('backlog', DOCUMENTS);
    for (let round = 0; round < ROUNDS; ++round) {
      const kinds = round % 2 ? [...SYSTEMS.PostgreSQL].reverse() : SYSTEMS.PostgreSQL;
      for (const kind of kinds) {
        if (SYSTEMS.Divan.includes(kind)) results.Divan[kind].push(await inDivan(divan, bodies, kind, round));
        results.PostgreSQL[kind].push(await inPostgres(graphile, batches, kind, round));
      }
    }
    return figures(results);
  });
}
