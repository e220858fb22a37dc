import { any, anyObject, array, boolean, count, either, exactly, integer, is, map, nullable, object, oneOf, open, operation, ref, string } from './schema.mjs'

export const tag = { name: 'Replication', description: 'Replications by request and by document, and what they do.' }

const states = 'initializing, error, pending, running, crashing, completed or failed'
const list = operation('List the documents of replications', {
  access: 'administrator',
  query: {
    states: is(string, `With commas: ${states}.`),
    limit: is(count, 'The most documents.'),
    skip: is(count, 'Documents that are skipped.', 0),
    descending: is(boolean, 'The last id first.', false)
  },
  ok: { 200: ['The documents.', object({ total_rows: count, offset: count, docs: array(ref('ReplicationDocumentState')) })] },
  errors: { 404: 'The database does not exist.' }
})

export const paths = {
  '/_replicate': {
    post: operation('Replicate a database, or cancel a replication', {
      text: 'Waits for the end, unless it is `continuous`.',
      access: 'administrator',
      body: ref('ReplicationRequest'),
      needsBody: true,
      ok: {
        200: ['It has ended, or is cancelled.', either(ref('ReplicationResult'), ref('ReplicationStarted'))],
        202: ['It has begun, with `continuous`.', ref('ReplicationStarted')]
      },
      errors: { 404: 'A database, or the replication to cancel, does not exist.', 500: 'The replication has failed.' }
    })
  },
  '/_scheduler/jobs': {
    get: operation('List the replications that run or wait', {
      access: 'administrator',
      query: { limit: is(count, 'The most replications; at most 10,000.', 100), skip: is(count, 'Replications that are skipped.', 0) },
      ok: { 200: ['The replications.', object({ total_rows: count, offset: count, jobs: array(ref('ReplicationJob')) })] }
    })
  },
  '/_scheduler/jobs/{replication}': {
    get: operation('Show a replication', {
      access: 'administrator',
      ok: { 200: ['The replication.', ref('ReplicationJob')] },
      errors: { 404: 'It does not exist, or has ended.' }
    })
  },
  '/_scheduler/docs': { get: list },
  '/_scheduler/docs/{replicator}': { get: list },
  '/_scheduler/docs/{replicator}/{docid}': {
    get: operation('Show what a document of a replication has come to', {
      access: 'administrator',
      ok: { 200: ['Its state.', ref('ReplicationDocumentState')] },
      errors: { 404: 'The document does not exist.' }
    })
  }
}

const session = object({
  session_id: string,
  start_time: string,
  end_time: string,
  start_last_seq: any,
  end_last_seq: any,
  recorded_seq: any,
  missing_checked: count,
  missing_found: count,
  docs_read: count,
  docs_written: count,
  doc_write_failures: count
})
const endpoint = is(
  either(
    string,
    open({
      url: string,
      'headers?': map(string),
      'auth?': open({ 'basic?': open({ username: string, password: string }) })
    })
  ),
  'A URL, or the name of a database of this server; or an object with the URL, header fields and credentials.'
)

export const schemas = {
  ReplicationRequest: open({
    'source?': endpoint,
    'target?': endpoint,
    'cancel?': is(boolean, 'Cancel the replication with this `replication_id`, or with these members.', false),
    'replication_id?': string,
    'continuous?': is(boolean, 'Follow the source.', false),
    'create_target?': is(boolean, 'Create the target if it does not exist.', false),
    'create_target_params?': nullable(anyObject),
    'doc_ids?': is(nullable(array(string)), 'Only these documents.'),
    'selector?': is(nullable(anyObject), 'Only documents that meet these conditions.'),
    'filter?': is(nullable(string), "Only documents that this filter function of the source's chooses: `design/function`."),
    'query_params?': is(nullable(anyObject), 'Parameters of the filter function.'),
    'since_seq?': is(any, 'Begin after this sequence.'),
    'source_proxy?': nullable(string),
    'target_proxy?': nullable(string),
    'proxy?': nullable(string),
    'use_checkpoints?': is(boolean, 'Store how far the replication has come.', true),
    'checkpoint_interval?': is(count, 'Milliseconds between checkpoints.'),
    'winning_revs_only?': is(boolean, 'Only the winning revision of a document.', false)
  }),
  ReplicationStarted: object({ ok: exactly(true), _local_id: is(string, 'Id of the replication.') }),
  ReplicationResult: object({
    ok: exactly(true),
    'no_changes?': exactly(true),
    session_id: string,
    source_last_seq: any,
    replication_id_version: integer,
    history: is(array(session), 'This replication, and earlier ones with the same id.')
  }),
  ReplicationInfo: is(nullable(anyObject), 'Counts of the run, or an error.'),
  ReplicationJob: object({
    database: is(nullable(string), 'Database of the document; null for `POST /_replicate`.'),
    id: string,
    pid: nullable(string),
    source: string,
    target: string,
    user: nullable(string),
    doc_id: nullable(string),
    node: nullable(string),
    state: oneOf('running', 'pending', 'crashing'),
    error_count: count,
    start_time: string,
    info: ref('ReplicationInfo'),
    last_error: nullable(string),
    history: array(object({ timestamp: string, type: oneOf('crashed', 'stopped', 'started', 'added'), 'reason?': string }))
  }),
  ReplicationDocumentState: object({
    database: string,
    doc_id: string,
    id: nullable(string),
    node: nullable(string),
    source: nullable(string),
    source_proxy: nullable(string),
    target: nullable(string),
    target_proxy: nullable(string),
    state: oneOf('initializing', 'error', 'pending', 'running', 'crashing', 'completed', 'failed'),
    info: ref('ReplicationInfo'),
    error_count: count,
    start_time: nullable(string),
    last_updated: nullable(string)
  })
}
