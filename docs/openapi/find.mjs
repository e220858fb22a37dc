import { any, anyObject, array, boolean, count, either, exactly, is, map, nullable, number, object, oneOf, ok, open, operation, ref, string } from './schema.mjs'

export const tag = { name: 'Queries', description: "CouchDB's query language, Mango, and its indexes." }

const missing = { 404: 'The database does not exist.' }
const query = ref('FindQuery')
const findQuery = open({
  selector: is(anyObject, 'Conditions that documents meet.'),
  'limit?': is(count, 'The most documents.', 25),
  'skip?': is(count, 'Documents that are skipped.', 0),
  'sort?': is(array(either(string, map(oneOf('asc', 'desc')))), 'Fields, or objects with a field and `asc` or `desc`.'),
  'fields?': is(array(string), 'The fields of the response; all by default.'),
  'use_index?': is(either(string, array(string)), 'A design document, or a design document and the name of an index.'),
  'bookmark?': is(nullable(string), 'The `bookmark` of an earlier response: continues there.'),
  'update?': is(boolean, 'Wait for the index to be built.', true),
  'stale?': is(any, '`ok`: as `update` false.'),
  'stable?': is(boolean, 'Has no effect.', false),
  'r?': is({ ...count, minimum: 1 }, 'Changes only the statistics.', 1),
  'conflicts?': is(boolean, 'Documents have `_conflicts`.', false),
  'execution_stats?': is(boolean, 'The response has `execution_stats`.', false),
  'allow_fallback?': is(boolean, 'Another index may be used if `use_index` cannot be.', true),
  'partition?': string
})
const partition = { partition: is(string, 'The partition that is searched.') }
const find = operation('Find documents', {
  text: 'Waits until the index has everything that was written before the request, unless `update` is false.',
  access: 'member',
  query: partition,
  body: query,
  needsBody: true,
  ok: { 200: ['The documents.', ref('Found')] },
  errors: missing
})
const explain = operation('Show how documents would be found', {
  access: 'member',
  query: partition,
  body: query,
  needsBody: true,
  ok: { 200: ['The plan.', ref('Explanation')] },
  errors: missing
})
const list = operation('List indexes', {
  access: 'member',
  query: { limit: is({ ...count, minimum: 1 }, 'The most indexes.'), skip: is(count, 'Indexes that are skipped.', 0) },
  ok: { 200: ['The indexes.', object({ total_rows: count, indexes: array(ref('MangoIndex')) })] },
  errors: missing
})
const create = operation('Create an index', {
  access: 'database admin',
  body: open({
    index: is(anyObject, 'What is indexed: `fields`, and optionally `partial_filter_selector`.'),
    'name?': string,
    'ddoc?': is(string, 'The design document.'),
    'type?': is(oneOf('json', 'text'), 'The type.', 'json'),
    'partitioned?': is(either(boolean, exactly('db_default')), 'Whether it is one of each partition.'),
    'w?': is(count, 'Ignored.', 2)
  }),
  needsBody: true,
  ok: { 200: ['It exists.', object({ result: oneOf('created', 'exists'), id: string, name: string })] },
  errors: missing
})
const remove = operation('Delete an index', { access: 'database admin', ok: { 200: ['Deleted.', ok] }, errors: { 404: 'There is no such index.' } })

export const paths = {
  '/{db}/_find': { post: find },
  '/{db}/_explain': { post: explain },
  '/{db}/_partition/{partition}/_find': { post: find },
  '/{db}/_partition/{partition}/_explain': { post: explain },
  '/{db}/_partition/{partition}/_index': { get: list, post: create },
  '/{db}/_index': { get: list, post: create },
  '/{db}/_index/_bulk_delete': {
    post: operation('Delete the indexes of design documents', {
      access: 'database admin',
      body: open({ docids: array(string), 'w?': count }),
      needsBody: true,
      ok: {
        200: [
          'Which were deleted.',
          object({
            success: array(object({ id: string, ok: exactly(true) })),
            fail: array(object({ id: string, error: string }))
          })
        ]
      },
      errors: missing
    })
  },
  '/{db}/_index/{ddoc}/json/{index}': { delete: remove },
  '/{db}/_index/{ddoc}/text/{index}': { delete: remove },
  '/{db}/_index/_design/{ddoc}/json/{index}': { delete: remove },
  '/{db}/_index/_design/{ddoc}/text/{index}': { delete: remove }
}

export const schemas = {
  FindQuery: findQuery,
  Found: object({
    docs: array(anyObject),
    bookmark: string,
    'warning?': string,
    'execution_stats?': object({
      total_keys_examined: count,
      total_docs_examined: count,
      total_quorum_docs_examined: count,
      results_returned: count,
      execution_time_ms: number
    })
  }),
  MangoIndex: object({
    ddoc: nullable(string),
    name: string,
    type: oneOf('special', 'json', 'text'),
    'partitioned?': boolean,
    def: anyObject
  }),
  Explanation: open({
    dbname: string,
    index: nullable(ref('MangoIndex')),
    partitioned: boolean,
    selector: anyObject,
    opts: anyObject,
    limit: count,
    skip: count,
    fields: any,
    index_candidates: array(
      object({
        index: ref('MangoIndex'),
        analysis: object({ usable: boolean, reasons: array(object({ name: string })), ranking: count, covering: nullable(boolean) })
      })
    ),
    selector_hints: array(object({ type: oneOf('json', 'text'), indexable_fields: array(string), unindexable_fields: array(string) }))
  })
}
