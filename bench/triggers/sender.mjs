// A worker of graphile-worker whose task sends the payload as a request: node sender.mjs ADDRESS QUEUE URL OPTIONS. Requests are those of undici itself
// over as many kept connections as jobs run at a time, which takes less processor time than fetch().
import { createRequire } from 'node:module';

import { startWorker } from '../jobs/systems/graphile.mjs';
import { say, serve } from './child.mjs';

const { Pool } = createRequire(new URL('../../clients/js/index.mjs', import.meta.url))('undici');

const [address, queue, url, options] = process.argv.slice(2).map((one) => JSON.parse(one));
const { origin, pathname } = new URL(url);
const pool = new Pool(origin, { connections: options.concurrentJobs });

async function deliver(payload) {
  const { statusCode, body } = await pool.request({
    method: 'POST',
    path: pathname,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(payload),
  });
  await body.dump();
  if (statusCode >= 300) throw new Error(`The receiver responds with ${statusCode}.`);
}

await startWorker(address, queue, deliver, options);
serve({});
say();
