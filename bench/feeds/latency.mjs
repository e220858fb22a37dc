// From the answer to a PUT until its line on a continuous feed, over two sockets of one client. A line that
// comes before the answer counts with the time by which it was early, as a negative one.
//
// CouchDB 3.5 on two cores, like those for which the targets were set: _changes 0.1 ms in the middle, 3 ms at
// the 99th percentile; _db_updates 317 and 527 ms.
import { figure } from '../support/figures.mjs';
import { openFeed, Requests } from '../support/feed_socket.mjs';
import { Server } from '../support/server.mjs';

const SAMPLES = 1000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The path of the n-th PUT, and text that only its line contains. For the feed of all databases each PUT goes to
// another database, since its rows do not distinguish updates of one database.
const FEEDS = {
  _changes: {
    prepare: (server) => server.send('PUT', '/changes'),
    feed: '/changes/_changes',
    put: (kind, n) => `/changes/${kind}-${n}`,
    line: /"id":"(\w+-\d+)"/g,
  },
  _db_updates: {
    prepare: async (server) => {
      for (const kind of ['quiet', 'busy']) {
        for (let n = 0; n < SAMPLES; ++n) await server.send('PUT', `/${kind}-${n}`);
      }
    },
    feed: '/_db_updates',
    put: (kind, n) => `/${kind}-${n}/doc`,
    line: /"db_name":"(\w+-\d+)","type":"updated"/g,
  },
};

// Milliseconds of each PUT. With `quiet`, there is a pause between the line of one and the next.
async function sample(server, requests, { feed, put, line }, kind, quiet) {
  const came = new Map();
  let wake = () => {};
  let rest = '';
  const socket = await openFeed(server, `${feed}?feed=continuous&since=now&heartbeat=60000`, (text) => {
    const now = performance.now();
    rest += text;
    const end = rest.lastIndexOf('\n') + 1;
    for (const [, name] of rest.slice(0, end).matchAll(line)) if (!came.has(name)) came.set(name, now);
    rest = rest.slice(end);
    wake();
  });
  const arrived = async (condition) => {
    while (!condition()) await new Promise((resolve) => (wake = resolve));
  };
  const answered = [];
  for (let n = 0; n < SAMPLES; ++n) {
    if (quiet) await pause(20 + Math.random() * 40);
    answered.push(await requests.send('PUT', put(kind, n), '{"a":1}'));
    if (quiet) await arrived(() => came.has(`${kind}-${n}`));
  }
  await arrived(() => came.size >= SAMPLES);
  socket.removeAllListeners('error').on('error', () => {}).destroy();
  return answered.map((time, n) => came.get(`${kind}-${n}`) - time);
}

function figures(name, times, aims) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
  const early = (100 * sorted.filter((time) => time <= 0).length) / sorted.length;
  console.error(
    `  ${name}: median ${at(0.5).toFixed(3)} ms, p90 ${at(0.9).toFixed(3)}, p99 ${at(0.99).toFixed(3)}, ` +
      `most ${at(1).toFixed(3)}; ${early.toFixed(0)} % of ${sorted.length} lines came before the answer`,
  );
  return [
    figure(`feeds: ${name}, median`, at(0.5), 'ms', { most: aims?.[0] }),
    figure(`feeds: ${name}, 99th percentile`, at(0.99), 'ms', { most: aims?.[1] }),
  ];
}

export async function run() {
  const server = await Server.start('latency');
  const requests = await Requests.connect(server);
  const all = [];
  for (const [name, how] of Object.entries(FEEDS)) {
    await how.prepare(server);
    await pause(1000); // the rows of that are written
    const aims = { _changes: [0.1, 3], _db_updates: [5, 25] }[name];
    all.push(...figures(`${name} on a quiet server`, await sample(server, requests, how, 'quiet', true), aims));
    all.push(...figures(`${name}, one PUT after the other`, await sample(server, requests, how, 'busy', false)));
  }
  requests.close();
  await server.stop();
  return all;
}
