import { any, array, asJson, boolean, either, exactly, is, map, object, oneOf, open, operation, ref, string } from './schema.mjs'

export const tag = { name: 'Documents', description: 'Single documents, and many in one request.' }

const missing = { 404: 'The database or the document does not exist, or it was deleted.' }
const rev = is(string, 'A revision.')
const shown = {
  attachments: is(boolean, 'With the contents of attachments.', false),
  att_encoding_info: is(boolean, 'With the encodings of attachments.', false),
  atts_since: asJson(array(string), 'With the contents of attachments that are newer than these revisions.'),
  conflicts: is(boolean, 'With `_conflicts`: leaves that are not deleted, other than the winner.', false),
  deleted: is(boolean, 'Also if it is deleted.', false),
  deleted_conflicts: is(boolean, 'With `_deleted_conflicts`.', false),
  latest: is(boolean, 'If the revision is not a leaf, its latest descendants.', false),
  local_seq: is(boolean, 'With `_local_seq`: the sequence of the last change.', false),
  meta: is(boolean, '`conflicts`, `deleted_conflicts` and `revs_info`.', false),
  open_revs: is(string, '`all`, or a JSON array of revisions: the response has these leaves.'),
  rev,
  revs: is(boolean, 'With `_revisions`: the history.', false),
  revs_info: is(boolean, 'With `_revs_info`: the history, and what of it can be read.', false)
}
const ifNoneMatch = { 'If-None-Match': is(string, 'An `ETag` that the client has.') }
const ifMatch = { 'If-Match': is(string, 'As `rev`.') }
const writing = {
  rev: is(string, 'The revision that is replaced.'),
  batch: is(string, '`ok`: the status is 202. The write is complete all the same.'),
  new_edits: is(boolean, '`false`: the document has its revision and history already, as in a replication.', true),
  w: is(string, 'Ignored.')
}
const tagOf = { ETag: 'The revision, in quotation marks.' }
const written = (status, description) => ({
  [status]: [description, ref('Written'), { ...tagOf, Location: 'The URI of the document, for new revisions.' }],
  202: ['With `batch=ok`.', ref('Written')]
})
const conflict = { 409: 'The revision is not the current one: the document was changed.' }
const body = { 'application/json': { schema: ref('NewDocument') } }

const read = (summary, text) =>
  operation(summary, {
    text,
    access: 'member',
    query: shown,
    headers: ifNoneMatch,
    ok: {
      200: [
        'The document; with `open_revs`, its revisions.',
        {
          'application/json': { schema: either(ref('Document'), ref('OpenRevisions')) },
          'multipart/related': { schema: string },
          'multipart/mixed': { schema: string }
        },
        tagOf
      ],
      304: ['The client has the document.']
    },
    errors: missing
  })
const write = (summary, access) =>
  operation(summary, {
    access,
    query: writing,
    headers: ifMatch,
    body: { ...body, 'multipart/related': { schema: string } },
    needsBody: true,
    ok: { ...written(201, 'Written.'), 200: ['Written, with `_deleted`.', ref('Written'), tagOf] },
    errors: { 404: 'The database does not exist.', ...conflict, 412: 'A stub names an attachment that the previous revision does not have.' }
  })
const remove = (summary, access) =>
  operation(summary, {
    text: 'Writes a revision that is deleted.',
    access,
    query: { rev: is(string, 'The current revision.'), batch: writing.batch, w: writing.w },
    headers: ifMatch,
    ok: written(200, 'Deleted.'),
    errors: { ...missing, ...conflict }
  })
const copy = (summary, access) =>
  operation(summary, {
    text: 'A request with the method `COPY`, which OpenAPI cannot describe; this is its equivalent with `POST` and `X-HTTP-Method-Override`.',
    access,
    query: { rev: is(string, 'The revision that is copied.'), batch: writing.batch },
    headers: {
      'X-HTTP-Method-Override!': exactly('COPY'),
      'Destination!': is(string, 'Id of the copy, percent-encoded; `id?rev=...` replaces a document.')
    },
    ok: written(201, 'Copied.'),
    errors: { ...missing, ...conflict }
  })

