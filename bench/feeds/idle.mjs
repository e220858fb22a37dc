// Ten thousand continuous feeds that wait: memory, processor time at rest, the cost of one write that wakes many or
// few of them, and heartbeats. Server and client each hold a descriptor for every feed.
import { readFileSync } from 'node:fs';

import { residentBytes, threadSeconds } from '../support/cpu.mjs';
import { figure, median } from '../support/figures.mjs';
import { openFeed } from '../support/feed_socket.mjs';
import { Server } from '../support/server.mjs';

const FEEDS = 10_000;
const DATABASES = 100;
const DESCRIPTORS = FEEDS + 2_000;
const IDLE_SECONDS = 20;
const WRITES = 10;
const BEATING_SECONDS = 10;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Node.js uses, and its children inherit, the hard limit.
function checkLimits() {
  const limit = /Max open files\s+(\S+)/.exec(readFileSync('/proc/self/limits', 'utf8'))[1];
  if (limit === 'unlimited' || Number(limit) >= DESCRIPTORS) return;
  throw new Error(`${FEEDS} feeds need \`ulimit -n ${DESCRIPTORS}\`; it is ${limit} here.`);
}

// Open feeds, and the number of rows and heartbeats received.
class Feeds {
  sockets = [];
  rows = 0;
  beats = 0;

  constructor(server) {
    this.server = server;
  }

  async open(count, path) {
    const take = (text) => {
      // A chunk with only a line feed is a heartbeat.
      if (text.includes('{')) this.rows += text.split('{"seq"').length + text.split('{"db_name"').length - 2;
      else this.beats += text.split('\r\n\n').length - 1;
    };
    for (let i = 0; i < count; i += 100) {
      const opened = Array.from({ length: Math.min(100, count - i) }, (_, k) => openFeed(this.server, path(i + k), take));
      this.sockets.push(...(await Promise.all(opened)));
    }
  }

  async close() {
    for (const socket of this.sockets.splice(0)) socket.destroy();
    while ((await this.server.metric('divan_http_connections')) > 20) await pause(50);
  }
}

const changes = (database, heartbeat = 60_000) =>
  `/db${database}/_changes?feed=continuous&since=now&heartbeat=${heartbeat}`;
const updates = (heartbeat = 60_000) => `/_db_updates?feed=continuous&since=now&heartbeat=${heartbeat}`;

async function used(server, work) {
  const before = threadSeconds(server.pid);
  await work();
  return threadSeconds(server.pid) - before;
}

// Documents are written one after the other; measures the cost of a write until the last of the feeds has it.
async function writes(server, feeds, label, woken, mostReads) {
  const seconds = [];
  const reads = [];
  let slowest = 0;
  for (let i = 0; i < WRITES; ++i) {
    const readsBefore = await server.metric('divan_feed_store_reads_total');
    feeds.rows = 0;
    seconds.push(await used(server, async () => {
      const began = performance.now();
      await server.send('PUT', `/db0/${label.replaceAll(/\W/g, '')}${i}`, '{}');
      while (feeds.rows < woken) await pause(1);
      slowest = Math.max(slowest, performance.now() - began);
      await pause(200); // for follow-up work, such as a second poll
    }));
    if (feeds.rows !== woken) throw new Error(`${label}: ${feeds.rows} rows followed one write; expected ${woken}`);
    if (readsBefore !== undefined) reads.push((await server.metric('divan_feed_store_reads_total')) - readsBefore);
  }
  const milliseconds = seconds.map((value) => value * 1000);
  const count = reads.length > 0 ? `${median(reads)} reads of the store` : 'divan_feed_store_reads_total: no such metric';
  console.error(
    `  one write that wakes ${label}: ${median(milliseconds).toFixed(2)} ms of CPU, ${count}; ` +
      `at most ${slowest.toFixed(0)} ms until the last of them had it, with a client on the same cores`,
  );
  const figures = [figure(`feeds: one write that wakes ${label}`, median(milliseconds), 'CPU ms', { of: milliseconds })];
  if (reads.length > 0) figures.push(figure(`feeds: reads of the store for ${label}`, median(reads), '', { most: mostReads, of: reads }));
  return figures;
}

