// Replication between two servers, and within one: throughput, attachments, latency, and what waiting costs. CouchDB 3.5 copied 980
// small documents a second on two such cores, with a median latency of 95 ms (docs/benchmarks.md).
import http from 'node:http';
import { cpu, residentBytes as memory } from './support/cpu.mjs';
import { bulkBodies, load, small } from './support/documents.mjs';
import { figure, median, percentile } from './support/figures.mjs';
import { Server } from './support/server.mjs';

const DOCUMENTS = Number(process.env.DIVAN_BENCH_DOCUMENTS ?? 100_000);
const ATTACHMENTS = 8;
const ATTACHMENT_BYTES = Number(process.env.DIVAN_BENCH_ATTACHMENT_BYTES ?? 128_000_000);
const IDLE = 1000;
const IDLE_SECONDS = 20;
const LATENCIES = 200;
const COUCHDB_PER_SECOND = 980;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const remote = (server, database) => ({ url: `${server.url}/${database}`, auth: { basic: { username: 'admin', password: server.password } } });

async function throughput(a, b) {
  await a.send('PUT', '/source');
  await load(a, 'source', bulkBodies(small(DOCUMENTS)));
  const figures = [];
  for (const [name, server, source, target, times] of [['local', a, 'source', 'local', 50], ['push', a, 'source', remote(b, 'pushed'), 20], ['pull', b, remote(a, 'source'), 'pulled', 20]]) {
    const before = cpu(a.pid).all + cpu(b.pid).all;
    const start = performance.now();
    const { history } = await server.ask('POST', '/_replicate', { source, target, create_target: true });
    const seconds = (performance.now() - start) / 1000;
    if (history[0].docs_written !== DOCUMENTS) throw new Error(JSON.stringify(history[0]));
    figures.push(figure(`replication: ${name}`, DOCUMENTS / seconds, 'documents/s', { least: times * COUCHDB_PER_SECOND }));
    figures.push(figure(`replication: ${name}`, ((cpu(a.pid).all + cpu(b.pid).all - before) * 1e6) / DOCUMENTS, 'CPU µs/document'));
  }
  return figures;
}

function upload(server, path) {
  const piece = Buffer.alloc(1 << 20, 'no text that compresses: '.repeat(40) + Math.random());
  return new Promise((resolve, reject) => {
    const request = http.request(
      server.url + path,
      { method: 'PUT', headers: { Authorization: server.authorization, 'Content-Type': 'image/png', 'Content-Length': ATTACHMENT_BYTES } },
      (response) => response.resume().on('end', () => (response.statusCode === 201 ? resolve() : reject(new Error(`${path}: ${response.statusCode}`)))),
    );
    request.on('error', reject);
    let left = ATTACHMENT_BYTES;
    const write = () => {
      while (left > 0) {
        const bytes = piece.subarray(0, Math.min(left, piece.length));
        bytes.writeUInt32LE(left >>> 0);
        left -= bytes.length;
        if (!request.write(Buffer.from(bytes))) return request.once('drain', write);
      }
      request.end();
    };
    write();
  });
}

async function attachments(a, b) {
  await a.send('PUT', '/files');
  for (let n = 0; n < ATTACHMENTS; ++n) await upload(a, `/files/f${n}/content`);
  const figures = [];
  for (const [name, server, source, target] of [['local', a, 'files', 'files-local'], ['push', a, 'files', remote(b, 'files-pushed')], ['pull', b, remote(a, 'files'), 'files-pulled']]) {
    const before = cpu(a.pid).all + cpu(b.pid).all;
    const memories = [a, b].map((one) => memory(one.pid));
    let most = 0;
    let isDone = false;
    const done = server.ask('POST', '/_replicate', { source, target, create_target: true }).finally(() => (isDone = true));
    while (!isDone) {
      most = Math.max(most, ...[a, b].map((one, i) => memory(one.pid) - memories[i]));
      await pause(50);
    }
    const { history } = await done;
    if (history[0].docs_written !== ATTACHMENTS) throw new Error(JSON.stringify(history[0]));
    const used = cpu(a.pid).all + cpu(b.pid).all - before;
    figures.push(figure(`replication: attachments, ${name}`, (ATTACHMENTS * ATTACHMENT_BYTES) / 1e6 / used, 'MB/CPU second'));
    figures.push(figure(`replication: attachments, ${name}, memory`, most / 1e6, 'MB more'));
  }
  return figures;
}

