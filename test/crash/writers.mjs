// Actors that write documents and databases.
import { Client, Violation, check, sleep } from './client.mjs';
import { compare_seq, document_path, path_of } from './documents.mjs';
import { Actor } from './load.mjs';
import { design_body } from './views.mjs';

export const kStable = ['crash-a', 'crash-b', 'crash-c'];
const kIdsPerWriter = 150;
const kPad = 'Wolken ziehen über die Felder, und 雲 ebenso. ';

/** A unique body, with something to index. */
export function make_body(world, random, padBytes) {
  const n = ++world.written;
  const body = {
    n,
    k: `g${random.below(20)}`,
    v: random.below(1000),
    tags: random.shuffled(['red', 'green', 'blue', 'white']).slice(0, random.below(4)),
  };
  if (padBytes > 0) body.pad = kPad.repeat(Math.ceil(padBytes / kPad.length));
  return JSON.stringify(body);
}

function pad_bytes(random) {
  if (random.chance(0.02)) return random.between(100_000, 300_000); // several chunks of the store
  return random.chance(0.3) ? random.between(500, 5_000) : 0;
}

class Writer extends Actor {
  /** Writes one version of a document that no other actor writes, and waits for the response. */
  async write(database, id, content) {
    const { tip } = database.document(id);
    const parent = tip?.rev ?? null;
    const rev = tip && !tip.deleted ? `?rev=${parent}` : '';
    const attempt = database.attempt(id, parent, content ?? '{}', content === null);
    const method = content === null ? 'DELETE' : 'PUT';
    const path = document_path(database.name, id) + rev;
    const { json } = await this.call(method, path, content ?? undefined, [200, 201]);
    database.acknowledged(attempt, json.rev);
    this.world.acknowledged('put');
  }
}

/** Creates, updates and deletes documents of its own, one per request. */
export class PutWriter extends Writer {
  async step() {
    const database = this.world.catalog.get(this.random.pick(kStable));
    const id = `${this.name} ${this.random.below(kIdsPerWriter)}/ü`;
    const document = database.document(id);
    const remove = document.exists && this.random.chance(0.15);
    await this.write(database, id, remove ? null : make_body(this.world, this.random, pad_bytes(this.random)));
  }
}

/** The same, many per request. */
export class BulkWriter extends Actor {
  async step() {
    const database = this.world.catalog.get(this.random.pick(kStable));
    // Occasionally more than one transaction can hold.
    const large = this.random.chance(0.1);
    const count = this.random.between(5, large ? 60 : 40);
    const numbers = this.random.shuffled([...Array(kIdsPerWriter).keys()]).slice(0, count);
    const attempts = numbers.map((number) => {
      const id = `${this.name} ${number}`;
      const { tip, exists } = database.document(id);
      const deleted = exists && this.random.chance(0.2);
      const pad = large ? 50_000 : pad_bytes(this.random);
      return database.attempt(id, tip?.rev ?? null, make_body(this.world, this.random, pad), deleted);
    });
    const docs = attempts.map(({ id, parent, body, deleted }) => {
      const { exists } = database.document(id);
      const special = { _id: id, ...(exists && { _rev: parent }), ...(deleted && { _deleted: true }) };
      return { ...special, ...JSON.parse(body) };
    });
    const { json } = await this.call('POST', `${path_of(database.name)}/_bulk_docs`, { docs }, [201]);
    check(json.length === attempts.length, 'an answer of _bulk_docs leaves documents out');
    json.forEach((result, i) => {
      check(result.ok && result.id === attempts[i].id, () =>
        `_bulk_docs refuses ${attempts[i].id} on ${attempts[i].parent}: ${JSON.stringify(result)}`);
      database.acknowledged(attempts[i], result.rev);
    });
    this.world.acknowledged(large ? 'large bulk' : 'bulk');
  }
}

/** Updates documents that other such actors also update; conflicts are expected. */
export class HotWriter extends Actor {
  async step() {
    const database = this.world.catalog.get(kStable[0]);
    const id = `hot ${this.random.below(3)}`;
    const path = document_path(database.name, id);
    const read = await this.call('GET', path, undefined, [200, 404]);
    const parent = read.status === 200 ? read.json._rev : null;
    if (parent) database.document(id).learn(parent, { deleted: false }, 'a read');
    const attempt = database.attempt(id, parent, make_body(this.world, this.random, 0));
    const query = parent ? `?rev=${parent}` : '';
    const { status, json } = await this.call('PUT', path + query, attempt.body, [201, 409]);
    if (status === 409) return database.refused(attempt);
    database.acknowledged(attempt, json.rev);
    this.world.acknowledged('put');
  }
}

