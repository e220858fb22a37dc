// Kills a server repeatedly while it works, restarts it on its data directory, and compares its data with all
// acknowledged writes.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { run_arguments } from './arguments.mjs';
import { AttachmentWriter, kAttached, verify_attachments } from './attachments.mjs';
import { Catalog } from './catalog.mjs';
import { Client, check, sleep, until } from './client.mjs';
import { compare_seq, path_of } from './documents.mjs';
import { Holder, JobAdder, JobWorker, Jobs, RegisteredWorker, Registrar } from './jobs.mjs';
import { Load } from './load.mjs';
import { Random } from './random.mjs';
import { Server } from './server.mjs';
import { UpdatesFollower, verify_updates } from './updates.mjs';
import { design_body, slow_design_body, verify_views } from './views.mjs';
import {
  BulkWriter, ChangesFollower, ChurnWriter, DesignWriter, HotWriter, LocalWriter, PutWriter, Reader, kStable,
} from './writers.mjs';

const kKills = process.env.DIVAN_LONG === '1' ? 100 : 24;
const kSlow = 'crash-slow'; // whose index takes long to build
const kSlowDocuments = 8000; // several batches of a build
const kSlowRounds = 1000; // of the map function's loop, for one document
const kLoaded = 'crash-loaded'; // what `divan load` writes to
const kLoadedLines = 20_000;
const kVerifyViewsEvery = 7;
const kKillStartEvery = 5;

const { buildDir, kills, seed, directory } = run_arguments(kKills);

const random = new Random(seed);
const server = new Server(buildDir, path.join(directory, 'data'), path.join(directory, 'log'));
const counts = { kills: 0, 'of them while starting': 0, documents: 0, views: 0, jobs: 0, 'resumed builds': 0 };
const world = {
  server,
  random,
  catalog: new Catalog(),
  jobs: new Jobs(),
  written: 0,
  stopped: false,
  acknowledged(kind) {
    const name = `acknowledged: ${kind}`;
    counts[name] = (counts[name] ?? 0) + 1;
  },
};
const client = new Client(server);
const changesFollower = new ChangesFollower(world, 'changes');
const updatesFollower = new UpdatesFollower(world, 'updates', 'continuous');
const registrar = new Registrar(world, 'registrar');
const holder = new Holder(world, 'holder');
const actors = [
  ...[1, 2, 3].map((n) => new PutWriter(world, `put ${n}`)),
  ...[1, 2].map((n) => new BulkWriter(world, `bulk ${n}`)),
  ...[1, 2].map((n) => new HotWriter(world, `hot ${n}`)),
  new ChurnWriter(world, 'churn'),
  ...[1, 2].map((n) => new AttachmentWriter(world, `attachments ${n}`)),
  new DesignWriter(world, 'design'),
  new LocalWriter(world, 'local'),
  new Reader(world, 'reader'),
  new JobAdder(world, 'adder'),
  ...[1, 2].map((n) => new JobWorker(world, `worker ${n}`)),
  new RegisteredWorker(world, 'registered'),
  registrar,
  holder,
  changesFollower,
  updatesFollower,
];

async function fill_slow() {
  const database = await world.catalog.create(client, kSlow);
  for (let from = 0; from < kSlowDocuments; from += 1000) {
    const attempts = Array.from({ length: 1000 }, (_, i) =>
      database.attempt(`s${from + i}`, null, JSON.stringify({ n: from + i, k: `g${i % 7}`, v: i })));
    const docs = attempts.map(({ id, body }) => ({ _id: id, ...JSON.parse(body) }));
    const { json } = await client.call('POST', `${path_of(kSlow)}/_bulk_docs`, { docs }, [201]);
    json.forEach((result, i) => database.acknowledged(attempts[i], result.rev));
  }
}

async function prepare() {
  for (const name of kStable) {
    const database = await world.catalog.create(client, name);
    const attempt = database.attempt('_design/rows', null, design_body(0));
    const path_ = `${path_of(name)}/_design/rows`;
    database.acknowledged(attempt, (await client.call('PUT', path_, attempt.body, [201])).json.rev);
  }
  world.catalog.others.add(kAttached);
  await client.call('PUT', `/${kAttached}`, undefined, [201]);
  await fill_slow();
  await world.jobs.declare(client);
}

/** Checks everything that is certain as soon as the server runs again. */
async function verify() {
  counts.documents += await world.catalog.verify(client);
  await verify_attachments(client);
  counts.jobs += await world.jobs.verify(client);
  await changesFollower.verify(client);
  await verify_updates(client, world.catalog, [updatesFollower]);
  await registrar.verify(client);
  await holder.verify_gone(client);
}

async function verify_indexes() {
  for (const name of [...kStable, kSlow]) counts.views += await verify_views(client, world.catalog.get(name));
}

// All actors work, and the server is killed at a random time.
async function kill_under_load(moment) {
  const load = new Load(world, actors);
  load.start();
  await moment();
  server.kill();
  await load.stop();
}

const slow_info = async () => (await client.get(`${path_of(kSlow)}/_design/slow/_info`)).view_index;

