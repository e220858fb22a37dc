// GET of one document over 64 keep-alive connections, compared with a Node.js server that returns a constant
// of the same size: the same load generator (wrk, one thread), alternating.
import { execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';

import { cpu } from './support/cpu.mjs';
import { packages } from './support/documents.mjs';
import { figure, median } from './support/figures.mjs';
import { firstMatch, Server } from './support/server.mjs';

const CONNECTIONS = 64;
const SECONDS = 3;
const ROUNDS = 7;

async function drive(side) {
  const before = cpu(side.pid).all;
  const options = ['-t', '1', '-c', String(CONNECTIONS), '-d', `${SECONDS}s`, '-H', `Authorization: ${side.authorization}`];
  const { stdout } = await promisify(execFile)('wrk', [...options, side.url]);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(stdout);
  const requests = Number(stdout.match(/(\d+) requests in/)[1]);
  return {
    rate: Number(stdout.match(/Requests\/sec:\s+([\d.]+)/)[1]),
    micros: ((cpu(side.pid).all - before) * 1e6) / requests,
  };
}

export async function run() {
  const server = await Server.start('http');
  const document = packages(1)[0];
  await server.send('PUT', '/packages');
  await server.send('PUT', '/packages/one', document.replace(/"_id":"[^"]*",/, ''));
  const answer = await server.send('GET', '/packages/one');
  const node = spawn('node', ['bench/support/constant_server.mjs', answer], { stdio: ['ignore', 'pipe', 'inherit'] });
  const sides = {
    divan: { pid: server.pid, url: `${server.url}/packages/one`, authorization: server.authorization },
    node: { pid: node.pid, url: await firstMatch(node, /(http\S+)/), authorization: server.authorization },
  };

  const results = { divan: [], node: [] };
  for (let round = -1; round < ROUNDS; ++round) {
    for (const [name, side] of Object.entries(sides)) {
      const result = await drive(side);
      if (round < 0) continue; // warm-up
      results[name].push(result);
      console.error(`  ${name}: ${Math.round(result.rate)} requests/s, ${result.micros.toFixed(1)} µs CPU each`);
    }
  }
  node.kill();
  await server.stop();

  const ratios = results.divan.map((result, i) => result.rate / results.node[i].rate);
  const micros = (name) => results[name].map((result) => result.micros);
  return [
    figure(`http: GET of ${answer.length} B, to Node.js`, median(ratios), '× requests/s', { least: 1, of: ratios }),
    figure('http: the server', median(micros('divan')), 'CPU µs/request', { of: micros('divan') }),
    figure('http: Node.js, a constant', median(micros('node')), 'CPU µs/request', { of: micros('node') }),
  ];
}
