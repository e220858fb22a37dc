// Test data of benchmarks: Debian's package index, as in the demo, and small documents.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync } from 'node:fs';

const FILE = 'build/bench/packages.jsonl';

function packageLines() {
  if (!existsSync(FILE)) {
    execFileSync('bash', ['-c', `set -o pipefail; apt-cache dumpavail | LC_ALL=C awk -f demo/packages.awk >${FILE}.new`]);
    renameSync(`${FILE}.new`, FILE);
  }
  const lines = readFileSync(FILE, 'utf8').split('\n');
  lines.pop();
  if (lines.length === 0) throw new Error('The package index is empty: run apt-get update.');
  return lines;
}

// `count` documents, one a line of JSON: those of all packages, again with other ids until there are enough.
export function packages(count) {
  const lines = packageLines();
  const documents = [];
  for (let i = 0; i < count; ++i) {
    const line = lines[i % lines.length];
    const round = Math.floor(i / lines.length);
    documents.push(round === 0 ? line : line.replace('{"_id":"', `{"_id":"copy-${round}-`));
  }
  return documents;
}

// Documents of 244 bytes.
export function small(count) {
  const types = ['invoice', 'order', 'person', 'shipment'];
  const documents = [];
  for (let i = 0; i < count; ++i) {
    const start = `{"_id":"doc-${String(i).padStart(8, '0')}","type":"${types[i % 4]}","n":${i},"tags":["a","bb"],"text":"`;
    documents.push(start + 'x'.repeat(244 - start.length - 2) + '"}');
  }
  return documents;
}

// Bodies for _bulk_docs.
export function bulkBodies(documents, size = 1000) {
  const bodies = [];
  for (let i = 0; i < documents.length; i += size) {
    bodies.push(Buffer.from(`{"docs":[${documents.slice(i, i + size).join(',')}]}`));
  }
  return bodies;
}

// Writes them all over `connections` connections.
export async function load(server, database, bodies, connections = 2) {
  let next = 0;
  const sender = async () => {
    while (next < bodies.length) {
      const answer = await server.send('POST', `/${database}/_bulk_docs`, bodies[next++]);
      if (answer.includes('"error"')) throw new Error(`A document was rejected: ${answer.slice(0, 300)}`);
    }
  };
  await Promise.all(Array.from({ length: connections }, sender));
}
