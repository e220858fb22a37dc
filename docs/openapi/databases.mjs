import { any, anyObject, array, boolean, count, either, exactly, integer, is, map, object, ok, open, operation, ref, string } from './schema.mjs'
import { createDocument } from './documents.mjs'
import { listing } from './views.mjs'

export const tag = { name: 'Databases', description: 'Databases, their settings and their maintenance.' }

const missing = { 404: 'The database does not exist.' }
const accepted = (summary, text, access = 'database admin') =>
  operation(summary, { text, access, ok: { 202: ['Done, or begun.', ok] }, errors: missing })
const revisionLists = is(map(array(string)), 'Revisions by the id of the document.')
const sizes = object({ file: is(count, 'Bytes on disk.'), external: count, active: count })

export const paths = {
  '/_all_dbs': {
    get: operation('List the databases', {
      text: 'Open to everyone with `[chttpd] admin_only_all_dbs = false`.',
      access: 'administrator',
      query: listing,
      ok: { 200: ['Names, in order.', array(string), { ETag: 'Of the list.' }], 304: ['The client has the list.'] }
    })
  },
  '/_dbs_info': {
    get: operation('Describe databases', {
      access: 'administrator',
      query: listing,
      ok: { 200: ['The databases.', ref('DatabaseInfos')] }
    }),
    post: operation('Describe databases by name', {
      access: 'administrator',
      body: open({ keys: { ...array(any), maxItems: 100 } }),
      needsBody: true,
      ok: { 200: ['In the order of the names.', ref('DatabaseInfos')] }
    })
  },
  '/{db}': {
    get: operation('Describe a database', { access: 'member', ok: { 200: ['The database.', ref('DatabaseInfo')] }, errors: missing }),
    put: operation('Create a database', {
      access: 'administrator',
      query: {
        partitioned: is(boolean, 'Ids of its documents begin with a partition and a colon.', false),
        q: is({ ...integer, minimum: 1 }, 'Ignored.'),
        n: is({ ...integer, minimum: 1 }, 'Ignored.'),
        engine: is(exactly('couch'), 'Ignored.'),
        placement: is(string, 'Ignored.')
      },
      ok: { 201: ['Created.', ok, { Location: 'Its URI.' }] },
      errors: { 412: 'It exists.' }
    }),
    post: { ...createDocument, tags: ['Documents'] },
    delete: operation('Delete a database', { access: 'administrator', ok: { 200: ['Deleted.', ok] }, errors: missing })
  },
  '/{db}/_security': {
    get: operation('Read who may use a database', { access: 'member', ok: { 200: ['The security object.', ref('Security')] }, errors: missing }),
    put: operation('Set who may use a database', {
      access: 'database admin',
      body: ref('Security'),
      needsBody: true,
      ok: { 200: ['Stored.', ok] },
      errors: missing
    })
  },
  '/{db}/_revs_limit': {
    get: operation('Read the limit of revisions', { access: 'member', ok: { 200: ['The limit.', { ...integer, minimum: 1, maximum: 2000 }] }, errors: missing }),
    put: operation('Set how many revisions of a document are remembered', {
      access: 'database admin',
      body: { ...integer, minimum: 1, maximum: 2000 },
      needsBody: true,
      ok: { 200: ['Stored.', ok] },
      errors: missing
    })
  },
  '/{db}/_compact': { post: accepted('Compact a database', 'Removes the bodies of replaced revisions, in the background.') },
  '/{db}/_compact/{ddoc}': { post: accepted('Compact views', 'Does nothing: views have nothing to compact.') },
  '/{db}/_view_cleanup': { post: accepted('Remove indexes that no design document has') },
  '/{db}/_geo_cleanup': { post: accepted('Remove indexes that no design document has', 'As `_view_cleanup`.') },
  '/{db}/_search_cleanup': { post: accepted('Remove indexes that no design document has', 'As `_view_cleanup`.') },
  '/{db}/_sync_shards': { post: accepted('Copy shards', 'Does nothing: the store has the copies.', 'administrator') },
  '/{db}/_ensure_full_commit': {
    post: operation('Wait until all writes are durable', {
      text: 'They are: a write is durable before its response.',
      access: 'member',
      ok: { 201: ['Durable.', object({ ok: exactly(true), instance_start_time: is(string, 'When the database was created, in seconds since 1970-01-01 UTC.') })] },
      errors: missing
    })
  },
  '/{db}/_shards': {
    get: operation('List the shards of a database', {
      text: 'There is one, since the store distributes rows by itself.',
      access: 'member',
      ok: { 200: ['The shard.', object({ shards: map(array(string)) })] },
      errors: missing
    })
  },
  '/{db}/_shards/{document}': {
    get: operation('Find the shard of a document', {
      access: 'member',
      ok: { 200: ['The shard.', object({ range: string, nodes: array(string) })] },
      errors: missing
    })
  },
  '/{db}/_revs_diff': {
    post: operation('Find revisions that the database lacks', {
      text: 'For replication.',
      access: 'member',
      body: revisionLists,
      needsBody: true,
      ok: { 200: ['Documents with missing revisions.', map(object({ missing: array(string), 'possible_ancestors?': array(string) }))] },
      errors: missing
    })
  },
  '/{db}/_missing_revs': {
    post: operation('Find revisions that the database lacks', {
      access: 'member',
      body: revisionLists,
      needsBody: true,
      ok: { 200: ['Documents with missing revisions.', object({ missing_revs: map(array(string)) })] },
      errors: missing
    })
  },
  '/{db}/_purge': {
    post: operation('Purge revisions', {
      text: 'Removes them as if they had never been written.',
      access: 'administrator',
      body: revisionLists,
      needsBody: true,
      ok: { 201: ['The revisions that were removed.', object({ purge_seq: { type: 'null' }, purged: map(array(string)) })] },
      errors: missing
    })
  },
  '/{db}/_purged_infos': {
    get: operation('List purges', {
      access: 'member',
      ok: { 200: ['The purges that are remembered.', object({ purged_infos: array(object({ id: string, revs: array(string) })) })] },
      errors: missing
    })
  },
  '/{db}/_purged_infos_limit': {
    get: operation('Read how many purges are remembered', { access: 'administrator', ok: { 200: ['The limit.', integer] }, errors: missing }),
    put: operation('Set how many purges are remembered', {
      access: 'administrator',
      body: { ...integer, minimum: 1 },
      needsBody: true,
      ok: { 200: ['Stored.', ok] },
      errors: missing
    })
  },
  '/{db}/_auto_purge': {
    get: operation('Read the settings of automatic purges', { access: 'member', ok: { 200: ['The settings.', anyObject] }, errors: missing }),
    put: operation('Set when deleted documents are purged', {
      access: 'database admin',
      body: open({ 'deleted_document_ttl?': is(any, 'Seconds, or a number and a unit: `3_days`, `2_weeks`.') }),
      needsBody: true,
      ok: { 201: ['Stored.', ok] },
      errors: missing
    })
  },
  '/{db}/_partition/{partition}': {
    get: operation('Describe a partition', {
      text: 'Routes of design documents and of `_index` that are not described below a partition are also valid there, as in CouchDB: the partition has no effect. Spatial queries are refused.',
      access: 'member',
      ok: {
        200: ['The partition.', object({ db_name: string, partition: string, doc_count: count, doc_del_count: count, sizes: object({ active: count, external: count }) })]
      },
      errors: missing
    })
  }
}

const group = open({ 'names?': array(string), 'roles?': array(string) })

export const schemas = {
  DatabaseInfo: object({
    db_name: string,
    purge_seq: ref('Sequence'),
    update_seq: ref('Sequence'),
    sizes,
    props: object({ 'partitioned?': exactly(true) }),
    doc_count: count,
    doc_del_count: count,
    disk_format_version: integer,
    compact_running: boolean,
    cluster: object({ q: count, n: count, w: count, r: count }),
    instance_start_time: is(string, 'When the database was created, in seconds since 1970-01-01 UTC.')
  }),
  DatabaseInfos: array(
    either(object({ key: string, info: ref('DatabaseInfo') }), object({ key: string, error: exactly('not_found') }))
  ),
  Security: is(
    open({ 'admins?': group, 'members?': group }),
    'Names and roles of admins and members. Without names and roles of members, everybody is a member.'
  )
}
