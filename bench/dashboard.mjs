// The dashboard in headless Chromium: bytes of its first view, time until that can be used, and pages that watch 1,000 changes a
// second: processor time and heap. DIVAN_BENCH_PROFILE leaves CPU profiles. DIVAN_BENCH_PARTS chooses (names with commas between).
import { writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { withPage } from '../test/support/browser.mjs';
import { chosen } from './support/chosen.mjs';
import { ownSeconds } from './support/cpu.mjs';
import { figure, median } from './support/figures.mjs';
import { Server } from './support/server.mjs';

const SECONDS = Number(process.env.DIVAN_BENCH_SECONDS ?? 600);
const ROUNDS = Number(process.env.DIVAN_BENCH_ROUNDS ?? 10);
const WARM_UP_SECONDS = 10;
const RATE = 1000;
const DATABASES = 50;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Notes when a page has its heading and its data, and the browser has painted them.
function noteReady() {
  const isReady = () => document.querySelector('main h1') && !document.querySelector('[role=status].muted') && (!location.hash.includes('/documents/') || document.querySelector('.editor > div')?.shadowRoot);
  const look = () => (isReady() ? requestAnimationFrame(() => setTimeout(() => (window.readyAt = performance.now()))) : requestAnimationFrame(look));
  if (typeof requestAnimationFrame === 'function') look();
}

async function logIn(page, { password }) {
  await page.goto('/_utils/');
  await page.getByLabel('Name').fill('admin');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('link', { name: 'Databases' }).waitFor();
}

async function bulk(server, database, count, next) {
  const docs = Array.from({ length: count }, () => ({ _id: String(next.n++).padStart(9, '0'), kind: 'order', total: next.n % 1000 }));
  await server.ask('POST', `/${database}/_bulk_docs`, { docs });
}

// Bytes of the files of the first view, compressed and not, and milliseconds until it can be used, with empty caches.
async function start(server) {
  await server.send('PUT', '/shop');
  const next = { n: 0 };
  for (let i = 0; i < 100; ++i) await bulk(server, 'shop', 1000, next);
  for (let i = 0; i < 1000; ++i) await server.send('PUT', `/database-${i}`);
  const bytes = {};
  const times = { overview: [], databases: [], 'databases/shop': [], 'databases/shop/documents/000000000': [] };
  await withPage(server.url, async (page) => {
    await logIn(page, server);
    const cookies = await page.context().cookies();
    for (let round = 0; round < ROUNDS; ++round) {
      for (const view of Object.keys(times)) {
        const context = await page.context().browser().newContext({ baseURL: server.url, viewport: { width: 1400, height: 900 } });
        await context.addCookies(cookies);
        const fresh = await context.newPage();
        await fresh.addInitScript(noteReady);
        const files = [];
        fresh.on('response', (response) => new URL(response.url()).pathname.startsWith('/_utils/') && files.push(response));
        await fresh.goto(`/_utils/#/${view}`);
        times[view].push(await (await fresh.waitForFunction(() => window.readyAt)).jsonValue());
        const bodies = await Promise.all(files.map((response) => response.body()));
        bytes[view] = { plain: bodies.reduce((sum, body) => sum + body.length, 0), compressed: bodies.reduce((sum, body) => sum + gzipSync(body).length, 0) };
        await context.close();
      }
    }
  });
  const kilobytes = (n) => n / 1000;
  const names = { overview: 'overview', databases: '1,000 databases', 'databases/shop': '100,000 documents', 'databases/shop/documents/000000000': 'a document in the editor' };
  return [
    figure('dashboard: files of the first view, compressed', kilobytes(bytes.overview.compressed), 'kB', { most: 150 }),
    figure('dashboard: the same, uncompressed', kilobytes(bytes.overview.plain), 'kB'),
    figure('dashboard: files with the editor, compressed', kilobytes(bytes['databases/shop/documents/000000000'].compressed), 'kB'),
    ...Object.entries(times).map(([view, of]) => figure(`dashboard: navigation until it can be used: ${names[view]}`, median(of), 'ms', { most: 1000, of })),
  ];
}

// Writes RATE documents a second, as evenly as it can, until stop() is called.
function writer(server, databases) {
  const next = { n: 1_000_000 };
  let goes = true;
  const PART = 20;
  const ended = (async () => {
    const begin = performance.now();
    for (let written = 0; goes; written += PART) {
      await bulk(server, databases[(written / PART) % databases.length], PART, next);
      await pause(Math.max(0, begin + ((written + PART) * 1000) / RATE - performance.now()));
    }
  })();
  return { written: () => next.n - 1_000_000, stop: () => ((goes = false), ended) };
}

// A page that watches the changes: share of a core of its renderer process, heap at the beginning and the end.
async function watch(server, name, databases, open) {
  for (const database of databases) await server.send('PUT', `/${database}`);
  return withPage(server.url, async (page) => {
    await logIn(page, server);
    await open(page);
    const browser = await page.context().browser().newBrowserCDPSession();
    const session = await page.context().newCDPSession(page);
    const { processInfo } = await browser.send('SystemInfo.getProcessInfo');
    const renderers = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id);
    const cpu = () => renderers.reduce((sum, pid) => sum + ownSeconds(pid), 0);
    const heap = async () => {
      for (let i = 0; i < 2; ++i) await session.send('HeapProfiler.collectGarbage');
      return (await session.send('Runtime.getHeapUsage')).usedSize / 1e6;
    };
    const load = writer(server, databases);
    await pause(WARM_UP_SECONDS * 1000);
    const first = await heap();
    const [cpuBefore, before, written] = [cpu(), performance.now(), load.written()];
    if (process.env.DIVAN_BENCH_PROFILE) {
      await session.send('Profiler.enable');
      await session.send('Profiler.start');
    }
    await pause(SECONDS * 1000);
    if (process.env.DIVAN_BENCH_PROFILE) {
      writeFileSync(`build/bench/${name}.cpuprofile`, JSON.stringify((await session.send('Profiler.stop')).profile));
    }
    const seconds = (performance.now() - before) / 1000;
    const share = (100 * (cpu() - cpuBefore)) / seconds;
    const rate = (load.written() - written) / seconds;
    const last = await heap();
    const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
    await load.stop();
    console.error(`  ${name}: ${rate.toFixed(0)} changes/s, ${share.toFixed(1)} % of a core, ${first.toFixed(2)} MB of heap, then ${last.toFixed(2)} MB, ${nodes} elements`);
    await page.shoot(`watch ${name}`);
    return [
      figure(`dashboard: ${name}: changes written`, rate, '/s', { least: 0.95 * RATE }),
      figure(`dashboard: ${name}: CPU of the renderer process`, share, '% of a core', { most: 30 }),
      figure(`dashboard: ${name}: heap at the end`, last, 'MB'),
      figure(`dashboard: ${name}: heap, end / beginning`, last / first, 'ratio', { most: 1.1 }),
    ];
  });
}

const PARTS = {
  start,
  feeds: (server) =>
    watch(server, 'feeds', ['watched'], async (page) => {
      await page.goto('/_utils/#/feeds');
      await page.getByRole('combobox', { name: 'Feed' }).selectOption('Changes of a database');
      await page.getByRole('combobox', { name: 'Database', exact: true }).fill('watched');
      await page.getByRole('button', { name: 'Follow' }).click();
    }),
  changes: (server) => watch(server, 'changes', ['listed'], (page) => page.goto('/_utils/#/databases/listed/changes')),
  overview: (server) => watch(server, 'overview', Array.from({ length: DATABASES }, (_, i) => `written-${i}`), (page) => page.goto('/_utils/#/overview')),
};

export async function run() {
  const figures = [];
  for (const part of chosen('DIVAN_BENCH_PARTS', Object.keys(PARTS))) {
    const server = await Server.start('dashboard');
    figures.push(...(await PARTS[part](server)));
    await server.stop();
  }
  return figures;
}
