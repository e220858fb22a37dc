// The size on disk of a row with its share of the partial reductions, after compaction by RocksDB's own tool: the
// difference between stores with the view and without it.
import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync, statSync } from 'node:fs';

import { endOfBuild } from '../support/builds.mjs';
import { bulkBodies, load, small } from '../support/documents.mjs';
import { figure } from '../support/figures.mjs';
import { Server } from '../support/server.mjs';

const DOCUMENTS = 300_000;

async function compacted(bodies, views) {
  const server = await Server.start('disk');
  try {
    await server.send('PUT', '/d');
    await load(server, 'd', bodies);
    if (views) {
      await server.ask('PUT', '/d/_design/d', { views });
      const { view_index: index } = await server.ask('GET', '/d/_design/d/_info');
      await endOfBuild(server, index.signature);
    }
  } finally {
    await server.end();
  }
  const store = `${server.data}/store`;
  execFileSync('ldb', [`--db=${store}`, '--compression_type=lz4', '--bloom_bits=10', 'compact'], { stdio: 'ignore' });
  const tables = readdirSync(store).filter((name) => name.endsWith('.sst'));
  const bytes = tables.reduce((sum, name) => sum + statSync(`${store}/${name}`).size, 0);
  rmSync(server.data, { recursive: true });
  return bytes;
}

export async function run() {
  const bodies = bulkBodies(small(DOCUMENTS));
  const without = await compacted(bodies);
  const built = await compacted(bodies, { v: { map: 'function (doc) { emit(doc.type, doc.n); }', reduce: '_sum' } });
  console.error(`  ${without} bytes without the view, ${built} with it`);
  return [figure('views: a row with what it is reduced by, compacted', (built - without) / DOCUMENTS, 'bytes', { most: 60 })];
}
