import { any, anyObject, array, asJson, boolean, count, either, exactly, is, nullable, object, oneOf, open, operation, ref, string } from './schema.mjs'

export const tag = {
  name: 'Feeds',
  description: `Changes of documents and databases, and events.

The parameter \`feed\` chooses the form of a response: \`normal\`, an object with the rows that there are; \`longpoll\`, the same, but it waits for the first row;
\`continuous\`, rows as lines of JSON, without end; \`eventsource\`, rows as [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html).
Empty lines, and events without data, keep the connection alive.`
}

/** The parameters of all feeds. */
export const feed = {
  feed: is(oneOf('normal', 'longpoll', 'continuous', 'live', 'eventsource'), 'The form of the response. `live` is `continuous`.', 'normal'),
  limit: is(count, 'The most rows.'),
  heartbeat: is({ type: ['boolean', 'integer'] }, 'Milliseconds after which an empty line is sent; `true` is 60,000.', false),
  timeout: is(count, 'Milliseconds without a row after which the feed ends, if there is no `heartbeat`.', 60000)
}
const since = {
  since: is(string, 'Only rows after this sequence; `now` for none that exist. `0` begins with the first row.', '0'),
  'last-event-id': is(string, 'As `since`.'),
  descending: is(boolean, 'The latest first.', false)
}
const lastEvent = { 'Last-Event-ID': is(string, 'As `since`, from browsers that reconnect.') }
const tail = { last_seq: ref('Sequence'), 'pending?': is(count, 'Rows after the last one.') }
/**
 * A feed's response: an object with rows, unless there is no such form; lines; or server-sent events.
 * `x-rows` is the schema of a line, or of an event's data.
 */
export const feedContent = (row, object) => {
  const rows = either(row, is(open(tail), 'The end of a feed that has sequences.'))
  const lines = is(string, 'Lines of JSON, with `feed=continuous`: rows, and the end.')
  return {
    'application/json': { schema: object ? either(object, lines) : lines, 'x-rows': rows },
    'text/event-stream': { schema: string, 'x-rows': row }
  }
}
/** The object with all rows. */
export const feedObject = (row) => object({ results: array(row), ...tail })
const channelFeed = { ...feed, feed: is(oneOf('continuous', 'live', 'eventsource'), 'The form of the response.', 'continuous') }

const changesQuery = {
  ...feed,
  ...since,
  style: is(oneOf('main_only', 'all_docs'), 'The winning revision of a document, or all leaves.', 'main_only'),
  include_docs: is(boolean, 'Rows have their documents.', false),
  conflicts: is(boolean, 'Documents have `_conflicts`.', false),
  attachments: is(boolean, 'Documents have the contents of their attachments.', false),
  att_encoding_info: is(boolean, 'Documents have the encodings of their attachments.', false),
  filter: is(string, '`_doc_ids`, `_selector`, `_design`, `_view`, or `design/function`.'),
  view: is(string, 'With `filter=_view`: `design/view`. Only documents for which its map function emits a row.'),
  doc_ids: asJson(array(string), 'With `filter=_doc_ids`: the ids.'),
  seq_interval: is({ ...count, minimum: 1 }, 'Only every nth row, and the last one, has its `seq`; others have null.')
}
const changes = (summary, body) =>
  operation(summary, {
    text: 'Filter functions read other parameters themselves.',
    access: 'member',
    query: changesQuery,
    headers: lastEvent,
    body,
    ok: { 200: ['The changes.', feedContent(ref('Change'), ref('Changes'))] },
    errors: { 404: 'The database does not exist.' },
    rest: { 'x-other-parameters': true }
  })

export const paths = {
  '/{db}/_changes': {
    get: changes('Follow the changes of a database'),
    post: changes(
      'Follow the changes of a database, with a filter in the body',
      open({ 'doc_ids?': is(array(string), 'With `filter=_doc_ids`.'), 'selector?': is(anyObject, 'With `filter=_selector`.') })
    )
  },
  '/_db_updates': {
    get: operation('Follow the changes of all databases', {
      text: 'With `[global_changes] account_feeds = true`, users read the rows of databases whose names begin with theirs and a slash.',
      access: 'administrator',
      query: { ...feed, ...since, include_docs: is(boolean, 'Ignored.'), filter: is(string, 'Ignored.') },
      headers: lastEvent,
      ok: { 200: ['The changes.', feedContent(ref('DatabaseUpdate'), ref('DatabaseUpdates'))], 304: ['The client has the response.'] }
    })
  },
  '/_events': {
    get: operation('List the channels that have listeners', {
      access: 'events',
      ok: {
        200: [
          'The channels of this process, and its counts since its start.',
          object({
            channels: array(object({ name: string, subscribers: count })),
            subscribers: count,
            published: count,
            delivered: count,
            lagged: is(count, 'Events that slow listeners have missed.')
          })
        ]
      }
    })
  },
  '/_events/{channel}': {
    get: operation('Listen to a channel', {
      text: 'Rows are `ChannelEvent`s. Events are not stored. `_dbs` and `_db/{name}` are channels of the server, for administrators.',
      access: 'events',
      query: channelFeed,
      ok: { 200: ['The events, without end.', feedContent(ref('ChannelEvent'))] },
      errors: { 404: 'The server has no such channel.' }
    }),
    post: operation('Publish an event', {
      access: 'events',
      body: any,
      needsBody: true,
      ok: { 200: ['Published.', object({ ok: exactly(true), reached: is(count, 'Listeners of this process.') })] },
      errors: { 403: 'The name begins with an underscore: the channel is reserved for the server.', 413: 'The event has more than 1 MiB.' }
    })
  }
}

export const schemas = {
  Change: object({
    seq: nullable(ref('Sequence')),
    id: string,
    changes: is(array(object({ rev: ref('Revision') })), 'The winning revision, or all leaves.'),
    'deleted?': exactly(true),
    'doc?': nullable(ref('Document'))
  }),
  Changes: feedObject(ref('Change')),
  DatabaseUpdate: object({
    db_name: string,
    type: oneOf('created', 'updated', 'deleted'),
    'account?': is(string, 'With `[global_changes] show_account`.'),
    seq: ref('Sequence')
  }),
  DatabaseUpdates: feedObject(ref('DatabaseUpdate')),
  ChannelEvent: either(
    object({ channel: string, data: any }),
    is(object({ db_name: string, type: string, 'id?': string }), 'On a channel of the server.'),
    object({ lagged: is(count, 'The number of events that were missed here.') })
  )
}
