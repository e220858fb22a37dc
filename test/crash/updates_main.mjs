// The feed of all databases with many kills: hundreds of small writes to many databases that are created and
// deleted, a kill at a random time, a restart, and checks of the feed and its consumers.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { run_arguments } from './arguments.mjs';
import { Catalog } from './catalog.mjs';
import { Client, check, sleep } from './client.mjs';
import { path_of } from './documents.mjs';
import { Actor, Load } from './load.mjs';
import { Random } from './random.mjs';
import { Server } from './server.mjs';
import { UpdatesFollower, verify_updates } from './updates.mjs';

const kKills = process.env.DIVAN_LONG === '1' ? 200 : 20;
const kWriters = 8;
const kDatabasesOfAWriter = 12;
const kVerifyDirectoryEvery = 10;
const kKillStartEvery = 6;

const { buildDir, kills, seed, directory } = run_arguments(kKills);

/** Writes to databases that no other actor writes to: single documents, a few at once, creations and deletions. */
class ManyWriter extends Actor {
  async step() {
    const { catalog } = this.world;
    const name = `${this.name}-${this.random.below(kDatabasesOfAWriter)}`;
    if (!catalog.get(name)) {
      await catalog.create(this.client, name);
      this.world.acknowledged('create');
    } else if (this.random.chance(0.05)) {
      await catalog.remove(this.client, name);
      this.world.acknowledged('delete');
    } else if (this.random.chance(0.2)) {
      const docs = Array.from({ length: this.random.between(2, 20) }, () => ({}));
      await this.call('POST', `${path_of(name)}/_bulk_docs`, { docs }, [201]);
      this.world.acknowledged('bulk');
    } else {
      await this.call('POST', path_of(name), {}, [201]);
      this.world.acknowledged('put');
    }
  }
}

const server = new Server(buildDir, path.join(directory, 'data'), path.join(directory, 'log'));
const counts = { kills: 0, 'of them while starting': 0 };
const world = {
  server,
  random: new Random(seed),
  catalog: new Catalog(),
  stopped: false,
  acknowledged(kind) {
    const name = `acknowledged: ${kind}`;
    counts[name] = (counts[name] ?? 0) + 1;
  },
};
const client = new Client(server);
const writers = Array.from({ length: kWriters }, (_, i) => new ManyWriter(world, `many-${i}`));
const followers = ['continuous', 'eventsource', 'longpoll'].flatMap((feed) => [
  new UpdatesFollower(world, feed, feed),
  new UpdatesFollower(world, `restless ${feed}`, feed, true),
]);

async function kill_while_starting() {
  server.launch();
  await sleep(world.random.below(150));
  await server.kill_and_wait();
  ++counts.kills;
  ++counts['of them while starting'];
}

function verify_directory() {
  const { status, stdout, stderr } = spawnSync(path.join(buildDir, 'divan'), ['verify', '--quiet', server.dataDir]);
  check(status === 0, () => `\`divan verify\` says after the kill:\n${stdout}${stderr}`);
}

async function run() {
  await server.start();
  for (let round = 1; counts.kills < kills; ++round) {
    const load = new Load(world, [...writers, ...followers]);
    load.start();
    await sleep(world.random.between(10, 500));
    server.kill();
    await load.stop();
    await server.gone();
    client.close();
    ++counts.kills;
    if (round % kVerifyDirectoryEvery === 0) verify_directory();
    if (round % kKillStartEvery === 0) await kill_while_starting();
    await server.start();
    await world.catalog.verify_names(client);
    counts['rows in the feed'] = await verify_updates(client, world.catalog, followers);
  }
  client.close();
  await server.stop();
  check(server.errors().length === 0, `the log tells of errors:\n${server.errors().join('\n')}`);
  for (const { name, connections, rows } of followers) {
    check(rows > 0, `${name} has seen nothing`);
    counts[`rows over ${connections} connections of "${name}"`] = rows;
  }
}

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
try {
  await run();
  fs.rmSync(directory, { recursive: true });
  const summary = Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(', ');
  console.log(`/_db_updates missed nothing (seed ${seed}): ${summary}; slowest start ${server.slowestStartMs} ms.`);
} catch (error) {
  console.error(`FAILED with seed ${seed} after ${counts.kills} kills: ${error.stack}`);
  console.error(`The data and the log are in ${directory}`);
  process.exit(1);
}
