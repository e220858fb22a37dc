// What all parts of the description share: information, path parameters, security schemes, schemas.
import { array, boolean, count, exactly, integer, is, map, object, oneOf, open, ref, string } from './schema.mjs'

export const info = {
  title: 'Divan',
  summary: "A document database with CouchDB's HTTP API and a durable job queue.",
  description: `The whole HTTP API. The end-to-end tests of Divan compare each of their requests and responses with this description.

- **JSON.** Bodies are JSON in UTF-8 unless another type is named. A \`POST\` whose body is JSON needs \`Content-Type: application/json\`, or no \`Content-Type\`.
  A body can be compressed with \`Content-Encoding: gzip\`.
- **HEAD.** Each \`GET\` can be sent as \`HEAD\`: the response has the same status and header fields, and no body.
- **Errors.** A status of 400 or more comes with \`{"error": ..., "reason": ...}\`. \`error\` is for programs, \`reason\` for people.
- **Parameters** that are not described here are ignored. In a query, a Boolean is \`true\` or \`false\`.
- **Other methods.** A client that can only send \`POST\` names the method in \`X-HTTP-Method-Override\`.
- **Browsers.** With \`[cors]\` in the settings, responses have the header fields of CORS, and \`OPTIONS\` is answered for the origins that are allowed.
- **Slashes.** A slash in the name of a database or the id of a document is sent as \`%2F\`; the one after \`_design\` and \`_local\` can be sent as it is.
- **Overload.** Every request can be answered 503, with a reason; it can be repeated later.`,
  license: { name: 'Apache 2.0', identifier: 'Apache-2.0' }
}

export const securitySchemes = {
  basic: { type: 'http', scheme: 'basic', description: 'The name and password of a server administrator or of a user in `_users`.' },
  cookie: { type: 'apiKey', in: 'cookie', name: 'AuthSession', description: 'A session: `POST /_session` sends the cookie.' },
  bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'A JSON Web Token that is signed with one of the keys in `[jwt_keys]`.' }
}

// `slashes`: the name may contain slashes that are not escaped, so that it is several segments of the path.
const inPath = (name, description, { pattern, slashes } = {}) => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: { type: 'string', ...(pattern && { pattern }) },
  ...(slashes && { 'x-slashes': true })
})

export const parameters = Object.fromEntries(
  [
    inPath('db', 'Name of a database.', { pattern: '^(?:[^_]|_users$|_replicator$|_global_changes$)' }),
    inPath('docid', 'Id of a document.', { pattern: '^[^_]' }),
    inPath('localid', 'Id of a local document, after `_local/`.'),
    inPath('attachment', 'Name of an attachment. It may contain slashes.', { pattern: '^[^_]', slashes: true }),
    inPath('ddoc', 'Name of a design document: its id after `_design/`.'),
    inPath('view', 'Name of a view.'),
    inPath('index', 'Name of an index in the design document.'),
    inPath('trigger', 'Name of a trigger in the design document.'),
    inPath('function', 'Name of a function in the design document.'),
    inPath('otherddoc', 'Name of the design document that has the view.'),
    inPath('document', 'Id of a document. It may contain slashes.', { slashes: true }),
    inPath('rewritten', 'A path that the rewrites of the design document translate.', { slashes: true }),
    inPath('partition', 'Name of a partition: the id of its documents up to the first colon.'),
    inPath('channel', 'Name of a channel. It may contain slashes.', { slashes: true }),
    inPath('type', 'Type of jobs.', { pattern: '^[^_]' }),
    inPath('id', 'Id of a job; `_periodic` for the periodic job of its type.', { pattern: '^(?:[^_]|_periodic$)' }),
    inPath('role', 'Role of workers.'),
    inPath('worker', "Id of a worker in its role."),
    inPath('node', 'Name of a node, or `_local` for the node that receives the request.'),
    inPath('section', 'A section of the settings.', { pattern: '^[^_]' }),
    inPath('key', 'A key in the section.'),
    inPath('statistic', 'Path of a statistic: `couchdb/httpd/requests` or the beginning of one.', { slashes: true }),
    inPath('file', 'Path of a file.', { slashes: true }),
    inPath('replication', 'Id of a replication.'),
    inPath('replicator', 'Name of a database of replications: `_replicator`, or one that ends with `/_replicator`.', {
      pattern: '^(?:|.*/)_replicator$',
      slashes: true
    }),
    inPath('restore', 'Id of a restore.'),
    inPath('piece', 'Number of a piece, from 0.', { pattern: '^[0-9]+$' })
  ].map((parameter) => [parameter.name, parameter])
)

