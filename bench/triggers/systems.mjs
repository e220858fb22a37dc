// The two systems that are compared, and how each of them turns writes into jobs.
import * as divanSystem from '../jobs/systems/divan.mjs';
import * as graphileSystem from '../jobs/systems/graphile.mjs';

// Starts both, and stops them when `measure(divan, graphile)` has ended, even if it throws. `settings` are environment variables of Divan.
export async function withBoth(measure, settings) {
  const [divan] = divanSystem.create.map((create) => create());
  const [graphile] = graphileSystem.create.map((create) => create());
  try {
    await divan.start(settings);
    await graphile.start();
    for (const { name, version } of [divan, graphile]) console.error(`  ${name} ${version}`);
    return await measure(divan, graphile);
  } finally {
    for (const system of [divan, graphile]) if (system.pid) await system.stop();
  }
}

// A database with a trigger for the documents that `selector` selects, all if it is undefined. The design document is `t`, so is the trigger.
export async function createDatabase({ server }, database, { selector, type, data }) {
  await server.ask('PUT', `/_jobs/${type}`, {});
  await server.ask('PUT', `/${database}`);
  await server.ask('PUT', `/${database}/_design/t`, { triggers: { t: { selector, job: { type, data } } } });
}

export async function createTable({ postgres }, table) {
  await postgres.query(`create table ${table} (id text primary key, doc jsonb not null)`);
}

// The same as the trigger of createDatabase(), in PostgreSQL. `when` is a condition of `new`, the row; `data(row)` is an expression of the row of that name.
export async function createTrigger({ postgres }, table, { when = 'true', task, data }) {
  await postgres.query(`create function ${table}_job() returns trigger language plpgsql as $$
    begin perform graphile_worker.add_job('${task}', ${data('new')}); return null; end $$`);
  await postgres.query(`create trigger job after insert on ${table} for each row when (${when}) execute function ${table}_job()`);
}

// One that is called once for all rows of an INSERT, and adds their jobs at once: the fastest that graphile-worker has.
export async function createStatementTrigger({ postgres }, table, { task, data }) {
  const spec = `row('${task}', ${data('one')}, null, null, null, null, null, null)::graphile_worker.job_spec`;
  await postgres.query(`create function ${table}_job() returns trigger language plpgsql as $$
    begin perform graphile_worker.add_jobs(array(select ${spec} from inserted one)); return null; end $$`);
  await postgres.query(`create trigger job after insert on ${table} referencing new table as inserted for each statement execute function ${table}_job()`);
}
