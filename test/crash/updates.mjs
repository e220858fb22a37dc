// /_db_updates over all restarts: each database that changed has its row, and a consumer that stores only the
// last sequence that it has seen learns of every change.
import { Violation, check, sleep, until } from './client.mjs';
import { compare_seq, path_of } from './documents.mjs';
import { Actor } from './load.mjs';

/**
 * A consumer. `feed`: the kind of feed. `restless`: it repeatedly drops its connection at any position, and continues from
 * the sequence that it has stored.
 */
export class UpdatesFollower extends Actor {
  since = '0';
  seen = new Map(); // "type database" → seq of its last row
  connections = 0;
  rows = 0;

  constructor(world, name, feed, restless = false) {
    super(world, name);
    this.feed = feed;
    this.restless = restless;
  }

  async step() {
    ++this.connections;
    await this[this.feed]({ forMs: this.restless ? this.random.below(150) : Infinity });
  }

  async continuous(options) {
    const path = `/_db_updates?feed=continuous&heartbeat=1000&since=${this.since}`;
    await this.follow('GET', path, undefined, (row) => this.take(row), options);
  }

  // As in browsers: the sequence is sent in a header.
  async eventsource(options) {
    let row = null;
    const parse = (line) => {
      const field = /^([a-z]+): ?(.*)$/.exec(line);
      check(field, `no line of an event stream: ${line}`);
      return field;
    };
    const take = ([, name, value]) => {
      if (name === 'data' && value !== '') row = JSON.parse(value);
      if (name !== 'id') return;
      check(row?.seq === value, () => `an event has the id ${value}, and its row is ${JSON.stringify(row)}`);
      this.take(row);
    };
    const headers = this.since === '0' ? {} : { 'Last-Event-ID': this.since };
    const path = '/_db_updates?feed=eventsource&heartbeat=1000';
    await this.follow('GET', path, undefined, take, { ...options, headers, parse });
  }

  async longpoll() {
    const timeout = this.restless ? this.random.below(150) : 1000;
    const limit = this.random.between(1, 20);
    const query = `feed=longpoll&timeout=${timeout}&limit=${limit}&since=${this.since}`;
    const { results, last_seq } = await this.client.get(`/_db_updates?${query}`);
    check(results.length <= limit, `${results.length} rows where ${limit} were asked for`);
    for (const row of results) this.take(row);
    check(compare_seq(last_seq, this.since) >= 0, () => `/_db_updates since ${this.since} ends at ${last_seq}`);
    this.since = last_seq;
    if (!this.world.stopped) await sleep(5);
  }

  take(row) {
    if (row.last_seq) throw new Violation('a continuous feed with heartbeats ended');
    check(compare_seq(row.seq, this.since) > 0, `/_db_updates since ${this.since} goes back to ${row.seq}`);
    this.since = row.seq;
    this.seen.set(`${row.type} ${row.db_name}`, row.seq);
    ++this.rows;
  }

  /** `rows`: all rows, while nothing changes. */
  async verify(client, rows) {
    const rest = await client.get(`/_db_updates?since=${this.since}`);
    for (const row of rest.results) this.take(row);
    check(rows.length === this.seen.size, `${this.name} has seen rows that are not there any more`);
    for (const row of rows) {
      check(this.seen.get(`${row.type} ${row.db_name}`) === row.seq, () =>
        `${this.name} has missed ${JSON.stringify(row)}`);
    }
  }
}

/** While there are no writes: checks that the feed becomes complete, and that the followers have missed nothing. Returns its length. */
export async function verify_updates(client, catalog, followers) {
  const rows = await until('/_db_updates tells of the last change of each database', async () => {
    const { results } = await client.get('/_db_updates');
    return (await is_complete(client, catalog, rows_by_name(results))) && results;
  });
  for (const follower of followers) await follower.verify(client, rows);
  return rows.length;
}

// Both sequences are positions in the same store's history: the row of a database's updates follows the last
// change that it reports.
async function is_complete(client, catalog, rows) {
  for (const name of catalog.present.keys()) {
    const created = rows.get(`created ${name}`);
    const updated = rows.get(`updated ${name}`);
    const deleted = rows.get(`deleted ${name}`);
    check(created && updated, `/_db_updates does not tell that ${name} was created`);
    check(!deleted || compare_seq(created, deleted) > 0, `/_db_updates tells that ${name} is deleted`);
    const { update_seq } = await client.get(path_of(name));
    if (compare_seq(updated, update_seq) <= 0) return false;
  }
  for (const name of catalog.gone) {
    const deleted = rows.get(`deleted ${name}`);
    check(deleted && compare_seq(deleted, rows.get(`created ${name}`)) > 0,
      `/_db_updates does not tell that ${name} was deleted`);
  }
  return true;
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
