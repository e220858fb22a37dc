// _bulk_docs of 1,000 new documents a request: documents per second of the server's processor time. Includes
// the sync of the log, but not the client's work. Compaction that a run causes may happen in the next one.
import { cpu } from './support/cpu.mjs';
import { bulkBodies, load, packages, small } from './support/documents.mjs';
import { figure, median } from './support/figures.mjs';
import { Server } from './support/server.mjs';

const DOCUMENTS = 100_000;
const ROUNDS = 5;

export async function run() {
  const kinds = { small: bulkBodies(small(DOCUMENTS)), packages: bulkBodies(packages(DOCUMENTS)) };
  const server = await Server.start('bulk');
  const perSecond = { small: [], packages: [] };
  for (let round = 0; round < ROUNDS; ++round) {
    for (const [kind, bodies] of Object.entries(kinds)) {
      const database = `${kind}-${round}`;
      await server.send('PUT', `/${database}`);
      const before = cpu(server.pid).all;
      await load(server, database, bodies);
      const used = cpu(server.pid).all - before;
      perSecond[kind].push(DOCUMENTS / used);
      console.error(`  ${kind}: ${((used * 1e6) / DOCUMENTS).toFixed(1)} µs a document`);
    }
  }
  await server.stop();
  const unit = 'documents/CPU-second';
  return [
    figure('bulk: small documents (244 B)', median(perSecond.small), unit, { least: 40_000, of: perSecond.small }),
    figure('bulk: package documents (0.9 KB)', median(perSecond.packages), unit, { of: perSecond.packages }),
  ];
}
