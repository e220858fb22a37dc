// A view build of 100,000 package documents by the automatic indexer, from the build's own start to its end,
// beside one Node.js process that has the same lines in memory and does JSON.parse, the same map functions and
// JSON.stringify of what they emit: the minimum for any server written in JavaScript. Alternating, each build with
// a new signature and so from the beginning.
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';

import { endOfBuild } from '../support/builds.mjs';
import { cpu } from '../support/cpu.mjs';
import { bulkBodies, load, packages } from '../support/documents.mjs';
import { figure, median } from '../support/figures.mjs';
import { Server } from '../support/server.mjs';

const DOCUMENTS = 100_000;
const ROUNDS = 5;
const LINES = 'build/bench/view_lines.jsonl';

const DESIGNS = {
  'one simple view': { simple: { map: 'function (doc) { emit(doc.section, null); }', reduce: '_count' } },
  'the demo’s three': JSON.parse(readFileSync('demo/design.json', 'utf8')).views,
};

async function build(server, views, round) {
  const design = { views: structuredClone(views) };
  // A comment makes it another index.
  for (const view of Object.values(design.views)) view.map += ` // ${round}`;
  const before = cpu(server.pid);
  const { rev } = await server.ask('PUT', '/packages/_design/bench', design);
  const { view_index: index } = await server.ask('GET', '/packages/_design/bench/_info');
  const job = await endOfBuild(server, index.signature);
  const after = cpu(server.pid);
  if (job.progress.changes_done < DOCUMENTS || job.progress.map_failures > 0) throw new Error(JSON.stringify(job));
  await server.send('DELETE', `/packages/_design/bench?rev=${rev}`);
  return {
    rate: (DOCUMENTS * 1000) / (job.finished_at - job.started_at),
    server: ((after.own - before.own) * 1e6) / DOCUMENTS,
    js: ((after.children - before.children) * 1e6) / DOCUMENTS,
  };
}

async function inNode(views) {
  const functions = Object.values(views).map((view) => view.map);
  const { stdout } = await promisify(execFile)('node', ['bench/support/map_lines.mjs', LINES, JSON.stringify(functions)]);
  return JSON.parse(stdout).rate;
}

export async function run() {
  const documents = packages(DOCUMENTS);
  writeFileSync(LINES, documents.join('\n'));
  const server = await Server.start('views');
  await server.send('PUT', '/packages');
  await load(server, 'packages', bulkBodies(documents));

  const figures = [];
  for (const [name, views] of Object.entries(DESIGNS)) {
    const builds = [];
    const ratios = [];
    for (let round = 0; round < ROUNDS; ++round) {
      const result = await build(server, views, round);
      const node = await inNode(views);
      builds.push(result);
      ratios.push(result.rate / node);
      console.error(
        `  ${name}: ${Math.round(result.rate)} documents/s, CPU ${result.server.toFixed(1)} µs + ` +
          `${result.js.toFixed(1)} µs JavaScript; Node.js ${Math.round(node)} documents/s`,
      );
    }
    const all = (member) => builds.map((result) => result[member]);
    figures.push(
      figure(`views: ${name}, to Node.js`, median(ratios), '× documents/s', { least: 0.1, of: ratios }),
      figure(`views: ${name}, build`, median(all('rate')), 'documents/s', { of: all('rate') }),
      figure(`views: ${name}, server`, median(all('server')), 'CPU µs/document', { of: all('server') }),
      figure(`views: ${name}, divan-js`, median(all('js')), 'CPU µs/document', { of: all('js') }),
    );
  }
  await server.stop();
  return figures;
}
