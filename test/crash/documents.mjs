// The test's model of the documents of one database, and the check that the server's documents match it.
//
// A revision is *known* once a response contained it (or a feed or a read): from then on it must stay part of
// the document's history. An *attempt* is a write whose outcome is unknown. After a kill each revision that
// is not known must be one of the attempts, with the parent and the complete body that were sent.
import { check } from './client.mjs';

const kPointsKept = 4;

export const generation_of = (rev) => Number(rev.slice(0, rev.indexOf('-')));

/** Compares sequences by the number before the dash, then by the rest. */
export function compare_seq(a, b) {
  const [numberA, restA] = a.split('-');
  const [numberB, restB] = b.split('-');
  return Number(numberA) - Number(numberB) || (restA < restB ? -1 : restA > restB ? 1 : 0);
}

export const path_of = (...segments) => '/' + segments.map(encodeURIComponent).join('/');
export const document_path = (database, id) =>
  id.startsWith('_design/') ? path_of(database) + '/_design' + path_of(id.slice(8)) : path_of(database, id);

/** The text of a document's body: without the members that the server adds. */
export function body_text(document) {
  const body = Object.entries(document).filter(([name]) => !name.startsWith('_'));
  return JSON.stringify(Object.fromEntries(body));
}

class Document {
  constructor(id) {
    this.id = id;
    this.known = new Map(); // generation → revision
    this.tip = null; // {rev, deleted, body}, the latest known one; without body if that was not seen
    this.attempts = new Set();
  }

  get exists() {
    return this.tip !== null && !this.tip.deleted;
  }

  learn(rev, content, where) {
    const generation = generation_of(rev);
    const before = this.known.get(generation);
    check(before === undefined || before === rev, () =>
      `${where} shows revision ${rev} of ${this.id}, but ${before} was known`);
    this.known.set(generation, rev);
    if (this.tip === null || generation > generation_of(this.tip.rev)) this.tip = { rev, ...content };
    else if (generation === generation_of(this.tip.rev) && content.body !== undefined) this.tip = { rev, ...content };
  }
}

/** One database from its creation to its deletion. */
export class Database {
  constructor(name) {
    this.name = name;
    this.documents = new Map();
    this.locals = new Map(); // id → {acknowledged: number, attempted: number}
    this.points = []; // {seq, revs}: the state at remembered sequences
    this.updateSeq = null; // the highest seen
    this.rowsSeen = new Map(); // id → the last row that a changes feed showed
  }

  document(id) {
    let document = this.documents.get(id);
    if (!document) this.documents.set(id, (document = new Document(id)));
    return document;
  }

  /** Call before a write is sent. `parent`: the revision that it follows, or null. */
  attempt(id, parent, body, deleted = false) {
    const attempt = { id, parent, body: deleted ? '{}' : body, deleted };
    this.document(id).attempts.add(attempt);
    return attempt;
  }

  acknowledged(attempt, rev) {
    const expected = attempt.parent === null ? 1 : generation_of(attempt.parent) + 1;
    check(generation_of(rev) === expected, () =>
      `a write of ${attempt.id} on ${attempt.parent} was answered with revision ${rev}`);
    const document = this.document(attempt.id);
    document.attempts.delete(attempt);
    document.learn(rev, { deleted: attempt.deleted, body: attempt.body }, 'a write');
  }

  refused(attempt) {
    this.document(attempt.id).attempts.delete(attempt);
  }

  /** `before`: the highest sequence seen when this one was requested. */
  saw_update_seq(seq, before) {
    check(before === null || compare_seq(seq, before) >= 0, () =>
      `the update_seq of ${this.name} went back from ${before} to ${seq}`);
    if (this.updateSeq === null || compare_seq(seq, this.updateSeq) > 0) this.updateSeq = seq;
  }

  /** A row of a feed that was open while documents changed. */
  saw_row(row) {
    const content = row.deleted ? { deleted: true, body: '{}' } : { deleted: false };
    this.document(row.id).learn(row.changes[0].rev, content, 'a feed');
    this.rowsSeen.set(row.id, row);
    if (this.updateSeq === null || compare_seq(row.seq, this.updateSeq) > 0) this.updateSeq = row.seq;
  }

  /** Compares the server's documents with the model. There must be no writes meanwhile. */
  async verify(client) {
    const base = path_of(this.name);
    const info = await client.get(base);
    const listed = (await client.get(`${base}/_all_docs`)).rows;
    const changes = await client.get(`${base}/_changes`);
    const after = await client.get(base);
    check(after.update_seq === info.update_seq, `${this.name} changed without a write`);
    this.saw_update_seq(info.update_seq, this.updateSeq);
    this.check_changes(changes, info);
    await this.check_documents(client, changes.results);
    this.check_counts(info, listed, changes.results);
    this.check_feed_rows(changes.results);
    await this.check_points(client, changes);
    await this.check_locals(client);
    return this.documents.size;
  }

  check_changes(changes, info) {
    const ids = new Set();
    let last = null;
    for (const row of changes.results) {
      check(!ids.has(row.id), `_changes of ${this.name} has ${row.id} twice`);
      check(last === null || compare_seq(row.seq, last) > 0, `_changes of ${this.name} is not in order`);
      ids.add(row.id);
      last = row.seq;
    }
    check(last === null || last === info.update_seq, () =>
      `update_seq of ${this.name} is ${info.update_seq}, but its last change is ${last}`);
  }

