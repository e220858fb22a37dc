// Design documents and the expected rows of their views, computed from the test's model of the documents with
// the same map functions.
import { check, until } from './client.mjs';
import { path_of } from './documents.mjs';

const kCount = `function (keys, values, rereduce) {
  var total = 0;
  for (var i = 0; i < values.length; ++i) total += rereduce ? values[i] : 1;
  return total;
}`;

/** Views whose definitions, and so whose indexes, differ for each variant. */
function views_of(variant) {
  const m = 5 + variant;
  return {
    by_group: { map: `function (doc) { if (doc.k) emit(doc.k, doc.v % ${m}); }`, reduce: '_sum' },
    by_path: { map: `function (doc) { if (doc.k) emit([doc.v % ${m}, doc.k, doc.n], null); }`, reduce: '_count' },
    by_rest: { map: `function (doc) { if (doc.k) emit(doc.v % ${m}, doc.v); }`, reduce: '_stats' },
    by_tag: { map: `function (doc) { (doc.tags || []).forEach(function (tag) { emit(tag, doc.n); }); }` },
    own: { map: `function (doc) { if (doc.k) emit([doc.k, doc.v % ${m}], doc.n); }`, reduce: kCount },
  };
}

export const design_body = (variant) => JSON.stringify({ language: 'javascript', views: views_of(variant) });

/** One view with a slow map function. */
export const slow_design_body = (rounds, variant) => JSON.stringify({
  language: 'javascript',
  views: {
    slow: {
      map: `function (doc) {
  var h = ${variant};
  for (var i = 0; i < ${rounds}; ++i) h = (h * 31 + doc.v + i) % 1000003;
  if (doc.k) emit([doc.k, h], doc.n);
}`,
      reduce: '_count',
    },
  },
});

const kTypeOrder = ['null', 'boolean', 'number', 'string', 'array'];
const type_of = (value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

/** CouchDB's order, as far as the keys here need it: strings of digits and lower-case letters. */
export function compare_keys(a, b) {
  const types = kTypeOrder.indexOf(type_of(a)) - kTypeOrder.indexOf(type_of(b));
  if (types !== 0) return types;
  if (Array.isArray(a)) {
    for (let i = 0; i < Math.min(a.length, b.length); ++i) {
      const order = compare_keys(a[i], b[i]);
      if (order !== 0) return order;
    }
    return a.length - b.length;
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

function mapped(view, documents) {
  const rows = [];
  let id = null;
  const emit = (key, value) => rows.push({ id, key, value });
  const map = new Function('emit', `return (${view.map});`)(emit);
  for (const document of documents) {
    id = document._id;
    map(document);
  }
  return rows.sort((a, b) =>
    compare_keys(a.key, b.key) || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)));
}

function reduced(view, rows) {
  const values = rows.map((row) => row.value);
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  switch (view.reduce) {
    case '_sum': return sum(values);
    case '_count':
    case kCount: return rows.length;
    case '_stats': return {
      sum: sum(values),
      count: values.length,
      min: Math.min(...values),
      max: Math.max(...values),
      sumsqr: sum(values.map((value) => value * value)),
    };
  }
  throw new Error(`no reference for ${view.reduce}`);
}

function grouped(view, rows) {
  const groups = new Map();
  for (const row of rows) {
    const name = JSON.stringify(row.key);
    groups.get(name)?.push(row) ?? groups.set(name, [row]);
  }
  return [...groups.values()].map((group) => ({ key: group[0].key, value: reduced(view, group) }));
}

// Members of objects in any order.
const plain = (value) => JSON.stringify(value, (_, inner) =>
  inner && typeof inner === 'object' && !Array.isArray(inner)
    ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
    : inner);

function compare_rows(name, found, expected) {
  check(found.length === expected.length, `view ${name} has ${found.length} rows instead of ${expected.length}`);
  expected.forEach((row, i) => {
    check(plain(found[i]) === plain(row), () =>
      `view ${name} has ${plain(found[i])} at row ${i} instead of ${plain(row)}`);
  });
}

const view_path = (database, design, view) =>
  `${path_of(database)}/_design/${design}/_view/${view}?update=false`;

/** Waits until an index is up to date, without a query, so only ken builds it. */
export async function wait_for_index(client, database, design) {
  const path = `${path_of(database)}/_design/${design}/_info`;
  return until(`the index ${database}/${design} is up to date`, async () => {
    const { view_index } = await client.get(path);
    return view_index.updates_pending.total === 0 && !view_index.updater_running && view_index;
  }, 300_000, 50);
}

/** The design documents that a database has, with their bodies. */
export function designs_of(database) {
  return [...database.documents.values()]
    .filter((document) => document.id.startsWith('_design/') && document.exists)
    .map((document) => ({ name: document.id.slice(8), ...JSON.parse(document.tip.body) }));
}

/** Compares all views of a database, when ken has brought them up to date, with the reference. */
export async function verify_views(client, database) {
  const documents = [...database.documents.values()]
    .filter((document) => document.exists && !document.id.startsWith('_design/'))
    .map((document) => ({ _id: document.id, _rev: document.tip.rev, ...JSON.parse(document.tip.body) }));
  let views = 0;
  for (const design of designs_of(database)) {
    await wait_for_index(client, database.name, design.name);
    for (const [name, view] of Object.entries(design.views)) {
      const path = view_path(database.name, design.name, name);
      const rows = mapped(view, documents);
      const full = `${database.name}/${design.name}/${name}`;
      compare_rows(full, (await client.get(`${path}${view.reduce ? '&reduce=false' : ''}`)).rows, rows);
      if (view.reduce) {
        compare_rows(`${full} in groups`, (await client.get(`${path}&group=true`)).rows, grouped(view, rows));
        const all = rows.length > 0 ? [{ key: null, value: reduced(view, rows) }] : [];
        compare_rows(`${full} reduced`, (await client.get(path)).rows, all);
      }
      ++views;
    }
  }
  return views;
}