export const paths = {
  '/{db}/{docid}': {
    get: read('Read a document'),
    put: write('Write a document', 'member'),
    delete: remove('Delete a document', 'member'),
    post: copy('Copy a document', 'member')
  },
  '/{db}/_design/{ddoc}': {
    get: read('Read a design document'),
    put: write('Write a design document', 'database admin'),
    delete: remove('Delete a design document', 'database admin'),
    post: copy('Copy a design document', 'database admin')
  },
  '/{db}/_local/{localid}': {
    get: read('Read a local document', 'Local documents are not replicated, and not in feeds and views. They have one revision and no attachments.'),
    put: operation('Write a local document', {
      access: 'member',
      query: { rev: writing.rev, batch: is(string, 'Ignored.'), new_edits: is(boolean, 'Ignored.'), w: writing.w },
      headers: ifMatch,
      body,
      needsBody: true,
      ok: { 201: ['Written.', ref('Written')] },
      errors: { 404: 'The database does not exist.', ...conflict }
    }),
    delete: operation('Delete a local document', {
      access: 'member',
      query: { rev: writing.rev, batch: is(string, 'Ignored.'), w: writing.w },
      headers: ifMatch,
      ok: { 200: ['Deleted.', ref('Written')] },
      errors: { ...missing, ...conflict }
    }),
    post: copy('Copy a local document', 'member')
  },
  '/{db}/_bulk_docs': {
    post: operation('Write several documents', {
      text: 'Each is written or not, whatever becomes of the others; `POST /_transact` writes all or none. With `new_edits` false the documents have their revisions and histories already, and the response has only the refused ones.',
      access: 'member',
      query: { w: is(string, 'Ignored.') },
      body: open({ docs: array(ref('NewDocument')), 'new_edits?': boolean, 'all_or_nothing?': exactly(false) }),
      needsBody: true,
      ok: { 201: ['A result for each document, in their order.', array(ref('BulkResult'))] },
      errors: { 404: 'The database does not exist.' }
    })
  },
  '/{db}/_bulk_get': {
    post: operation('Read several documents', {
      access: 'member',
      query: {
        revs: shown.revs,
        latest: shown.latest,
        attachments: shown.attachments,
        att_encoding_info: shown.att_encoding_info
      },
      body: open({ docs: is(array(any), 'Objects with `id` and, optionally, `rev` and `atts_since`. Elements that are something else have errors in the response.') }),
      needsBody: true,
      ok: {
        200: [
          'The revisions of each document.',
          {
            'application/json': { schema: ref('BulkGet') },
            'multipart/mixed': { schema: string },
            'multipart/related': { schema: string }
          }
        ]
      },
      errors: { 404: 'The database does not exist.' }
    })
  },
  '/_transact': {
    post: operation('Write documents and jobs in one transaction', {
      text: 'Writes all of them or none. Jobs are finished, then removed, then added; then documents are written. At most 10,000 documents and jobs.',
      access: 'jobs',
      body: object({
        'docs?': is(map(array(ref('NewDocument'))), 'Documents by the name of their database.'),
        'jobs?': object({
          'finish?': array(object({ type: string, id: string, lock: string, 'data?': any, 'result?': any })),
          'remove?': array(object({ type: string, id: string })),
          'add?': array(ref('JobToAddWithType'))
        })
      }),
      needsBody: true,
      ok: {
        200: [
          'All is written.',
          object({
            ok: exactly(true),
            docs: map(array(ref('Written'))),
            jobs: object({
              finish: array(object({ ok: exactly(true), type: string, id: string })),
              remove: array(object({ ok: exactly(true), type: string, id: string })),
              add: array(object({ ok: exactly(true), type: string, id: string, created: boolean }))
            })
          })
        ]
      },
      errors: {
        404: 'A database, a job or its type does not exist. Nothing is written.',
        409: 'A document was changed (`conflict`), or the attempt of a job has ended (`halt`). Nothing is written.',
        413: 'The transaction is too large.'
      }
    })
  }
}

/** POST /{db}, whose other methods are in databases.mjs. */
export const createDocument = operation('Write a document whose id the server chooses', {
  text: 'Unless it has an `_id`.',
  access: 'member',
  query: { batch: writing.batch, w: writing.w },
  body,
  needsBody: true,
  ok: written(201, 'Written.'),
  errors: { 404: 'The database does not exist.', ...conflict }
})

export const schemas = {
  OpenRevisions: array(either(object({ ok: ref('Document') }), object({ missing: string }))),
  BulkResult: either(
    ref('Written'),
    object({
      'id?': string,
      'rev?': is(string, 'With `new_edits` false.'),
      error: string,
      'name?': is(oneOf('forbidden', 'unauthorized'), 'With `new_edits` false: for PouchDB.'),
      reason: string
    })
  ),
  BulkGet: object({
    results: array(
      object({
        id: any,
        docs: array(
          either(object({ ok: ref('Document') }), object({ error: object({ id: any, rev: any, error: string, reason: string }) }))
        )
      })
    )
  })
}
