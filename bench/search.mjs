// Full-text search, beside Xapian, SQLite's FTS5 and PostgreSQL's text search: builds, bytes, and queries of words, of two words, of
// phrases and of prefixes in the descriptions of Debian's packages. DIVAN_BENCH_DOCUMENTS is the number of documents.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';

import { cpu } from './support/cpu.mjs';
import { bulkBodies, load, packages } from './support/documents.mjs';
import { figure, median, percentile } from './support/figures.mjs';
import { freshness } from './support/freshness.mjs';
import { runPeer } from './support/peers.mjs';
import { Postgres } from './support/postgres.mjs';
import { Server } from './support/server.mjs';

const DOCUMENTS = Number(process.env.DIVAN_BENCH_DOCUMENTS ?? 500_000);
const QUERIES = 300;
const FILES = 'build/bench/search';
const DESIGN = { indexes: { text: { analyzer: 'simple', index: "function (doc) { index('default', doc.text); }" } } };

// The words of descriptions and dependencies, in lower case.
function texts(count) {
  return packages(count).map((line) => {
    const { description = '', depends = '', tag = '' } = JSON.parse(line);
    return `${description} ${depends} ${tag}`.toLowerCase().replace(/[^a-z]+/g, ' ').trim();
  });
}

// The same queries in each run: words are taken from random documents, so that common ones occur more often.
function queries(all) {
  let state = 42;
  const random = (below) => (state = (state * 1103515245 + 12345) & 0x7fffffff) % below;
  const words = () => all[random(all.length)].split(' ').filter((word) => word.length > 2);
  const pick = (make) => {
    const found = [];
    while (found.length < QUERIES) {
      const some = words();
      if (some.length > 3) found.push(make(some, random(some.length - 1)));
    }
    return found;
  };
  return {
    'a word': pick((some, at) => [some[at]]),
    'two words': pick((some, at) => [some[at], some[random(some.length)]]),
    'a phrase': pick((some, at) => ({ phrase: [some[at], some[at + 1]] })),
    'a prefix': pick((some, at) => ({ prefix: some[at].slice(0, 4) })),
  };
}

const lucene = (query) => (query.phrase ? `"${query.phrase.join(' ')}"` : query.prefix ? `${query.prefix}*` : query.map((word) => `+${word}`).join(' '));
const fts5 = (query) => (query.phrase ? `"${query.phrase.join(' ')}"` : query.prefix ? `"${query.prefix}" *` : query.map((word) => `"${word}"`).join(' AND '));
const tsquery = (query) => (query.phrase ? query.phrase.join(' <-> ') : query.prefix ? `${query.prefix}:*` : query.join(' & '));

async function ofDivan(server, list) {
  const times = [];
  const before = cpu(server.pid).all;
  let found = 0;
  for (const query of list) {
    const began = performance.now();
    found += (await server.ask('GET', `/search/_design/d/_search/text?update=false&q=${encodeURIComponent(lucene(query))}`)).total_rows;
    times.push(performance.now() - began);
  }
  return { times, found, micros: ((cpu(server.pid).all - before) * 1e6) / list.length };
}