  async check_documents(client, rows) {
    for (const row of rows) {
      check(this.documents.has(row.id), `${this.name} has a document that was never written: ${row.id}`);
    }
    const docs = [...this.documents.keys()].map((id) => ({ id }));
    const answer = await client.call('POST', `${path_of(this.name)}/_bulk_get?revs=true`, { docs }, [200]);
    check(answer.json.results.length === docs.length, `_bulk_get of ${this.name} leaves documents out`);
    for (const { id, docs: [found] } of answer.json.results) {
      this.check_document(this.document(id), found.ok ?? null, found.error);
    }
    for (const row of rows) {
      const { tip } = this.document(row.id);
      check(row.changes[0].rev === tip.rev && Boolean(row.deleted) === tip.deleted, () =>
        `_changes of ${this.name} has ${JSON.stringify(row)}, the document is ${tip.rev}`);
    }
  }

  check_document(document, found, error) {
    const name = `${this.name}/${document.id}`;
    if (found === null) {
      check(error.reason === 'missing', () => `${name} cannot be read: ${JSON.stringify(error)}`);
      check(document.tip === null, () => `${name} is lost: ${document.tip.rev} was acknowledged`);
      document.attempts.clear();
      return;
    }
    const { start, ids } = found._revisions;
    const history = new Map(ids.map((id, i) => [start - i, `${start - i}-${id}`]));
    const last = document.tip === null ? 0 : generation_of(document.tip.rev);
    check(start >= last, () => `${name} is at ${found._rev}, but ${document.tip.rev} was acknowledged`);
    for (let generation = 1; generation <= start; ++generation) {
      const rev = history.get(generation);
      if (rev === undefined) continue; // beyond the database's revs_limit
      const known = document.known.get(generation);
      check(known === undefined || known === rev, () =>
        `${name} has ${rev} in its history where ${known} was acknowledged`);
      if (known !== undefined) continue;
      const parent = history.get(generation - 1) ?? null;
      check([...document.attempts].some((attempt) => attempt.parent === parent), () =>
        `${name} has revision ${rev}, which was never written on ${parent}`);
      document.known.set(generation, rev);
    }
    this.check_body(document, found, history.get(start - 1) ?? null);
    document.attempts.clear();
  }

  // The winner's body equals the one that was sent, byte for byte.
  check_body(document, found, parent) {
    const deleted = found._deleted === true;
    const body = body_text(found);
    const { tip } = document;
    const whole = tip?.rev === found._rev && tip.body !== undefined
      ? tip.body === body && tip.deleted === deleted
      : [...document.attempts].some((attempt) =>
        attempt.parent === parent && attempt.body === body && attempt.deleted === deleted);
    check(whole, () => `${this.name}/${document.id} at ${found._rev} has another body than what was written`);
    document.tip = { rev: found._rev, deleted, body };
  }

  check_counts(info, listed, rows) {
    const known = [...this.documents.values()].filter((document) => document.tip !== null);
    const live = known.filter((document) => !document.tip.deleted);
    check(info.doc_count === live.length && info.doc_del_count === known.length - live.length, () =>
      `${this.name} counts ${info.doc_count} + ${info.doc_del_count}, ` +
      `there are ${live.length} + ${known.length - live.length}`);
    check(rows.length === known.length, `_changes of ${this.name} leaves documents out`);
    check(listed.length === live.length, `_all_docs of ${this.name} has ${listed.length} of ${live.length}`);
    for (const row of listed) {
      check(row.value.rev === this.document(row.id).tip.rev, `_all_docs of ${this.name} is wrong at ${row.id}`);
    }
    const bytes = known.reduce((sum, document) => sum + Buffer.byteLength(document.tip.body), 0);
    check(info.sizes.external === bytes, () =>
      `${this.name} counts ${info.sizes.external} bytes, there are ${bytes}`);
  }

  // A change keeps its sequence until the document changes again, which gives it a greater one.
  check_feed_rows(rows) {
    for (const row of rows) {
      const seen = this.rowsSeen.get(row.id);
      if (!seen) continue;
      const order = compare_seq(row.seq, seen.seq);
      check(row.changes[0].rev === seen.changes[0].rev ? order === 0 : order > 0, () =>
        `a feed of ${this.name} showed ${JSON.stringify(seen)}, now there is ${JSON.stringify(row)}`);
    }
  }

  // `since` a sequence whose state is known yields exactly the later changes.
  async check_points(client, changes) {
    const revs = new Map(changes.results.map((row) => [row.id, row.changes[0].rev]));
    for (const point of this.points) {
      const since = await client.get(`${path_of(this.name)}/_changes?since=${point.seq}`);
      const given = new Set(since.results.map((row) => row.id));
      for (const [id, rev] of revs) {
        const changed = point.revs.get(id) !== rev;
        check(given.has(id) === changed, () =>
          `_changes of ${this.name} since ${point.seq} ${changed ? 'misses' : 'repeats'} ${id}`);
      }
    }
    this.points.push({ seq: changes.last_seq, revs });
    // The oldest one is kept.
    if (this.points.length > kPointsKept) this.points.splice(1, 1);
  }

  async check_locals(client) {
    for (const [id, local] of this.locals) {
      const path = `${path_of(this.name)}/_local${path_of(id)}`;
      const { status, json } = await client.call('GET', path, undefined, [200, 404]);
      const value = status === 404 ? 0 : json.value;
      check(value === local.acknowledged || value === local.attempted, () =>
        `${this.name}/_local/${id} is ${value}; ${local.acknowledged} was acknowledged, ${local.attempted} sent`);
      check(value === 0 || json._rev === `0-${value}`, () => `_local/${id} is ${value} at ${json._rev}`);
      local.acknowledged = local.attempted = value;
    }
  }
}
