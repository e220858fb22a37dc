import { any, array, asJson, boolean, count, either, exactly, is, nullable, object, oneOf, open, operation, ref, string } from './schema.mjs'

export const tag = { name: 'Views', description: 'Listings of documents, and map/reduce views.' }

const keys = {
  key: asJson(any, 'Only rows with this key.'),
  keys: asJson(array(any), 'Only rows with these keys, in this order.'),
  start_key: asJson(any, 'The first key.'),
  end_key: asJson(any, 'The last key.'),
  startkey: asJson(any, 'As `start_key`.'),
  endkey: asJson(any, 'As `end_key`.'),
  start_key_doc_id: is(string, 'The first id among rows with the key `start_key`.'),
  end_key_doc_id: is(string, 'The last id among rows with the key `end_key`.'),
  startkey_docid: is(string, 'As `start_key_doc_id`.'),
  endkey_docid: is(string, 'As `end_key_doc_id`.'),
  inclusive_end: is(boolean, 'Whether rows with the key `end_key` are included.', true),
  descending: is(boolean, 'The last row first. `start_key` is then the greatest key.', false),
  skip: is(count, 'Rows that are skipped.', 0),
  limit: is(count, 'The most rows; all by default.')
}
const documents = {
  include_docs: is(boolean, 'Rows have their documents.', false),
  conflicts: is(boolean, 'Documents have `_conflicts`.', false),
  attachments: is(boolean, 'Documents have the contents of their attachments.', false),
  att_encoding_info: is(boolean, 'Documents have the encodings of their attachments.', false)
}
// A listing checks them, too, except that they have no effect.
const index = {
  reduce: is(boolean, 'Whether the rows are reduced; true by default for a view with a reduce function.'),
  group: is(boolean, 'One row for each key.', false),
  group_level: is(count, 'One row for each beginning of this length of keys that are arrays.'),
  update_seq: is(boolean, 'The response has `update_seq`.', false),
  sorted: is(boolean, 'Whether rows are sorted.', true),
  update: is(oneOf('true', 'false', 'lazy'), 'Whether to wait for the index to be built (`true`), or not; `lazy` builds it after the response.', 'true'),
  stale: is(oneOf('ok', 'update_after'), 'The older form of `update`: `ok` is `false`, `update_after` is `lazy`.'),
  stable: is(boolean, 'Has no effect.')
}
const withoutEffect = ({ type, ...more }) => is({ type, ...(more.enum && { enum: more.enum }) }, 'Of views; has no effect here.')
export const listing = {
  ...keys,
  ...documents,
  ...Object.fromEntries(Object.entries(index).map(([name, schema]) => [name, name === 'update_seq' ? schema : withoutEffect(schema)]))
}
const documentListing = { ...listing, partition: is(string, 'The partition, in a partitioned database.') }
export const viewQuery = { ...keys, ...documents, ...index, partition: is(string, 'The partition, in a partitioned database.') }

// The same in a body.
const inBody = (parameters) =>
  Object.fromEntries(
    Object.entries(parameters).map(([name, { json, description, ...schema }]) => [
      name + '?',
      json ? schema : is(schema.enum ? either(schema, boolean) : either(schema, string), description)
    ])
  )
const queries = open({ queries: { ...array(ref('ViewQuery')), maxItems: 1000 } })

const missing = { 404: 'The database or the view does not exist.' }
const rows = { 200: ['The rows.', ref('Rows')] }
const viewRows = { 200: ['The rows.', ref('Rows'), { ETag: 'Of the index and the parameters.' }] }
const results = { 200: ['A result for each query.', object({ results: array(ref('Rows')) })] }
const get = (summary, text, query = listing) => operation(summary, { text, access: 'member', query, ok: rows, errors: missing })
const post = (summary, text, query = listing) =>
  operation(summary, { text, access: 'member', query, body: ref('ViewQuery'), ok: rows, errors: missing })
const view = (what, text) => ({
  get: operation(`Query ${what}`, {
    text,
    access: 'member',
    query: viewQuery,
    headers: { 'If-None-Match': is(string, 'An `ETag` that the client has.') },
    ok: { ...viewRows, 304: ['The client has the response.'] },
    errors: missing
  }),
  post: operation(`Query ${what}, with parameters in the body`, { text, access: 'member', query: viewQuery, body: ref('ViewQuery'), ok: viewRows, errors: missing })
})
const several = (summary, query = listing) =>
  operation(summary, {
    text: 'Parameters in the URL apply to all queries.',
    access: 'member',
    query: { ...query, keys: asJson(any, 'Ignored.'), group: is(boolean, 'Ignored.'), group_level: is(count, 'Ignored.') },
    body: queries,
    needsBody: true,
    ok: results,
    errors: missing
  })
const list = (what, text, query) => ({
  get: get(`List ${what}`, text, query),
  post: post(`List ${what}, with parameters in the body`, text, query)
})

export const paths = {
  '/{db}/_all_docs': list('the documents', 'In the order of ids. With `keys`, documents that do not exist have rows with an error.', documentListing),
  '/{db}/_all_docs/queries': { post: several('List documents several times') },
  '/{db}/_design_docs': list('the design documents'),
  '/{db}/_design_docs/queries': { post: several('List design documents several times') },
  '/{db}/_local_docs': list('the local documents'),
  '/{db}/_local_docs/queries': { post: several('List local documents several times') },
  '/{db}/_partition/{partition}/_all_docs': list('the documents of a partition', '', documentListing),
  '/{db}/_partition/{partition}/_all_docs/queries': { post: several('List documents of a partition several times') },
  '/{db}/_design/{ddoc}/_view/{view}': view('a view', 'Waits until the view has everything that was written before the request, unless `update` says otherwise.'),
  '/{db}/_design/{ddoc}/_view/{view}/queries': { post: several('Query a view several times', viewQuery) },
  '/{db}/_partition/{partition}/_design/{ddoc}/_view/{view}': view('a view of a partition'),
  '/{db}/_partition/{partition}/_design/{ddoc}/_view/{view}/queries': { post: several('Query a view of a partition several times', viewQuery) },
  '/{db}/_design/{ddoc}/_info': {
    get: operation('Describe the views of a design document', { access: 'member', ok: { 200: ['The views.', ref('ViewInfo')] }, errors: missing })
  }
}

export const schemas = {
  ViewQuery: is(open(inBody(viewQuery)), 'The parameters of a view or a listing, as in a URL.'),
  Rows: object({
    'total_rows?': is(nullable(count), 'Rows of the whole view or listing; absent if the rows are reduced.'),
    'offset?': is(nullable(count), 'Rows before the first one, if known.'),
    'update_seq?': nullable(ref('Sequence')),
    rows: array(ref('Row'))
  }),
  Row: either(
    object({
      'id?': is(string, 'Id of the document; absent if the rows are reduced.'),
      key: any,
      value: any,
      'doc?': is(nullable(ref('Document')), 'With `include_docs`.')
    }),
    object({ key: any, error: is(string, '`not_found`, or why the rows could not be reduced.'), 'reason?': string })
  ),
  ViewInfo: object({
    name: string,
    view_index: object({
      signature: string,
      language: string,
      updater_running: boolean,
      waiting_clients: count,
      update_seq: ref('Sequence'),
      updates_pending: object({ minimum: count, preferred: count, total: count }),
      collator_versions: array(string),
      sizes: object({ file: count, external: count, active: count }),
      compact_running: exactly(false),
      waiting_commit: exactly(false),
      purge_seq: exactly(0),
      left_out: ref('LeftOut'),
      'build?': object({ state: string, 'progress?': any, 'last_error?': string })
    })
  })
}
