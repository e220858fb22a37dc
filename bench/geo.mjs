// Spatial indexes, beside PostGIS with an index of geometries: builds, bytes, and queries of boxes, circles, polygons and the
// nearest. Boxes and the nearest also beside Boost's R-tree in memory. DIVAN_BENCH_POINTS is the number of points.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';

import { cpu } from './support/cpu.mjs';
import { bulkBodies, load } from './support/documents.mjs';
import { figure, median, percentile } from './support/figures.mjs';
import { freshness } from './support/freshness.mjs';
import { runPeer } from './support/peers.mjs';
import { Postgres } from './support/postgres.mjs';
import { Server } from './support/server.mjs';

const POINTS = Number(process.env.DIVAN_BENCH_POINTS ?? 1_000_000);
const POLYGONS = 10_000;
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

// Polygons of 5 to 30 vertices around some of the points, from 100 m to 10 km wide.
function polygons(all) {
  const random = randomNumbers();
  return Array.from({ length: POLYGONS }, () => {
    const [x, y] = all[Math.floor(random() * all.length)];
    const size = 0.001 * 100 ** random();
    const vertices = 5 + Math.floor(random() * 26);
    const ring = Array.from({ length: vertices }, (_, i) => {
      const angle = (2 * Math.PI * i) / vertices;
      const distance = size * (0.5 + random() / 2);
      return [x + distance * Math.cos(angle), y + distance * Math.sin(angle)].map((degrees) => Number(degrees.toFixed(6)));
    });
    return [...ring, ring[0]];
  });
}

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

async function ofDivan(server, requests, database) {
  const times = [];
  const before = cpu(server.pid).all;
  let rows = 0;
  for (const request of requests) {
    const began = performance.now();
    const limit = request.includes('limit=') ? '' : '&limit=200';
    rows += (await server.ask('GET', `/${database}/_design/d/_geo/at?${request}${limit}&update=false`)).rows.length;
    times.push(performance.now() - began);
  }
  return { times, rows, micros: ((cpu(server.pid).all - before) * 1e6) / requests.length };
}

function ofPostgis(postgres, conditions, table) {
  const file = `${FILES}/queries.sql`;
  writeFileSync(file, '\\timing on\n' + conditions.map((one) => `SELECT id, ST_AsGeoJSON(geom) FROM ${table} WHERE ${one}${one.includes('LIMIT') ? '' : ' LIMIT 200'};\n`).join(''));
  const before = cpu(postgres.pid).all;
  const output = execFileSync('psql', [...postgres.connection, '-q', '-t', '-v', 'ON_ERROR_STOP=1', '-f', file], { encoding: 'utf8', maxBuffer: 1 << 30 });
  const times = [...output.matchAll(/^Time: ([\d.]+) ms/gm)].map(([, ms]) => Number(ms));
  const rows = output.split('\n').filter((line) => line.includes('|')).length;
  return { times, rows, micros: ((cpu(postgres.pid).all - before) * 1e6) / conditions.length };
}

// The median and the processor time of queries of the R-tree, whose lines these are.
function ofRtree(all, lines) {
  writeFileSync(`${FILES}/points`, all.map(([x, y]) => `${x} ${y}\n`).join(''));
  writeFileSync(`${FILES}/queries`, lines.map((line) => `${line}\n`).join(''));
  const found = runPeer('rtree', [`${FILES}/points`, `${FILES}/queries`]).map((line) => line.split(' ').map(Number));
  return { micros: found.reduce((sum, [micros]) => sum + micros, 0) / lines.length, rows: found.reduce((sum, [, rows]) => sum + rows, 0) };
}

// All points in a box, as compared with each.
async function checkBoxes(server, all, boxes) {
  for (const [west, south, east, north] of boxes) {
    const expected = all.flatMap(([x, y], n) => (x >= west && x <= east && y >= south && y <= north ? [String(n)] : []));
    const found = [];
    for (let bookmark = ''; ;) {
      const page = await server.ask('GET', `/geo/_design/d/_geo/at?bbox=${[west, south, east, north]}&limit=200${bookmark}`);
      if (page.rows.length === 0) break;
      found.push(...page.rows.map((row) => row.id));
      bookmark = `&bookmark=${page.bookmark}`;
    }
    if (found.sort().join() !== expected.sort().join()) throw new Error(`the box ${[west, south, east, north]} has other points`);
  }
}

