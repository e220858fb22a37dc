// The databases that the test expects.
import { check } from './client.mjs';
import { Database } from './documents.mjs';

export class Catalog {
  constructor() {
    this.present = new Map(); // name → Database
    this.gone = new Set(); // names that were deleted and not created again
    this.creating = new Set(); // names whose creation has no response
    this.deleting = new Set();
    this.others = new Set(['_users']); // exist, and are not verified here
  }

  get(name) {
    return this.present.get(name);
  }

  created(name) {
    this.creating.delete(name);
    this.gone.delete(name);
    const database = new Database(name);
    this.present.set(name, database);
    return database;
  }

  deleted(name) {
    this.deleting.delete(name);
    this.present.delete(name);
    this.gone.add(name);
  }

  async create(client, name) {
    this.creating.add(name);
    await client.call('PUT', `/${encodeURIComponent(name)}`, undefined, [201]);
    return this.created(name);
  }

  async remove(client, name) {
    this.deleting.add(name);
    await client.call('DELETE', `/${encodeURIComponent(name)}`, undefined, [200]);
    this.deleted(name);
  }

  /** Finds out how unanswered creations and deletions ended, and compares the rest with what is known. */
  async verify_names(client) {
    const names = new Set(await client.get('/_all_dbs'));
    for (const name of this.others) names.delete(name);
    for (const name of this.creating) {
      if (names.has(name)) this.created(name);
    }
    for (const name of this.deleting) {
      if (!names.has(name)) this.deleted(name);
    }
    this.creating.clear();
    this.deleting.clear();
    for (const name of this.present.keys()) check(names.has(name), `database ${name} is lost`);
    for (const name of names) check(this.present.has(name), `database ${name} is there, but should not be`);
  }

  /** The same, and verifies their contents. */
  async verify(client) {
    await this.verify_names(client);
    let documents = 0;
    for (const database of this.present.values()) documents += await database.verify(client);
    return documents;
  }
}
