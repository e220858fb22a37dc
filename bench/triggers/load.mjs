// Writes documents at a constant rate, each in a request or transaction of its own: node load.mjs TARGET RATE. The target is
// {"url", "authorization", "database"} for Divan and {"postgres", "table"}. Commands: start, and stop, which returns how many were written in how many seconds.
import pg from 'pg';

import { Connection } from '../jobs/divan_client.mjs';
import { say, serve } from './child.mjs';

const CONNECTIONS = 32;
const TICK = 5; // milliseconds

const [target, rate] = process.argv.slice(2).map((one) => JSON.parse(one));

// Returns a function that writes a document over a connection of its own.
async function writer() {
  if (!target.postgres) {
    const connection = await Connection.open(target);
    return (id, document) => connection.send('PUT', `/${target.database}/${id}`, document);
  }
  const client = new pg.Client(target.postgres);
  await client.connect();
  const text = `insert into ${target.table} (id, doc) values ($1, $2)`;
  return (id, document) => client.query({ name: 'insert', text, values: [id, document] });
}

const idle = [];
for (let i = 0; i < CONNECTIONS; ++i) idle.push(await writer());
const text = 'x'.repeat(180);
let written = 0; // with those under way
let first = 0; // the number written before the last start
let began;
let timer;

async function send(write) {
  const n = written++;
  await write(`load-${String(n).padStart(8, '0')}`, JSON.stringify({ kind: 'other', n, text }));
  idle.push(write);
}

// Documents for which no connection is idle are written later.
function tick() {
  const due = first + Math.floor(((performance.now() - began) / 1000) * rate);
  while (written < due && idle.length) send(idle.pop());
}

serve({
  start() {
    first = written;
    began = performance.now();
    timer = setInterval(tick, TICK);
  },
  async stop() {
    clearInterval(timer);
    const seconds = (performance.now() - began) / 1000;
    while (idle.length < CONNECTIONS) await new Promise((resolve) => setTimeout(resolve, 1));
    return { written: written - first, seconds };
  },
});
say();