// The server is killed after some batches of an index build, which continues from there.
async function round_of_build(variant) {
  const database = world.catalog.get(kSlow);
  const design = database.document('_design/slow');
  const attempt = database.attempt('_design/slow', design.tip?.rev ?? null, slow_design_body(kSlowRounds, variant));
  const query = design.tip ? `?rev=${design.tip.rev}` : '';
  const answer = await client.call('PUT', `${path_of(kSlow)}/_design/slow${query}`, attempt.body, [201]);
  database.acknowledged(attempt, answer.json.rev);
  const least = random.below(kSlowDocuments / 2);
  let before = null;
  await kill_under_load(() => until('an index is being built', async () => {
    before = await slow_info();
    return before.updates_pending.total < kSlowDocuments - least;
  }, 120_000, 1));
  return async () => {
    const seen = before.update_seq;
    const after = await until('the index that was being built is complete', async () => {
      const info = await slow_info();
      check(compare_seq(info.update_seq, before.update_seq) >= 0, () =>
        `an index was at ${before.update_seq}, and after the kill at ${seen} is at ${info.update_seq}`);
      before = info;
      return info.updates_pending.total === 0 && !info.updater_running && info;
    }, 120_000, 1);
    // The last run's share, unless the first one had completed: a run without work reports no progress.
    if ((after.build.progress?.total_changes ?? 0) < kSlowDocuments) ++counts['resumed builds'];
  };
}

// `divan load` writes a file's lines. The loaded documents are complete; a second run loads the rest.
function start_load() {
  const file = path.join(directory, 'lines.json');
  if (!fs.existsSync(file)) {
    const lines = Array.from({ length: kLoadedLines }, (_, i) => JSON.stringify({ _id: `line ${i}`, n: i, pad: 'x'.repeat(i % 700) }));
    fs.writeFileSync(file, lines.join('\n') + '\n');
  }
  const loader = spawn(path.join(buildDir, 'divan'), [
    'load', '--url', `http://127.0.0.1:${server.port}`, '--user', server.credentials, '--quiet', kLoaded, file,
  ], { stdio: 'ignore' });
  return new Promise((resolve) => loader.on('exit', (code) => resolve(code)));
}

async function verify_loaded(least) {
  const { rows } = await client.get(`${path_of(kLoaded)}/_all_docs?include_docs=true`);
  check(rows.length >= least, `of ${least} lines that \`divan load\` had written ${rows.length} are left`);
  for (const { id, doc } of rows) {
    check(id === `line ${doc.n}` && doc.pad.length === doc.n % 700, `${kLoaded}/${id} is not what was loaded`);
  }
  return rows.length;
}

async function round_of_divan_load() {
  const ended = start_load();
  const count = async () => (await client.call('GET', path_of(kLoaded), undefined, [200, 404])).json.doc_count ?? 0;
  const least = random.below(kLoadedLines / 2);
  const written = await until('lines are loaded', async () => ((await count()) > least) && count(), 120_000, 1);
  server.kill();
  check((await ended) !== 0, '`divan load` does not say that its server died');
  return async () => {
    world.catalog.present.get(kLoaded) ?? world.catalog.created(kLoaded);
    await verify_loaded(written);
    await start_load();
    check((await verify_loaded(kLoadedLines)) === kLoadedLines, 'a repeated `divan load` does not load the rest');
    await world.catalog.remove(client, kLoaded);
  };
}

// Verifies the rows after the kill, before the next server starts.
function verify_directory() {
  const { status, stdout, stderr } = spawnSync(path.join(buildDir, 'divan'), ['verify', '--quiet', server.dataDir]);
  check(status === 0, () => `\`divan verify\` says after the kill:\n${stdout}${stderr}`);
}

async function kill_while_starting() {
  server.launch();
  await sleep(random.below(250));
  await server.kill_and_wait();
  ++counts.kills;
  ++counts['of them while starting'];
}

async function run() {
  // A data directory that is being created.
  for (let i = 0; i < 3; ++i) await kill_while_starting();
  await server.start();
  await prepare();
  for (let round = 1; counts.kills < kills; ++round) {
    let then = async () => {};
    if (round % 4 === 2) then = await round_of_build(round);
    else if (round % 10 === 5) then = await round_of_divan_load();
    else await kill_under_load(() => sleep(random.between(100, 1500)));
    await server.gone();
    client.close();
    ++counts.kills;
    verify_directory();
    if (round % kKillStartEvery === 0) await kill_while_starting();
    await server.start();
    await then();
    await verify();
    if (round % kVerifyViewsEvery === 0) await verify_indexes();
  }
  await world.jobs.drain(client);
  await verify_indexes();
  await verify();
  client.close();
  await server.stop();
  check(server.errors().length === 0, `the log tells of errors:\n${server.errors().join('\n')}`);
  // Otherwise builds are too fast for this test.
  check(counts['resumed builds'] > 0 || kills < 10, 'no build was interrupted');
}

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
try {
  await run();
  fs.rmSync(directory, { recursive: true });
  const summary = Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(', ');
  console.log(`Nothing was lost (seed ${seed}): ${summary}; slowest start ${server.slowestStartMs} ms.`);
} catch (error) {
  console.error(`FAILED with seed ${seed} after ${counts.kills} kills: ${error.stack}`);
  console.error(`The data and the log are in ${directory}`);
  process.exit(1);
}