// From the response to a write until a feed of the target shows it.
async function latency(writer, database, reader, copy) {
  const times = [];
  let { last_seq: since } = await reader.ask('GET', `/${copy}/_changes?limit=0`);
  for (let n = 0; n < LATENCIES; ++n) {
    const arrived = reader.ask('GET', `/${copy}/_changes?feed=longpoll&since=${since}`);
    await pause(5);
    const start = performance.now();
    await writer.ask('PUT', `/${database}/l${n}`, { n });
    ({ last_seq: since } = await arrived);
    times.push(performance.now() - start);
  }
  return times;
}

async function latencies(a, b) {
  const figures = [];
  for (const [name, server, reader, source, target] of [['local', a, a, 'live', 'live-local'], ['push', a, b, 'live-push', remote(b, 'live-pushed')], ['pull', b, b, remote(a, 'live-pull'), 'live-pulled']]) {
    const database = source.url ? 'live-pull' : source;
    const copy = target.url ? 'live-pushed' : target;
    await a.send('PUT', `/${database}`);
    await reader.send('PUT', `/${copy}`);
    await server.ask('POST', '/_replicate', { source, target, continuous: true });
    await pause(1000);
    const times = await latency(a, database, reader, copy);
    figures.push(figure(`replication: latency, ${name}, median`, median(times), 'ms', { most: 10 }));
    figures.push(figure(`replication: latency, ${name}, 99 %`, percentile(times, 0.99), 'ms'));
  }
  return figures;
}

async function idle(kind, other) {
  const server = await Server.start(`replication-idle-${kind}`);
  await server.send('PUT', '/_replicator');
  const source = other ?? server;
  for (let n = 0; n < IDLE; ++n) await source.send('PUT', `/idle${n}`);
  for (let n = 0; n < IDLE; ++n) await server.send('PUT', `/copy${n}`);
  await pause(3000);
  const before = memory(server.pid);
  const docs = Array.from({ length: IDLE }, (_, n) => ({ _id: `r${n}`, source: other ? remote(other, `idle${n}`) : `idle${n}`, target: `copy${n}`, continuous: true }));
  await server.ask('POST', '/_replicator/_bulk_docs', { docs });
  const running = async () => (await server.ask('GET', '/_scheduler/jobs?limit=1')).jobs.length === 1 && (await server.ask('GET', '/_scheduler/docs?states=running')).docs.length;
  while ((await running()) !== IDLE) await pause(500);
  await pause(15_000);
  const each = (memory(server.pid) - before) / IDLE;
  const used = cpu(server.pid).all;
  await pause(IDLE_SECONDS * 1000);
  const percent = ((cpu(server.pid).all - used) / IDLE_SECONDS) * 100;
  await server.stop();
  return [
    figure(`replication: ${IDLE} idle ones, ${kind}, memory of each`, each / 1000, 'kB', { most: 30 }),
    figure(`replication: ${IDLE} idle ones, ${kind}`, percent, '% of a core'),
  ];
}

export async function run() {
  const a = await Server.start('replication-a');
  const b = await Server.start('replication-b');
  const figures = [...(await throughput(a, b)), ...(await latencies(a, b)), ...(await attachments(a, b))];
  figures.push(...(await idle('local')));
  figures.push(...(await idle('remote', a)));
  await a.stop();
  await b.stop();
  return figures;
}
