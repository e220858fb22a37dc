import { is, operation, ref, string } from './schema.mjs'

export const tag = { name: 'Attachments', description: 'Attachments of documents: contents of up to 1 GiB, which are streamed.' }

const missing = { 404: 'The database, the document or the attachment does not exist.' }
const conflict = { 409: 'The revision is not the current one: the document was changed.' }
const written = (description) => [description, ref('Written'), { ETag: 'The revision, in quotation marks.', Location: 'The URI of the attachment.' }]
const batch = is(string, '`ok`: the status is 202.')

const operations = (access) => ({
  get: operation('Read an attachment', {
    access: 'member',
    query: { rev: is(string, 'A revision of the document.') },
    headers: {
      Range: is(string, 'A part of the content: `bytes=0-99`.'),
      'If-Range': is(string, 'An `ETag`: the part is sent only if the attachment has it.'),
      'If-None-Match': is(string, 'An `ETag` that the client has.')
    },
    ok: {
      200: ['The content, in its own type.', { '*/*': {} }, { ETag: 'The digest, in quotation marks.', 'Accept-Ranges': '`bytes`' }],
      206: ['A part of it.', { '*/*': {} }, { 'Content-Range': 'Which part.' }],
      304: ['The client has it.']
    },
    errors: { ...missing, 416: 'There is no such part.' }
  }),
  put: operation('Write an attachment', {
    text: 'Writes a revision of the document, which is created if there is none.',
    access,
    query: { rev: is(string, 'The current revision of the document.'), batch },
    headers: {
      'If-Match': is(string, 'As `rev`.'),
      'Content-MD5': is(string, 'The MD5 of the content in Base64, which is compared.')
    },
    body: { '*/*': {} },
    ok: { 201: written('Written.'), 202: written('With `batch=ok`.') },
    errors: { 404: 'The database does not exist.', ...conflict }
  }),
  delete: operation('Delete an attachment', {
    access,
    query: { rev: is(string, 'The current revision of the document.'), batch },
    headers: { 'If-Match': is(string, 'As `rev`.') },
    ok: { 200: written('Deleted.'), 202: written('With `batch=ok`.') },
    errors: { ...missing, ...conflict }
  })
})

export const paths = {
  '/{db}/{docid}/{attachment}': operations('member'),
  '/{db}/_design/{ddoc}/{attachment}': operations('database admin')
}