// No writes to the feed of all databases from here on, so that a write wakes only the feeds of its database.
const updatesOff = (server) => server.send('PUT', '/_node/_local/_config/global_changes/update_db', '"false"');

async function memory(server, feeds) {
  const before = residentBytes(server.pid);
  await feeds.open(FEEDS / 2, (i) => changes(i % DATABASES));
  await pause(1000);
  const between = residentBytes(server.pid);
  await feeds.open(FEEDS / 2, () => updates());
  await pause(1000);
  const after = residentBytes(server.pid);
  const each = (bytes, count) => bytes / count / 1024;
  const kinds = { _changes: each(between - before, FEEDS / 2), _db_updates: each(after - between, FEEDS / 2) };
  console.error(`  memory: ${JSON.stringify({ before, between, after })}, KB each: ${JSON.stringify(kinds)}`);
  return [
    figure(`feeds: memory of an idle feed, ${FEEDS} of them`, each(after - before, FEEDS), 'KB', { most: 7 }),
    ...Object.entries(kinds).map(([name, value]) => figure(`feeds: memory, those of ${name}`, value, 'KB')),
  ];
}

async function heartbeats(server, feeds, without) {
  await feeds.open(FEEDS, (i) => (i % 2 ? updates(1000) : changes(i % DATABASES, 1000)));
  await pause(2000);
  feeds.beats = 0;
  const seconds = await used(server, () => pause(BEATING_SECONDS * 1000));
  const micros = ((seconds - (without * BEATING_SECONDS) / IDLE_SECONDS) * 1e6) / feeds.beats;
  console.error(`  heartbeats: ${feeds.beats} in ${BEATING_SECONDS} s, ${seconds.toFixed(3)} s of CPU`);
  return [figure('feeds: a heartbeat', micros, 'CPU µs')];
}

export async function run() {
  checkLimits();
  const server = await Server.start('idle', { DIVAN_CHTTPD_MAX_CONNECTIONS: String(FEEDS + 1000) });
  for (let i = 0; i < DATABASES; ++i) {
    await server.send('PUT', `/db${i}`);
    await server.send('PUT', `/db${i}/doc`, '{}');
  }
  await pause(1000);
  const feeds = new Feeds(server);
  const without = await used(server, () => pause(IDLE_SECONDS * 1000));
  const nobody = await writes(server, feeds, 'nobody', 0, 0);

  const figures = await memory(server, feeds);
  const connections = await server.metric('divan_http_connections');
  if (connections < FEEDS) throw new Error(`only ${connections} connections are open`);
  const withFeeds = await used(server, () => pause(IDLE_SECONDS * 1000));
  console.error(`  ${IDLE_SECONDS} s at rest: ${without.toFixed(4)} s of CPU, with the feeds ${withFeeds.toFixed(4)} s`);
  const share = ((withFeeds - without) * 1000) / IDLE_SECONDS;
  figures.push(figure(`feeds: CPU of ${FEEDS} idle feeds in a second`, share, 'CPU ms', { most: 1 }), ...nobody);

  const few = FEEDS / 2 / DATABASES;
  const many = FEEDS / 2;
  figures.push(...(await writes(server, feeds, `${few} of a database and ${many} of all databases`, few + many, 2)));
  await updatesOff(server);
  figures.push(...(await writes(server, feeds, `${few} of a database`, few, 1)));
  await feeds.close();
  await feeds.open(many, () => changes(0));
  figures.push(...(await writes(server, feeds, `${many} of a database`, many, 1)));
  await feeds.close();
  figures.push(...(await heartbeats(server, feeds, without)));
  await feeds.close();
  await server.stop();
  return figures;
}
