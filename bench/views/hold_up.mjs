// The effect of builds of other databases on a query: PUT of a document, then a query of its view, in a small
// database, on a quiet server; with 20 indexes in 5 databases whose map functions never end; and with six
// large ordinary builds. Ratios to the quiet median of the same run.
import { bulkBodies, load, small } from '../support/documents.mjs';
import { Requests } from '../support/feed_socket.mjs';
import { figure, median } from '../support/figures.mjs';
import { Server } from '../support/server.mjs';

const SINGLE = 200;
const LARGE = 6;
const DOCUMENTS = 100_000; // of each large database
const MOST = 3;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const design = (map) => JSON.stringify({ views: { v: { map } } });

// As long as `goOn` says so; at most SINGLE times.
async function writeAndQuery(server, name, goOn = async () => true) {
  const requests = await Requests.connect(server);
  const times = [];
  for (let n = 0; n < SINGLE && (n % 20 !== 0 || (await goOn())); ++n) {
    await pause(10 + Math.random() * 20);
    const began = performance.now();
    await requests.send('PUT', `/small/${name}-${n}`, `{"n":${n}}`);
    await requests.send('GET', `/small/_design/d/_view/v?key=%22${name}-${n}%22`, '');
    times.push(performance.now() - began);
  }
  requests.close();
  console.error(`  ${name}: median ${median(times).toFixed(2)} ms of ${times.length}, worst ${Math.max(...times).toFixed(1)} ms`);
  return times;
}

const builds = async (server) => (await server.ask('GET', '/_active_tasks')).filter(({ database }) => database !== 'small');

export async function run() {
  const server = await Server.start('hold-up');
  try {
    await server.send('PUT', '/small');
    await load(server, 'small', bulkBodies(small(100)));
    await server.send('PUT', '/small/_design/d', design('function (doc) { emit(doc._id, null); }'));
    await writeAndQuery(server, 'warm');
    const quiet = await writeAndQuery(server, 'quiet');

    for (let d = 0; d < 5; ++d) {
      await server.send('PUT', `/looping-${d}`);
      await load(server, `looping-${d}`, bulkBodies(small(10)));
      for (let n = 0; n < 4; ++n) await server.send('PUT', `/looping-${d}/_design/${n}`, design(`function (doc) { while (true); }  // ${n}`));
    }
    const looping = await writeAndQuery(server, 'looping', async () => (await builds(server)).length > 0);
    for (let d = 0; d < 5; ++d) await server.send('DELETE', `/looping-${d}`);

    const bodies = bulkBodies(small(DOCUMENTS));
    for (let d = 0; d < LARGE; ++d) {
      await server.send('PUT', `/large-${d}`);
      await load(server, `large-${d}`, bodies);
    }
    for (let d = 0; d < LARGE; ++d) await server.send('PUT', `/large-${d}/_design/d`, design('function (doc) { for (var i = 0; i < 20; ++i) JSON.stringify(doc); emit(doc.type, doc.n); }'));
    while ((await builds(server)).length === 0) await pause(5);
    const large = await writeAndQuery(server, 'large', async () => (await builds(server)).length > 0);

    const ratio = (times) => median(times) / median(quiet);
    return [
      figure('views: PUT, then the view, on a quiet server', median(quiet), 'ms', { of: quiet }),
      figure('views: the same beside 20 indexes that loop, to that', ratio(looping), 'x', { most: MOST }),
      figure(`views: the same beside ${LARGE} large builds, to that`, ratio(large), 'x', { most: MOST }),
    ];
  } finally {
    await server.stop();
  }
}
