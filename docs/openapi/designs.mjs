import { any, count, is, nullable, object, operation, ref, string } from './schema.mjs'
import { viewQuery } from './views.mjs'

export const tag = { name: 'Design functions', description: 'Functions of design documents that answer requests, and triggers.' }

const anything = [{ '*/*': {} }]
const chosen = 'What the function returns. It chooses the status, too.'
const missing = { 404: 'The database, the design document or the function does not exist.', 500: 'The function has failed.' }
// Functions read the parameters themselves.
const rest = { 'x-any-response': true }
const show = operation('Call a show function', {
  text: 'The function gets the document and the request. It reads the parameters of the query itself. All methods are allowed.',
  access: 'member',
  ok: { 200: [chosen, ...anything], 304: ['The client has the response.'] },
  errors: missing,
  rest
})
const { 304: unchanged, ...otherResponses } = show.responses
const showWithBody = { ...show, requestBody: { content: { '*/*': {} } }, responses: otherResponses }
const shows = { get: show, put: showWithBody, post: showWithBody, delete: showWithBody }
const update = operation('Call an update function', {
  text: 'The function gets the document and the request, and returns the document that is written and the response.',
  access: 'member',
  body: { '*/*': {} },
  ok: {
    200: [chosen, ...anything],
    201: [chosen + ' 201 by default, if a document is written.', { '*/*': {} }, { 'X-Couch-Id': 'Id of the document that was written.', 'X-Couch-Update-NewRev': 'Its revision.' }]
  },
  errors: { ...missing, 409: 'The document was changed.' },
  rest
})
const list = {
  get: operation('Call a list function', {
    text: 'The function gets the rows of a view, or of `_all_docs`, and writes the response. Parameters are those of the view; the function can read others.',
    access: 'member',
    query: viewQuery,
    ok: { 200: [chosen, ...anything] },
    errors: missing,
    rest
  }),
  post: operation('Call a list function, with parameters in the body', {
    access: 'member',
    query: viewQuery,
    body: ref('ViewQuery'),
    ok: { 200: [chosen, ...anything] },
    errors: missing,
    rest
  })
}
const rewritten = operation('Send a rewritten request', {
  text: 'The rewrites of the design document make another request of it, which is answered. All methods are allowed.',
  access: 'member',
  ok: { 200: ['The response to the other request; its status can be another one.', ...anything] },
  errors: { 404: 'No rule matches.', 500: 'The rewrites are malformed or the function has failed.' },
  rest
})
const rewrittenWithBody = { ...rewritten, requestBody: { content: { '*/*': {} } } }
const rewrites = { get: rewritten, put: rewrittenWithBody, post: rewrittenWithBody, delete: rewrittenWithBody }

export const paths = {
  '/{db}/_design/{ddoc}/_show/{function}': shows,
  '/{db}/_design/{ddoc}/_show/{function}/{document}': shows,
  '/{db}/_design/{ddoc}/_update/{function}': { post: update, put: update },
  '/{db}/_design/{ddoc}/_update/{function}/{document}': { post: update, put: update },
  '/{db}/_design/{ddoc}/_list/{function}/{view}': list,
  '/{db}/_design/{ddoc}/_list/{function}/{otherddoc}/{view}': list,
  '/{db}/_partition/{partition}/_design/{ddoc}/_list/{function}/{view}': list,
  '/{db}/_partition/{partition}/_design/{ddoc}/_list/{function}/{otherddoc}/{view}': list,
  '/{db}/_design/{ddoc}/_rewrite': rewrites,
  '/{db}/_design/{ddoc}/_rewrite/{rewritten}': rewrites,
  '/{db}/_design/{ddoc}/_trigger/{trigger}': {
    get: operation('Show the state of a trigger', {
      access: 'member',
      ok: { 200: ['The state.', ref('Trigger')] },
      errors: { 404: 'There is no such trigger.' }
    })
  }
}

export const schemas = {
  Trigger: object({
    name: string,
    sequence: is(nullable(string), 'The last change that was processed.'),
    behind: is(count, 'Changes that are not processed yet.'),
    jobs_added: count,
    left_out: ref('LeftOut'),
    last_error: is(any, 'The last error, or null.'),
    waits: is(
      nullable(object({ failures: count, failed_at: ref('Time'), retry_at: ref('Time'), error: string })),
      'Why it waits, or null.'
    )
  })
}
