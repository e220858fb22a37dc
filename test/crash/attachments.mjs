// Actors that write attachments of a few contents, which are stored once and counted: `divan verify` compares the counts after
// each kill, and every attachment that a document shows must be readable.
import { createHash } from 'node:crypto';

import { check } from './client.mjs';
import { Actor } from './load.mjs';

export const kAttached = 'crash-attached';
const kDocuments = 12;
// One row, several rows, several pages, and several transactions.
const kContents = [0, 10, 1_000, 200_000, 800_000, 3_000_000].map((size, i) => Buffer.alloc(size, 'abcde'[i]).toString());

const digest_of = (text) => 'md5-' + createHash('md5').update(text).digest('base64');

/** Edits, conflicts, copies and deletions of documents that all such actors share. */
export class AttachmentWriter extends Actor {
  async step() {
    const id = `doc ${this.random.below(kDocuments)}`;
    const path = `/${kAttached}/${encodeURIComponent(id)}`;
    const { status, json: document } = await this.call('GET', path, undefined, [200, 404]);
    const rev = status === 200 ? document._rev : undefined;
    const expected = [200, 201, 404, 409];
    if (rev && this.random.chance(0.2)) {
      await this.call('DELETE', `${path}?rev=${rev}`, undefined, expected);
    } else if (rev && this.random.chance(0.3)) {
      // A revision beside or after the present one, with its attachments.
      const start = Number(rev.split('-')[0]) + 1;
      const ids = [createHash('md5').update(`${++this.world.written}`).digest('hex'), rev.slice(rev.indexOf('-') + 1)];
      const revision = { _id: id, _revisions: { start, ids }, _attachments: document._attachments ?? {} };
      await this.call('POST', `/${kAttached}/_bulk_docs`, JSON.stringify({ new_edits: false, docs: [revision] }), expected);
    } else if (this.random.chance(0.3)) {
      const query = rev ? `?rev=${rev}` : '';
      await this.call('PUT', `${path}/file%20${this.random.below(4)}${query}`, this.random.pick(kContents), expected);
    } else {
      const _attachments = this.random.chance(0.5) ? { ...document?._attachments } : {};
      for (let i = this.random.below(4); i > 0; --i) {
        _attachments[`file ${i}`] = { data: Buffer.from(this.random.pick(kContents)).toString('base64') };
      }
      if (!rev) for (const [name, { stub }] of Object.entries(_attachments)) if (stub) delete _attachments[name];
      await this.call('PUT', path, JSON.stringify({ ...(rev && { _rev: rev }), _attachments }), expected);
    }
    this.world.acknowledged('attachments');
  }
}

/** Reads all attachments. There must be no writes meanwhile. */
export async function verify_attachments(client) {
  const { rows } = await client.get(`/${kAttached}/_all_docs`);
  for (const { id } of rows) {
    // By its id: a listing has no documents with more than 8 MB of attachments.
    const doc = await client.get(`/${kAttached}/${encodeURIComponent(id)}?attachments=true`);
    for (const [name, { data, digest }] of Object.entries(doc._attachments ?? {})) {
      const text = Buffer.from(data, 'base64').toString();
      check(kContents.includes(text) && digest_of(text) === digest, () => `${name} of ${id} has another content`);
    }
  }
}
