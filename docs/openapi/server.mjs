import { any, anyObject, array, asJson, boolean, count, either, exactly, integer, is, map, object, oneOf, ok, open, operation, nullable, ref, string } from './schema.mjs'

export const tag = { name: 'Server', description: 'Information about the server, sessions, and files of the dashboard.' }

const login = object({ 'name?': string, 'username?': string, 'password?': string }, { additionalProperties: true })
const cookie = { 'Set-Cookie': 'The cookie `AuthSession`.' }
const redirect = is(string, 'A path of this server to which the client is redirected.')
const userContext = object({ name: nullable(string), roles: array(string) })

export const paths = {
  '/': {
    get: operation('Show what the server is', {
      access: 'everyone',
      ok: { 200: ['The server.', ref('Welcome')] }
    })
  },
  '/_openapi': {
    get: operation('Read this description', {
      access: 'everyone',
      ok: { 200: ['The description, in OpenAPI 3.1.', open({ openapi: string })], 304: ['The client has it.'] },
      errors: { 404: 'The program was built without Node.js.' }
    })
  },
  '/_up': {
    get: operation('Check that the server can serve requests', {
      text: 'For load balancers. Reads from the store.',
      access: 'everyone',
      ok: {
        200: ['It can.', object({ status: exactly('ok'), seeds: object({}) })],
        404: ['`[couchdb] maintenance_mode` is set: no requests should be sent here.', either(object({ status: string }), ref('Error'))]
      }
    })
  },
  '/_uuids': {
    get: operation('Create ids', {
      text: 'Ids that are unlikely to be used by others, in increasing order.',
      access: 'everyone',
      query: { count: is(count, 'How many, at most `[uuids] max_count`.', 1) },
      ok: { 200: ['Ids.', object({ uuids: array(string) })] }
    })
  },
  '/_session': {
    get: operation('Show the user of the request', {
      access: 'everyone',
      query: { basic: is(boolean, 'Answer 401 to a request without a name.', false) },
      ok: { 200: ['The user.', ref('Session')] }
    }),
    post: operation('Log in', {
      text: 'Sends a cookie that stands for the name and password.',
      access: 'everyone',
      query: { next: redirect },
      body: { 'application/json': { schema: login }, 'application/x-www-form-urlencoded': { schema: login } },
      needsBody: true,
      ok: {
        200: ['Logged in.', object({ ok: exactly(true), name: string, roles: array(string) }), cookie],
        302: ['Logged in, with `next`.', object({ ok: exactly(true), name: string, roles: array(string) }), cookie]
      },
      errors: { 401: 'The name or the password is wrong.' }
    }),
    delete: operation('Log out', {
      text: 'Deletes the cookie.',
      access: 'everyone',
      query: { next: redirect },
      ok: { 200: ['Logged out.', ok, cookie], 302: ['Logged out, with `next`.', ok, cookie] }
    })
  },
  '/_active_tasks': {
    get: operation('List what the server does in the background', {
      text: 'Index builds and replications of all nodes, and compactions of this node.',
      access: 'administrator',
      ok: { 200: ['At most 1,000 tasks of each kind.', array(ref('Task'))] }
    })
  },
  '/_membership': {
    get: operation('List the nodes', {
      access: 'administrator',
      ok: { 200: ['The nodes.', ref('Membership')] }
    })
  },
  '/_ken': {
    get: operation('Show which indexes are built, and which wait', {
      text: 'The scheduler of index builds and triggers of the process that receives the request, and the builds that it runs. Lists have at most 1,000 elements.',
      access: 'administrator',
      ok: { 200: ['The state.', ref('Ken')] },
      errors: { 404: 'This process runs neither index builds nor triggers.' }
    })
  },
  '/_deliver': {
    get: operation('Show what the nodes deliver', {
      text: 'Jobs that are sent as webhooks.',
      access: 'administrator',
      ok: { 200: ['The nodes that deliver.', object({ nodes: array(ref('DeliveringNode')) })] }
    })
  },
  '/_search_analyze': {
    get: operation('Show the tokens of a text', {
      access: 'everyone',
      query: { 'analyzer!': is(string, 'Name of an analyzer.'), 'text!': is(string, 'The text, of at most 64 KiB.') },
      ok: { 200: ['The tokens.', object({ tokens: array(string) })] }
    }),
    post: operation('Show the tokens of a text', {
      access: 'everyone',
      body: open({ analyzer: is(either(string, anyObject), 'Name of an analyzer, or its definition.'), text: string }),
      needsBody: true,
      ok: { 200: ['The tokens.', object({ tokens: array(string) })] }
    })
  },
  '/_reload_query_servers': {
    post: operation('Replace the processes that run JavaScript', { access: 'administrator', ok: { 200: ['Done.', ok] } })
  },
  '/_cluster_setup': {
    get: operation('Show whether the system databases exist', {
      access: 'administrator',
      query: { ensure_dbs_exist: asJson(array(string), 'The databases; `["_users","_replicator"]` by default.') },
      ok: {
        200: ['The state.', object({ state: oneOf('cluster_enabled', 'single_node_disabled', 'cluster_finished', 'single_node_enabled') })]
      }
    }),
    post: operation('Create the system databases', {
      text: 'For installers of CouchDB. Addresses and administrators are only compared with the settings: they are set where the server is started.',
      access: 'administrator',
      body: open({
        action: oneOf('enable_single_node', 'finish_cluster'),
        'ensure_dbs_exist?': array(string),
        'bind_address?': nullable(string),
        'port?': either(integer, string, { type: 'null' }),
        'username?': string,
        'password?': string
      }),
      needsBody: true,
      ok: { 201: ['Created.', ok] }
    })
  },
  '/_reshard': {
    get: operation('Show that shards are not split', {
      access: 'administrator',
      ok: {
        200: ['Constants.', object({ state: exactly('stopped'), state_reason: string, completed: count, failed: count, running: count, stopped: count, total: count })]
      }
    })
  },
  '/_reshard/state': {
    get: operation('Show that shards are not split', {
      access: 'administrator',
      ok: { 200: ['A constant.', object({ state: exactly('stopped'), reason: string })] }
    }),
    put: operation('Stop the splitting of shards', {
      access: 'administrator',
      body: open({ state: exactly('stopped') }),
      needsBody: true,
      ok: { 200: ['Nothing was changed.', ok] },
      errors: { 501: 'The state is `running`: shards cannot be split.' }
    })
  },
  '/_reshard/jobs': {
    get: operation('List no splits of shards', {
      access: 'administrator',
      ok: { 200: ['No jobs.', object({ total_rows: exactly(0), offset: exactly(0), jobs: array(any) })] }
    })
  },
  '/_utils': {
    get: operation('Redirect to the dashboard', {
      access: 'everyone',
      ok: { 301: ['To `/_utils/`.', undefined, { Location: 'The URI of `/_utils/`.' }], 200: ['The first page of the dashboard, for `/_utils/`.', { 'text/html': { schema: string } }], 304: ['The client has it.'] }
    })
  },
  '/_utils/{file}': {
    get: operation('Read a file of the dashboard', {
      access: 'everyone',
      ok: { 200: ['The file.', { '*/*': {} }], 304: ['The client has it.'] }
    })
  },
  '/favicon.ico': {
    get: operation("Read the dashboard's icon", {
      access: 'everyone',
      ok: { 200: ['The icon.', { '*/*': {} }], 304: ['The client has it.'] }
    })
  },
  '/_backup': {
    get: operation('Back up the whole store', {
      text: 'The response is the backup. It is complete only if the response is.',
      access: 'administrator',
      ok: { 200: ['The backup.', { 'application/octet-stream': {} }] },
      errors: { 503: 'Too many backups are in progress.' }
    })
  },
  '/_restore': {
    post: operation('Begin a restore of databases', {
      text: 'A restore is a `POST` that begins it, a `PUT` for each piece, and a `POST` that ends it. `divan restore` sends these requests.',
      access: 'administrator',
      body: open({
        version: is(integer, 'Version of the store, from the backup.'),
        databases: array(open({ name: string, number: integer, created: ref('Time') }))
      }),
      needsBody: true,
      ok: { 201: ['It has begun.', object({ ok: exactly(true), id: string })] }
    })
  },
  '/_restore/{restore}': {
    post: operation('End a restore', {
      text: 'The databases exist from now on.',
      access: 'administrator',
      body: open({ rows: is(count, 'Number of rows that were sent.') }),
      needsBody: true,
      ok: { 201: ['The databases are restored.', ok] },
      errors: { 400: 'The number of rows differs.', 404: 'There is no such restore.', 412: 'A database exists: nothing was restored.' }
    }),
    delete: operation('Abandon a restore', { access: 'administrator', ok: { 200: ['Its rows are removed.', ok] } })
  },
  '/_restore/{restore}/{piece}': {
    put: operation('Send a piece of a restore', {
      text: 'Can be repeated.',
      access: 'administrator',
      body: { 'application/octet-stream': {} },
      needsBody: true,
      ok: { 200: ['It is stored.', ok] }
    })
  }
}

