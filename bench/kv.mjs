// The store alone: divan_bench's benchmarks of kv/embedded as figures with targets. The names are those of
// the benchmarks, which are documented in divan/kv/embedded/*_bench.cc.
import { benchmarkRuns } from './support/google_benchmark.mjs';
import { figure, median } from './support/figures.mjs';

const ROUNDS = 5;
const STORES = ['divan', 'rocksdb', 'lmdb'];

// {name: {name of a measure: [of each run]}}
function measure(filter, options) {
  const measured = new Map();
  for (const run of benchmarkRuns(filter, options)) {
    const name = run.run_name.replace(/\/(process_time|real_time|iterations:\d+)/g, '');
    const of = measured.get(name) ?? measured.set(name, {}).get(name);
    for (const [key, value] of Object.entries(run)) (of[key] ??= []).push(value);
  }
  return measured;
}

function middle(name, of, unit, aims) {
  return figure(name, median(of), unit, { of, ...aims });
}

function commits() {
  const figures = [];
  for (const [name, of] of measure('^Commits/', { rounds: ROUNDS })) {
    const clients = name.split('/')[1];
    const label = `kv: ${clients} client${clients === '1' ? '' : 's'}`;
    const aims = clients === '128' ? { least: 50 } : {};
    figures.push(middle(`${label}: commits a sync`, of.commits_per_sync, '', aims));
    figures.push(middle(`${label}: commits`, of.commits_per_second, '1/s'));
    const micros = of.cpu.map((ns, i) => ns / 1000 / of.commits_an_iteration[i]);
    figures.push(middle(`${label}: CPU of a commit of 1 KB`, micros, 'CPU µs'));
  }
  return figures;
}

function conflicts() {
  const [[, { cpu }]] = measure('^ConflictCheck', { rounds: ROUNDS });
  return [middle('kv: conflict check, 100,000 keys in the window', cpu.map((ns) => ns / 1000), 'CPU µs', { most: 5 })];
}

// The cost of a transaction, and the part of it outside of RocksDB.
function transactions() {
  const measured = measure('^Transaction/', { rounds: ROUNDS });
  const micros = (name) => measured.get(`Transaction/${name}`).cpu.map((ns) => ns / 1000);
  const rocksdb = median(micros('rocksdb_get+write'));
  return [
    middle('kv: begin and get', micros('begin+get'), 'CPU µs'),
    middle('kv: begin, get, set, commit, unsynced', micros('begin+get+set+commit'), 'CPU µs'),
    middle('kv: RocksDB\'s get and write of that', micros('rocksdb_get+write'), 'CPU µs'),
    middle('kv: transaction less RocksDB\'s part', micros('begin+get+set+commit').map((all) => all - rocksdb), 'CPU µs', { most: 3 }),
  ];
}

function reads() {
  const nanoseconds = new Map();
  for (const [name, of] of measure('^Reads/', { rounds: 3 })) {
    const [, what, section, store] = name.split('/');
    const key = `${what.replaceAll('_', ' ')} of ${section}`;
    const row = nanoseconds.get(key) ?? nanoseconds.set(key, {}).get(key);
    row[store] = of.items_per_second.map((rate) => 1e9 / rate);
  }
  const figures = [];
  for (const [what, row] of nanoseconds) {
    for (const store of STORES) figures.push(middle(`kv: ${what}, ${store}`, row[store], 'CPU ns a row'));
    for (const other of STORES.slice(1)) {
      const ratios = row.divan.map((ours, i) => row[other][i] / ours);
      figures.push(middle(`kv: ${what}, speed beside ${other}`, ratios, 'times'));
    }
  }
  return figures;
}

function memory() {
  const figures = [];
  for (const [name, label] of [['empty', 'an empty store'], ['million_rows', 'a million rows, after a scan']]) {
    const [[, { resident_mb, cache_mb }]] = measure(`^AtRest/${name}`, { rounds: 1 });
    const aims = name === 'empty' ? { most: 32 } : { most: cache_mb[0] * 1.5 };
    figures.push(middle(`kv: memory of ${label} (cache ${cache_mb[0]} MB)`, resident_mb, 'MB', aims));
  }
  return figures;
}

export async function run() {
  return [commits, conflicts, transactions, reads, memory].flatMap((part) => part());
}
