// Spatial indexes, beside PostGIS with an index of geometries: builds, bytes, and queries of boxes, circles, polygons and the
// nearest. DIVAN_BENCH_POINTS is the number of points.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';

import { cpu } from './support/cpu.mjs';
import { bulkBodies, load } from './support/documents.mjs';
import { figure, median } from './support/figures.mjs';
import { Postgres } from './support/postgres.mjs';
import { Server } from './support/server.mjs';

const POINTS = Number(process.env.DIVAN_BENCH_POINTS ?? 1_000_000);
const QUERIES = 500;
const FILES = 'build/bench/geo';
const DESIGN = { st_indexes: { at: { index: 'function (doc) { st_index(doc.at); }' } } };

// The same numbers in each run.
function randomNumbers() {
  let state = 42;
  return () => {
    state = (state * 1103515245 + 12345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
}

// Points around 1,000 towns of different sizes, as places are.
function points(count) {
  const random = randomNumbers();
  const towns = Array.from({ length: 1000 }, () => [random() * 340 - 170, random() * 130 - 60, random() * random()]);
  return Array.from({ length: count }, () => {
    const [x, y, size] = towns[Math.floor(random() * random() * towns.length)];
    const near = () => (random() + random() + random() - 1.5) * size * 3;
    return [x + near(), y + near()].map((degrees) => Number(degrees.toFixed(6)));
  });
}

const percentile = (numbers, share) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length * share)];

// Queries around points: as Divan's parameters, and in SQL.
function queries(all) {
  const random = randomNumbers();
  const around = Array.from({ length: QUERIES }, () => all[Math.floor(random() * all.length)]);
  const point = ([x, y]) => `ST_SetSRID(ST_MakePoint(${x}, ${y}), 4326)`;
  const box = ([x, y]) => [x - 0.02, y - 0.02, x + 0.02, y + 0.02];
  const hexagon = ([x, y]) =>
    `POLYGON((${[0, 1, 2, 3, 4, 5, 0].map((i) => `${x + 0.03 * Math.cos((i * Math.PI) / 3)} ${y + 0.03 * Math.sin((i * Math.PI) / 3)}`).join(', ')}))`;
  return {
    'boxes': [around.map((at) => `bbox=${box(at)}`), around.map((at) => `geom && ST_MakeEnvelope(${box(at)}, 4326)`)],
    'circles of 2 km': [
      around.map(([x, y]) => `lat=${y}&lon=${x}&radius=2000`),
      around.map((at) => `ST_DWithin(geom::geography, ${point(at)}::geography, 2000)`),
    ],
    'polygons': [
      around.map((at) => `relation=contains&g=${encodeURIComponent(hexagon(at))}`),
      around.map((at) => `ST_Contains(ST_GeomFromText('${hexagon(at)}', 4326), geom)`),
    ],
    'the 10 nearest': [
      around.map(([x, y]) => `nearest=true&limit=10&lat=${y}&lon=${x}`),
      around.map((at) => `true ORDER BY geom::geography <-> ${point(at)}::geography LIMIT 10`),
    ],
  };
}

async function ofDivan(server, requests) {
  const times = [];
  const before = cpu(server.pid).all;
  let rows = 0;
  for (const request of requests) {
    const began = performance.now();
    const limit = request.includes('limit=') ? '' : '&limit=200';
    rows += (await server.ask('GET', `/geo/_design/d/_geo/at?${request}${limit}&update=false`)).rows.length;
    times.push(performance.now() - began);
  }
  return { times, rows, micros: ((cpu(server.pid).all - before) * 1e6) / requests.length };
}

function ofPostgis(postgres, conditions) {
  const file = `${FILES}/queries.sql`;
  writeFileSync(file, '\\timing on\n' + conditions.map((one) => `SELECT id, ST_AsGeoJSON(geom) FROM places WHERE ${one}${one.includes('LIMIT') ? '' : ' LIMIT 200'};\n`).join(''));
  const before = cpu(postgres.pid).all;
  const output = execFileSync('psql', [...postgres.connection, '-q', '-t', '-v', 'ON_ERROR_STOP=1', '-f', file], { encoding: 'utf8', maxBuffer: 1 << 30 });
  const times = [...output.matchAll(/^Time: ([\d.]+) ms/gm)].map(([, ms]) => Number(ms));
  const rows = output.split('\n').filter((line) => line.includes('|')).length;
  return { times, rows, micros: ((cpu(postgres.pid).all - before) * 1e6) / conditions.length };
}

export async function run() {
  rmSync(FILES, { recursive: true, force: true });
  mkdirSync(FILES, { recursive: true });
  const all = points(POINTS);
  const figures = [];

  const divan = await Server.start('geo', { DIVAN_DIVAN_DURABILITY: 'relaxed' });
  await divan.send('PUT', '/geo');
  await load(divan, 'geo', bulkBodies(all.map((coordinates, n) => `{"_id":"${n}","at":{"type":"Point","coordinates":[${coordinates}]}}`)));
  const before = cpu(divan.pid).all;
  await divan.send('PUT', '/geo/_design/d', JSON.stringify(DESIGN));
  await divan.send('GET', '/geo/_design/d/_geo/at?bbox=0,0,1,1&limit=1');
  figures.push(figure('geo: points indexed', POINTS / (cpu(divan.pid).all - before), '/CPU second'));
  const { geo_index: info } = await divan.ask('GET', '/geo/_design/d/_geo_info/at');
  figures.push(figure('geo: index', info.disk_size / POINTS, 'bytes/point'));

  const postgres = await Postgres.start('geo');
  postgres.query('CREATE EXTENSION postgis');
  postgres.query('CREATE TABLE places (id text PRIMARY KEY, geom geometry(Point, 4326))');
  writeFileSync(`${FILES}/places.tsv`, all.map(([x, y], n) => `${n}\tSRID=4326;POINT(${x} ${y})\n`).join(''));
  execFileSync('psql', [...postgres.connection, '-q', '-c', `\\copy places FROM '${process.cwd()}/${FILES}/places.tsv'`]);
  postgres.query('CREATE INDEX ON places USING gist (geom)');
  postgres.query('CREATE INDEX ON places USING gist ((geom::geography))');
  postgres.query('ANALYZE places');

  for (const [name, [requests, conditions]] of Object.entries(queries(all))) {
    for (const warm of [true, false]) {
      const mine = await ofDivan(divan, requests);
      const other = ofPostgis(postgres, conditions);
      if (warm) continue;
      console.error(`  ${name}: Divan ${mine.rows} rows, ${mine.micros.toFixed(0)} µs CPU; PostGIS ${other.rows} rows, ${other.micros.toFixed(0)} µs CPU`);
      figures.push(figure(`geo: ${name}, median`, median(mine.times), 'ms'));
      figures.push(figure(`geo: ${name}, 99 %`, percentile(mine.times, 0.99), 'ms'));
      figures.push(figure(`geo: ${name}, median, to PostGIS`, median(mine.times) / median(other.times), '× time', { most: 2 }));
      figures.push(figure(`geo: ${name}`, mine.micros, 'CPU µs/query'));
      figures.push(figure(`geo: ${name}, to PostGIS`, mine.micros / other.micros, '× CPU', { most: 2 }));
    }
  }
  await postgres.stop();
  await divan.stop();
  rmSync(FILES, { recursive: true, force: true });
  return figures;
}