// The ids of polygons that PostGIS finds without an index.
async function checkPolygons(server, postgres, boxes) {
  for (const box of boxes) {
    const sql = `SELECT string_agg(id, ',') FROM shapes WHERE ST_Intersects(ST_Buffer(geom, 0), ST_MakeEnvelope(${box}, 4326))`;
    const expected = postgres.query(sql).trim().split(',').filter(Boolean);
    const { rows } = await server.ask('GET', `/shapes/_design/d/_geo/at?bbox=${box}&limit=200`);
    if (rows.map((row) => row.id).sort().join() !== expected.sort().join()) throw new Error(`the box ${box} has other polygons`);
  }
}

function compare(figures, name, mine, other) {
  console.error(`  ${name}: Divan ${mine.rows} rows, ${mine.micros.toFixed(0)} µs CPU; PostGIS ${other.rows} rows, ${other.micros.toFixed(0)} µs CPU`);
  figures.push(figure(`geo: ${name}, median`, median(mine.times), 'ms'));
  figures.push(figure(`geo: ${name}, 99 %`, percentile(mine.times, 0.99), 'ms'));
  figures.push(figure(`geo: ${name}, median, to PostGIS`, median(mine.times) / median(other.times), '× time', { most: 2 }));
  figures.push(figure(`geo: ${name}`, mine.micros, 'CPU µs/query'));
  figures.push(figure(`geo: ${name}, to PostGIS`, mine.micros / other.micros, '× CPU', { most: 2 }));
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
  const shapes = polygons(all);
  await divan.send('PUT', '/shapes');
  await load(divan, 'shapes', bulkBodies(shapes.map((ring, n) => `{"_id":"${n}","at":{"type":"Polygon","coordinates":${JSON.stringify([ring])}}}`)));
  await divan.send('PUT', '/shapes/_design/d', JSON.stringify(DESIGN));
  await divan.send('GET', '/shapes/_design/d/_geo/at?bbox=0,0,1,1&limit=1');
  postgres.query('CREATE TABLE shapes (id text PRIMARY KEY, geom geometry(Polygon, 4326))');
  writeFileSync(`${FILES}/shapes.tsv`, shapes.map((ring, n) => `${n}\tSRID=4326;POLYGON((${ring.map((at) => at.join(' ')).join(', ')}))\n`).join(''));
  execFileSync('psql', [...postgres.connection, '-q', '-c', `\\copy shapes FROM '${process.cwd()}/${FILES}/shapes.tsv'`]);
  postgres.query('CREATE INDEX ON shapes USING gist (geom)');
  postgres.query('ANALYZE places');
  postgres.query('ANALYZE shapes');

  const wanted = queries(all);
  const boxes = wanted.boxes[0].map((request) => request.replace('bbox=', '').split(',').map(Number));
  await checkBoxes(divan, all, boxes.slice(0, 100));
  await checkPolygons(divan, postgres, boxes.slice(0, 100));
  for (const [name, [requests, conditions]] of Object.entries(wanted)) {
    for (const warm of [true, false]) {
      const mine = await ofDivan(divan, requests, 'geo');
      const other = ofPostgis(postgres, conditions, 'places');
      if (!warm) compare(figures, name, mine, other);
    }
  }
  for (const warm of [true, false]) {
    const mine = await ofDivan(divan, wanted.boxes[0], 'shapes');
    const other = ofPostgis(postgres, boxes.map((box) => `ST_Intersects(geom, ST_MakeEnvelope(${box}, 4326))`), 'shapes');
    if (!warm) compare(figures, 'polygons in boxes', mine, other);
  }
  const near = wanted['the 10 nearest'][0].map((request) => {
    const { lon, lat } = Object.fromEntries(new URLSearchParams(request));
    return `near ${lon} ${lat}`;
  });
  figures.push(figure('geo: boxes, R-tree in memory', ofRtree(all, boxes.map((box) => `box ${box.join(' ')}`)).micros, 'CPU µs/query'));
  figures.push(figure('geo: the 10 nearest, R-tree in memory', ofRtree(all, near).micros, 'CPU µs/query'));

  // While all points are indexed once more.
  await divan.send('PUT', '/geo/_design/e', JSON.stringify({ st_indexes: { at: { index: 'function (doc) { st_index(doc.at) }' } } }));
  figures.push(...await freshness('geo',
    (n) => divan.send('PUT', `/shapes/new${n}`, JSON.stringify({ at: { type: 'Point', coordinates: [n, 89] } })),
    async (n) => (await divan.ask('GET', `/shapes/_design/d/_geo/at?bbox=${[n, 89, n, 89]}&update=false`)).rows.length === 1));
  const { updates_pending: pending } = await divan.ask('GET', '/geo/_design/e/_geo_info/at');
  if (pending === 0) console.error('  the other index was complete before the last write');
  await postgres.stop();
  await divan.stop();
  rmSync(FILES, { recursive: true, force: true });
  return figures;
}
