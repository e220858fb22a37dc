// A consumer of /_db_updates that remembers the last sequence it has seen, over all restarts, and nothing
// else: it must come to know everything that happens to databases.
import { Violation, check, until } from './client.mjs';
import { compare_seq, path_of } from './documents.mjs';
import { Actor } from './load.mjs';

export class UpdatesFollower extends Actor {
  since = '0';
  seen = new Map(); // "type database" → seq of its last row

  async step() {
    const path = `/_db_updates?feed=continuous&heartbeat=1000&since=${this.since}`;
    await this.follow('GET', path, undefined, (row) => this.take(row));
  }

  take(row) {
    if (row.last_seq) throw new Violation('a continuous feed with heartbeats ended by itself');
    check(compare_seq(row.seq, this.since) > 0, `/_db_updates since ${this.since} goes back to ${row.seq}`);
    this.since = row.seq;
    this.seen.set(`${row.type} ${row.db_name}`, row.seq);
  }

  async verify(client) {
    const { catalog } = this.world;
    const rows = await until('/_db_updates tells of the last change of each database', async () => {
      const { results } = await client.get('/_db_updates');
      return (await this.is_complete(client, catalog, rows_by_name(results))) && results;
    });
    const rest = await client.get(`/_db_updates?since=${this.since}`);
    for (const row of rest.results) this.take(row);
    check(rows.length === this.seen.size, 'who follows /_db_updates has seen rows that are not there any more');
    for (const row of rows) {
      check(this.seen.get(`${row.type} ${row.db_name}`) === row.seq, () =>
        `who follows /_db_updates has missed ${JSON.stringify(row)}`);
    }
  }

  // Both sequences are places in the same store's history: the row of a database's updates stands behind the
  // last change that it tells of.
  async is_complete(client, catalog, rows) {
    for (const name of catalog.present.keys()) {
      const created = rows.get(`created ${name}`);
      const updated = rows.get(`updated ${name}`);
      const deleted = rows.get(`deleted ${name}`);
      check(created && updated, `/_db_updates does not tell that ${name} was created`);
      check(!deleted || compare_seq(created, deleted) > 0, `/_db_updates tells that ${name} is deleted`);
      if (compare_seq(updated, (await client.get(path_of(name))).update_seq) <= 0) return false;
    }
    for (const name of catalog.gone) {
      const deleted = rows.get(`deleted ${name}`);
      check(deleted && compare_seq(deleted, rows.get(`created ${name}`)) > 0,
        `/_db_updates does not tell that ${name} was deleted`);
    }
    return true;
  }
}

function rows_by_name(results) {
  const rows = new Map();
  let last = null;
  for (const row of results) {
    const name = `${row.type} ${row.db_name}`;
    check(!rows.has(name), `/_db_updates has two rows for ${name}`);
    check(last === null || compare_seq(row.seq, last) > 0, '/_db_updates is not in order');
    rows.set(name, row.seq);
    last = row.seq;
  }
  return rows;
}
