// Attachments up and down, beside a Node.js server that streams them to files and from them: processor time of both. And the
// memory of a server during uploads.
import { execFile, spawn } from 'node:child_process';
import { createWriteStream, mkdirSync, rmSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import http from 'node:http';
import { promisify } from 'node:util';

import { cpu, peakBytes, residentBytes } from './support/cpu.mjs';
import { figure, median } from './support/figures.mjs';
import { firstMatch, Server } from './support/server.mjs';

const ROUNDS = Number(process.env.DIVAN_BENCH_ROUNDS ?? 3);
const UPLOADS = Number(process.env.DIVAN_BENCH_UPLOADS ?? 1000); // at once
const UPLOAD_BYTES = 1_000_000;
const FILES = 'build/bench/files';
const SIZES = { '1 KB': [1_000, 2_000], '1 MB': [1_000_000, 100], '1 GB': [1_000_000_000, 1] };

async function writeFile(file, bytes) {
  const piece = randomBytes(1_000_000);
  const out = createWriteStream(file);
  for (let left = bytes; left > 0; left -= piece.length) {
    if (!out.write(left < piece.length ? piece.subarray(0, left) : piece)) await new Promise((resolve) => out.once('drain', resolve));
  }
  await new Promise((resolve) => out.end(resolve));
}

// One process of curl for all requests, one after the other.
async function curl(server, requests) {
  const config = requests.map((lines) => ['silent', 'fail', 'output = /dev/null', `header = "Authorization: ${server.authorization}"`, ...lines].join('\n'));
  const child = promisify(execFile)('curl', ['--config', '-']);
  child.child.stdin.end(config.join('\nnext\n'));
  await child;
}

async function measured(server, bytes, requests) {
  const before = cpu(server.pid).all;
  const began = performance.now();
  await curl(server, requests);
  const megabytes = (bytes * requests.length) / 1e6;
  return {
    perSecond: (megabytes * 1000) / (performance.now() - began),
    micros: ((cpu(server.pid).all - before) * 1e6) / (bytes < 1e6 ? requests.length : megabytes),
  };
}

// Uploads that all have sent half before any of them ends.
async function atOnce(server, count) {
  const half = randomBytes(UPLOAD_BYTES / 2);
  const agent = new http.Agent({ keepAlive: true, maxSockets: count });
  const headers = { Authorization: server.authorization, 'Content-Length': UPLOAD_BYTES };
  const uploads = Array.from({ length: count }, (_, i) => {
    const request = http.request(`${server.url}/many/doc-${i}/file`, { method: 'PUT', headers, agent });
    const answered = new Promise((resolve, reject) => {
      request.once('error', reject);
      request.once('response', (response) => {
        response.resume().once('end', () => (response.statusCode === 201 ? resolve() : reject(new Error(`${response.statusCode}`))));
      });
    });
    return { request, answered };
  });
  await Promise.all(uploads.map(({ request }) => new Promise((resolve) => request.write(half, resolve))));
  const middle = residentBytes(server.pid);
  for (const { request } of uploads) request.end(half);
  await Promise.all(uploads.map(({ answered }) => answered));
  agent.destroy();
  return middle;
}

export async function run() {
  rmSync(FILES, { recursive: true, force: true });
  mkdirSync(FILES, { recursive: true });
  const divan = await Server.start('attachments', { DIVAN_COUCHDB_MAX_ATTACHMENT_SIZE: '1073741824' });
  await divan.send('PUT', '/files');
  const node = spawn('node', ['bench/support/file_server.mjs', FILES], { stdio: ['ignore', 'pipe', 'inherit'] });
  const peer = { pid: node.pid, url: await firstMatch(node, /(http\S+)/), authorization: divan.authorization };
  const results = {};
  for (let round = 0; round < ROUNDS; ++round) {
    for (const [size, [bytes, count]] of Object.entries(SIZES)) {
      const file = `${FILES}/source`;
      for (const [name, server, at] of [['Divan', divan, '/files/'], ['Node.js', peer, '/']]) {
        await writeFile(file, bytes); // another one: equal contents are stored once
        const url = (i) => `url = "${server.url}${at}doc-${size.replace(' ', '-')}-${round}-${i}${server === divan ? '/file' : ''}"`;
        const numbers = Array.from({ length: count }, (_, i) => i);
        const up = await measured(server, bytes, numbers.map((i) => [url(i), `upload-file = ${file}`]));
        const down = await measured(server, bytes, numbers.map((i) => [url(i)]));
        for (const [way, { perSecond, micros }] of [['up', up], ['down', down]]) {
          console.error(`  ${size} ${way}, ${name}: ${perSecond.toFixed(1)} MB/s, ${micros.toFixed(0)} µs CPU`);
          const result = (results[`${size} ${way}`] ??= { rates: [], ratios: [], micros: { Divan: [], 'Node.js': [] } });
          if (server === divan) result.rates.push(perSecond);
          result.micros[name].push(micros);
        }
      }
      await divan.send('DELETE', '/files');
      await divan.send('PUT', '/files');
    }
  }
  const streaming = peakBytes(divan.pid);
  await divan.stop();
  node.kill();

  const many = await Server.start('uploads');
  await many.send('PUT', '/many');
  const idle = residentBytes(many.pid);
  const middle = await atOnce(many, UPLOADS);
  const peak = peakBytes(many.pid);
  console.error(`  ${UPLOADS} uploads at once: ${idle / 1e6} MB before, ${middle / 1e6} MB at half, ${peak / 1e6} MB at most`);
  await many.stop();
  rmSync(FILES, { recursive: true, force: true });

  const figures = [];
  for (const [name, { rates, micros }] of Object.entries(results)) {
    const unit = name.startsWith('1 KB') ? 'CPU µs/request' : 'CPU µs/MB';
    const ratios = micros.Divan.map((value, i) => value / micros['Node.js'][i]);
    figures.push(figure(`attachments: ${name}`, median(rates), 'MB/s', { of: rates }));
    figures.push(figure(`attachments: ${name}`, median(micros.Divan), unit, { of: micros.Divan }));
    figures.push(figure(`attachments: ${name}, to Node.js and files`, median(ratios), '× CPU', { of: ratios }));
  }
  figures.push(figure('attachments: memory, maximum, 1 GB up and down', streaming / 1e6, 'MB', { most: 400 }));
  figures.push(figure(`attachments: memory, maximum, ${UPLOADS} uploads at once`, peak / 1e6, 'MB', { most: 400 }));
  return figures;
}