export const responses = {
  Error: {
    description: 'An error: 400 if the request is malformed, 401 or 403 if the user may not send it, 404 if what the path names does not exist, 413 if it is too large, 500 if a function of a design document or the server has failed, 503 if the server is overloaded or stops.',
    content: { 'application/json': { schema: ref('Error') } }
  }
}

const stub = {
  content_type: string,
  revpos: is(count, 'The generation of the revision that added it.'),
  digest: is(string, 'MD5 in Base64, after `md5-`.'),
  'length?': is(count, 'Bytes of the content.'),
  'encoding?': is(string, 'With `att_encoding_info`: the encoding in which it is stored.'),
  'encoded_length?': is(count, 'With `att_encoding_info`: bytes in that encoding.')
}

export const schemas = {
  Error: is(
    object({ error: is(string, 'Name of the error, for programs.'), reason: is(string, 'What is wrong, for people.') }),
    'The body of a response whose status is 400 or more.'
  ),
  Ok: is(object({ ok: exactly(true) }), 'It is done.'),
  Revision: is({ type: 'string', pattern: '^[0-9]+-' }, 'A revision: its generation, a hyphen and a hash.'),
  Sequence: is(string, 'A position in a feed. Only its order in the feed has a meaning.'),
  Written: is(object({ ok: exactly(true), id: string, rev: ref('Revision') }), 'A document that was written.'),
  Document: is(
    open({
      '_id?': string,
      '_rev?': ref('Revision'),
      '_deleted?': exactly(true),
      '_attachments?': map(ref('Attachment')),
      '_revisions?': ref('Revisions'),
      '_revs_info?': array(object({ rev: ref('Revision'), status: oneOf('available', 'missing', 'deleted') })),
      '_conflicts?': array(ref('Revision')),
      '_deleted_conflicts?': array(ref('Revision')),
      '_local_seq?': ref('Sequence')
    }),
    'A document: any JSON object. Names that begin with an underscore belong to the server.'
  ),
  NewDocument: is(
    open({
      '_id?': string,
      '_rev?': string,
      '_deleted?': boolean,
      '_attachments?': map(ref('NewAttachment')),
      '_revisions?': ref('Revisions')
    }),
    'A document as it is written.'
  ),
  Revisions: object({ start: is(count, 'Generation of the first revision.'), ids: is(array(string), 'Hashes, the latest first.') }),
  Attachment: is(
    object({ ...stub, 'stub?': exactly(true), 'data?': is(string, 'The content in Base64.'), 'follows?': exactly(true) }),
    'An attachment of a document that is read: a stub, or with its content.'
  ),
  NewAttachment: is(
    open({
      'content_type?': string,
      'data?': is(string, 'The content in Base64.'),
      'stub?': is(boolean, 'The attachment of the previous revision remains.'),
      'follows?': is(boolean, 'The content is a part of a `multipart/related` body.')
    }),
    'An attachment of a document that is written.'
  ),
  LeftOut: is(
    object({
      documents: is(count, 'Number of documents that are not in the index, or not with all rows.'),
      rows: is(count, 'Number of rows that were left out.'),
      examples: array(object({ id: string, rows: count, reason: string }))
    }),
    'What an index has left out.'
  ),
  Time: is(integer, 'A time in milliseconds since 1970-01-01 UTC.'),
  WorkerName: is(object({ role: string, id: string }), 'A worker.')
}