/** Creates databases, fills them and deletes them again, also while they are being written to. */
export class ChurnWriter extends Writer {
  second = new Client(this.world.server);

  close() {
    super.close();
    this.second.close();
  }

  async step() {
    const { catalog } = this.world;
    const name = `churn-${this.random.below(4)}`;
    let database = catalog.get(name);
    if (!database) {
      database = await catalog.create(this.client, name);
      this.world.acknowledged('create');
      if (this.random.chance(0.5)) await this.write(database, '_design/rows', design_body(this.random.below(3)));
    }
    const count = this.random.below(12);
    for (let i = 0; i < count && !this.world.stopped; ++i) {
      await this.write(database, `doc ${this.random.below(30)}`, make_body(this.world, this.random, 0));
    }
    if (this.random.chance(0.5)) {
      const both = await Promise.allSettled([catalog.remove(this.client, name), this.other(database)]);
      for (const { reason } of both) if (reason) throw reason;
      this.world.acknowledged('delete');
    }
  }

  // A write that races the deletion over another connection: either may win.
  async other(database) {
    const attempt = database.attempt(`late ${++this.world.written}`, null, '{"late":true}');
    const path = document_path(database.name, attempt.id);
    const { status, json } = await this.second.call('PUT', path, attempt.body, [201, 404]);
    if (status === 404) return database.refused(attempt);
    database.acknowledged(attempt, json.rev);
  }
}

/** Saves design documents, so that new indexes are built repeatedly. */
export class DesignWriter extends Writer {
  async step() {
    const database = this.world.catalog.get(this.random.pick(kStable));
    await this.write(database, '_design/rows', design_body(this.random.below(3)));
    this.world.acknowledged('put');
    await sleep(this.random.between(200, 1500));
  }
}

/** Counts in local documents. */
export class LocalWriter extends Actor {
  async step() {
    const database = this.world.catalog.get(this.random.pick(kStable));
    const id = `checkpoint ${this.random.below(5)}`;
    const local = database.locals.get(id) ?? { acknowledged: 0, attempted: 0 };
    database.locals.set(id, local);
    local.attempted = local.acknowledged + 1;
    const body = { value: local.attempted, ...(local.acknowledged && { _rev: `0-${local.acknowledged}` }) };
    const path = `${path_of(database.name)}/_local${path_of(id)}`;
    const { json } = await this.call('PUT', path, body, [201]);
    check(json.rev === `0-${local.attempted}`, `_local/${id} was answered with ${json.rev}`);
    local.acknowledged = local.attempted;
    await sleep(20);
  }
}

/** Reads while others write: what a reader has seen must not disappear. */
export class Reader extends Actor {
  async step() {
    const database = this.world.catalog.get(this.random.pick(kStable));
    const { updateSeq } = database;
    const info = await this.client.get(path_of(database.name));
    database.saw_update_seq(info.update_seq, updateSeq);
    await sleep(30);
  }
}

/** Follows the changes of one database over all restarts, from the last row that it has seen. */
export class ChangesFollower extends Actor {
  since = '0';

  async step() {
    const database = this.world.catalog.get(kStable[0]);
    const path = `${path_of(database.name)}/_changes?feed=continuous&heartbeat=1000&since=${this.since}`;
    await this.follow('GET', path, undefined, (row) => this.take(database, row));
  }

  take(database, row) {
    if (row.last_seq) throw new Violation('a continuous feed with heartbeats ended');
    check(compare_seq(row.seq, this.since) > 0, () =>
      `the feed since ${this.since} of ${database.name} goes back to ${row.seq}`);
    this.since = row.seq;
    database.saw_row(row);
  }

  /** Checks that the follower, once it has caught up, has seen all documents. */
  async verify(client) {
    const database = this.world.catalog.get(kStable[0]);
    const rest = await client.get(`${path_of(database.name)}/_changes?since=${this.since}`);
    for (const row of rest.results) this.take(database, row);
    for (const { id, tip } of database.documents.values()) {
      if (tip === null) continue;
      check(database.rowsSeen.get(id)?.changes[0].rev === tip.rev, () =>
        `a follower of the changes of ${database.name} has missed ${tip.rev} of ${id}`);
    }
  }
}