// The best 25 results and the number of all, as Divan's.
function ofSqlite(list) {
  const statements = list.map((query) => `SELECT rowid FROM texts WHERE texts MATCH '${fts5(query)}' ORDER BY rank LIMIT 25;\nSELECT 'n=' || count(*) FROM texts WHERE texts MATCH '${fts5(query)}';`);
  writeFileSync(`${FILES}/queries.sql`, '.timer on\n' + statements.join('\n'));
  const output = execFileSync('sqlite3', [`${FILES}/fts5.db`, `.read ${FILES}/queries.sql`], { encoding: 'utf8', maxBuffer: 1 << 30 });
  const runs = [...output.matchAll(/real ([\d.]+) user ([\d.]+) sys ([\d.]+)/g)].map(([, ...seconds]) => seconds.map(Number));
  const times = list.map((_, n) => (runs[2 * n][0] + runs[2 * n + 1][0]) * 1e3);
  const used = runs.reduce((sum, [, user, system]) => sum + user + system, 0);
  const found = [...output.matchAll(/n=(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0);
  return { times, found, micros: (used * 1e6) / list.length };
}

function ofPostgres(postgres, list) {
  writeFileSync(`${FILES}/queries.sql`, '\\timing on\n' + list.map((query) => `SELECT id, count(*) OVER () FROM texts, to_tsquery('simple', '${tsquery(query)}') AS query WHERE words @@ query ORDER BY ts_rank(words, query) DESC LIMIT 25;\n`).join(''));
  const before = cpu(postgres.pid).all;
  const output = execFileSync('psql', [...postgres.connection, '-q', '-t', '-v', 'ON_ERROR_STOP=1', '-f', `${FILES}/queries.sql`], { encoding: 'utf8', maxBuffer: 1 << 30 });
  const times = [...output.matchAll(/^Time: ([\d.]+) ms/gm)].map(([, ms]) => Number(ms));
  return { times, micros: ((cpu(postgres.pid).all - before) * 1e6) / list.length };
}

const xapian = (query) => (query.phrase ? `phrase ${query.phrase.join(' ')}` : query.prefix ? `prefix ${query.prefix}` : `and ${query.join(' ')}`);

// Builds an index of the texts, and searches it for all lists of queries. The index is removed with the files.
function ofXapian(texts, lists) {
  mkdirSync(`${FILES}/xapian`);
  writeFileSync(`${FILES}/queries`, lists.flat().map((query) => `${xapian(query)}\n`).join(''));
  const [build, ...lines] = runPeer('xapian', [texts, `${FILES}/queries`, `${FILES}/xapian`], ['xapian']);
  const results = lines.map((line) => line.split(' ').map(Number));
  const bytes = Number(execFileSync('du', ['-sb', `${FILES}/xapian/compact`], { encoding: 'utf8' }).split('\t')[0]);
  const of = lists.map((list, i) => {
    const own = results.slice(i * QUERIES, i * QUERIES + list.length);
    return { micros: own.reduce((sum, [micros]) => sum + micros, 0) / list.length, found: own.reduce((sum, [, found]) => sum + found, 0) };
  });
  return { build: Number(build), bytes, of };
}

export async function run() {
  rmSync(FILES, { recursive: true, force: true });
  mkdirSync(FILES, { recursive: true });
  const all = texts(DOCUMENTS);
  const bytes = all.reduce((sum, text) => sum + text.length, 0);
  const figures = [];

  const divan = await Server.start('search', { DIVAN_DIVAN_DURABILITY: 'relaxed' });
  await divan.send('PUT', '/search');
  await load(divan, 'search', bulkBodies(all.map((text, n) => `{"_id":"${n}","text":"${text}"}`)));
  const before = cpu(divan.pid).all;
  await divan.send('PUT', '/search/_design/d', JSON.stringify(DESIGN));
  await divan.send('GET', '/search/_design/d/_search/text?q=x');
  figures.push(figure('search: text indexed', bytes / 1e6 / (cpu(divan.pid).all - before), 'MB/CPU second'));
  const { search_index: size } = await divan.ask('GET', '/search/_design/d/_search_disk_size/text');
  figures.push(figure('search: index, of the text', size.disk_size / bytes, '× bytes'));

  writeFileSync(`${FILES}/texts.tsv`, all.map((text, n) => `${n}\t${text}\n`).join(''));
  execFileSync('sqlite3', [`${FILES}/fts5.db`, "CREATE VIRTUAL TABLE texts USING fts5(text, content='', tokenize='ascii')",
    'CREATE TABLE lines (id, text)', '.mode tabs', `.import ${FILES}/texts.tsv lines`,
    'INSERT INTO texts (rowid, text) SELECT id, text FROM lines', "INSERT INTO texts (texts) VALUES ('optimize')", 'DROP TABLE lines', 'VACUUM']);
  figures.push(figure('search: FTS5, of the text', statSync(`${FILES}/fts5.db`).size / bytes, '× bytes'));
  const postgres = await Postgres.start('search');
  postgres.query('CREATE TABLE texts (id int PRIMARY KEY, text text, words tsvector)');
  execFileSync('psql', [...postgres.connection, '-q', '-c', `\\copy texts (id, text) FROM '${process.cwd()}/${FILES}/texts.tsv'`]);
  postgres.query("UPDATE texts SET words = to_tsvector('simple', text)");
  postgres.query('CREATE INDEX ON texts USING gin (words)');
  postgres.query('VACUUM FULL ANALYZE texts');

  const wanted = Object.entries(queries(all));
  const library = ofXapian(`${FILES}/texts.tsv`, wanted.map(([, list]) => list));
  figures.push(figure('search: Xapian, text indexed', bytes / 1e6 / library.build, 'MB/CPU second'));
  figures.push(figure('search: Xapian, of the text', library.bytes / bytes, '× bytes'));
  for (const [i, [name, list]] of wanted.entries()) {
    const third = library.of[i];
    for (const warm of [true, false]) {
      const mine = await ofDivan(divan, list);
      const sqlite = ofSqlite(list);
      const other = ofPostgres(postgres, list);
      if (mine.found !== sqlite.found) throw new Error(`${name}: Divan finds ${mine.found}, FTS5 ${sqlite.found}`);
      if (warm) continue;
      console.error(`  ${name}: ${mine.found} results; Divan ${mine.micros.toFixed(0)}, FTS5 ${sqlite.micros.toFixed(0)}, PostgreSQL ${other.micros.toFixed(0)} µs CPU`);
      if (mine.found !== third.found) throw new Error(`${name}: Divan finds ${mine.found}, Xapian ${third.found}`);
      figures.push(figure(`search: ${name}, median`, median(mine.times), 'ms'));
      figures.push(figure(`search: ${name}, 99 %`, percentile(mine.times, 0.99), 'ms'));
      figures.push(figure(`search: ${name}, to Xapian`, mine.micros / third.micros, '× CPU', { most: 2 }));
      figures.push(figure(`search: ${name}`, mine.micros, 'CPU µs/query'));
      figures.push(figure(`search: ${name}, to FTS5`, mine.micros / sqlite.micros, '× CPU', { most: 1 }));
      figures.push(figure(`search: ${name}, to PostgreSQL`, mine.micros / other.micros, '× CPU', { most: 1 }));
    }
  }
  // While all texts are indexed once more.
  await divan.send('PUT', '/search/_design/e', JSON.stringify({ indexes: { text: { index: "function (doc) { index('default', doc.text) }" } } }));
  await divan.send('PUT', '/new');
  await divan.send('PUT', '/new/_design/d', JSON.stringify(DESIGN));
  figures.push(...await freshness('search',
    (n) => divan.send('PUT', `/new/${n}`, JSON.stringify({ text: `word${'abcdefghij'[n % 10]}${'klmnopqrst'[Math.floor(n / 10)]}` })),
    async (n) => (await divan.ask('GET', `/new/_design/d/_search/text?q=word${'abcdefghij'[n % 10]}${'klmnopqrst'[Math.floor(n / 10)]}&update=false`)).total_rows === 1));
  const { search_index: again } = await divan.ask('GET', '/search/_design/e/_search_info/text');
  if (again.doc_count >= DOCUMENTS) console.error('  the other index was complete before the last write');
  await postgres.stop();
  await divan.stop();
  rmSync(FILES, { recursive: true, force: true });
  return figures;
}