const indexName = { database: string, design_document: string, type: string, signature: string }
const task = { node: string, pid: string, process_status: string, started_on: count, updated_on: count }

export const schemas = {
  Welcome: object({
    couchdb: exactly('Welcome'),
    version: is(string, "The version of CouchDB's API."),
    uuid: is(string, 'Id of the store.'),
    features: array(string),
    vendor: object({ name: exactly('Divan'), version: string })
  }),
  Session: object({
    ok: exactly(true),
    userCtx: userContext,
    info: object({ authentication_handlers: array(string), 'authenticated?': is(string, 'How: `default`, `cookie`, `jwt` or `proxy`.') })
  }),
  Task: is(
    either(
      object({
        ...task,
        type: exactly('indexer'),
        indexer_pid: string,
        rate: is(count, 'Changes in a second.'),
        database: string,
        design_document: string,
        changes_done: count,
        total_changes: count,
        progress: is(count, 'Percent.'),
        map_failures: count
      }),
      object({
        ...task,
        type: exactly('replication'),
        database: nullable(string),
        doc_id: nullable(string),
        user: nullable(string),
        replication_id: string,
        continuous: boolean,
        source: string,
        target: string,
        checkpoint_interval: count,
        revisions_checked: count,
        missing_revisions_found: count,
        docs_read: count,
        docs_written: count,
        doc_write_failures: count,
        changes_pending: count,
        source_seq: any,
        through_seq: any,
        checkpointed_source_seq: any
      }),
      object({
        ...task,
        type: exactly('database_compaction'),
        database: string,
        phase: string,
        changes_done: count,
        total_changes: count,
        progress: is(count, 'Percent.')
      })
    ),
    'An index build, a replication or a compaction. Times are in seconds since 1970-01-01 UTC.'
  ),
  Membership: object({
    all_nodes: array(string),
    cluster_nodes: array(string),
    nodes: map(
      object({
        serves: is(boolean, 'It answers requests.'),
        address: nullable(string),
        version: string,
        started: ref('Time'),
        background: is(array(string), 'What it runs in the background.'),
        'load?': is(anyObject, 'Since its first heartbeat.')
      })
    )
  }),
  Ken: object({
    counts: object({ queue: count, active: count, waiting: count, retries: count, left_out: count }),
    channels: object({ used: count, batch: count, incremental: count }),
    queue: is(array(string), 'Databases whose indexes are to be looked at.'),
    expanding: is(nullable(string), 'The database whose indexes are looked at.'),
    active: array(
      object({
        ...indexName,
        job: string,
        state: nullable(string),
        behind: is(count, 'Changes that the index lacks.'),
        asked_at: ref('Time'),
        'worker?': ref('WorkerName'),
        'started_at?': ref('Time'),
        'age?': is(count, 'Milliseconds.'),
        'progress?': any
      })
    ),
    waiting: array(
      object({
        ...indexName,
        behind: count,
        why: is(string, 'Why it waits, for programs.'),
        reason: is(string, 'Why it waits, for people.'),
        'failures?': count,
        'failed_at?': ref('Time'),
        'retry_at?': ref('Time'),
        'error?': string
      })
    ),
    retries: array(object({ database: string, at: ref('Time'), 'error?': string })),
    left_out: array(object({ ...indexName, left_out: ref('LeftOut') })),
    builders: nullable(
      object({
        threads: count,
        reserved: is(count, 'Threads for small builds.'),
        busy: count,
        running: array(
          object({ database: string, design_document: string, type: string, job: string, priority: integer, small: boolean, started_at: ref('Time') })
        )
      })
    ),
    javascript: object({
      processes: count,
      reserved: count,
      alive: count,
      busy: count,
      waiting: count,
      running: array(
        object({ database: string, design_document: string, purpose: oneOf('build', 'trial', 'urgent', 'check', 'list'), os_pid: integer, age: count })
      )
    }),
    settings: object({
      limit: integer,
      batch_channels: integer,
      incremental_channels: integer,
      max_incremental_updates: integer,
      batch_size: integer,
      delay: integer,
      prune_interval: integer
    })
  }),
  DeliveringNode: object({
    node: string,
    requests: is(count, 'Requests that run.'),
    delivered: count,
    failed: count,
    types: is(
      array(
        object({
          type: string,
          state: oneOf('half_open', 'open', 'paused'),
          failures: count,
          retry_at: nullable(ref('Time')),
          last_error: string
        })
      ),
      'Types whose receiver has failed.'
    ),
    left_off: is(count, 'Types that are not in the list.')
  })
}
