// All texts of the pages, so that they can be translated in one place.
import { count } from './format'
const plural = (n: number, one: string, many: string) => `${count(n)} ${n === 1 ? one : many}`
export const T = {
  product: 'Divan',
  nav: {
    label: 'Pages',
    overview: 'Overview', databases: 'Databases', indexes: 'Indexes', jobs: 'Jobs', workers: 'Workers', replications: 'Replications',
    triggers: 'Triggers', feeds: 'Feeds', nodes: 'Nodes', settings: 'Settings', users: 'Users', log: 'Log',
    menu: 'Menu', skip: 'Skip to the content',
  },
  session: {
    title: 'Log in', name: 'Name', password: 'Password', submit: 'Log in', logout: 'Log out', anonymous: 'not logged in',
    hint: 'The administrator\u2019s password was shown when the server started for the first time.',
    denied: 'Only administrators of the server may see this.',
  },
  connection: {
    lost: 'The server does not respond. This page tries again until it does.',
    slow: 'The server has not responded for some seconds. This page waits for it.', status: (status: number) => `The server responded with the status ${status}.`,
  },
  theme: { label: 'Colours', system: 'As the system', light: 'Light', dark: 'Dark' },
  common: {
    dots: 'Browsers cannot request a path in which a name is . or .. alone. Other clients can.', more: (n: number) => `and ${count(n)} more`,
    path: 'Path', loading: 'Loading …', failed: (reason: string) => `This could not be loaded: ${reason}`, close: 'Close', cancel: 'Cancel', create: 'Create',
    delete: 'Delete', save: 'Save', edit: 'Edit', add: 'Add', filter: 'Filter',
    state: 'State', type: 'Type', id: 'Id', name: 'Name', value: 'Value', error: 'Error', node: 'Node', since: 'Since', actions: 'Actions',
    all: 'all', first: (n: number, all: number) => `The first ${count(n)} of ${count(all)}.`, next: 'Next page', previous: 'Previous page', copy: 'Copy', copied: 'Copied', rows: (n: number) => plural(n, 'row', 'rows'),
  },
  keys: {
    title: 'Keyboard', help: 'shows this list', filter: 'goes to the filter of the page', escape: 'closes a dialog', pages: 'then one of these letters: goes to a page',
    new: 'creates or adds, where the page can',
  },
  overview: {
    title: 'Overview', requests: 'Requests a second', jobsWaiting: 'Jobs waiting', running: 'Jobs running', attention: 'Needs attention',
    calm: 'Nothing needs attention.', updates: 'Databases that change', waiting: 'Changes appear here as they happen.', chores: 'What the server does', idle: 'No background work at the moment.', nodes: 'Nodes',
    failedJobs: (type: string, n: number) => `${plural(n, 'job', 'jobs')} of type ${type} failed.`,
    failedIndex: (ddoc: string, db: string) => `The index ${ddoc} of ${db} cannot be built.`,
    leftOut: (ddoc: string, db: string) => `The index ${ddoc} of ${db} lacks rows of some documents.`,
    failedTrigger: (ddoc: string, db: string, error: string) => `A trigger of ${ddoc} in ${db} waits: ${error}`,
    leftOutTrigger: (ddoc: string, db: string, n: number) => `A trigger of ${ddoc} in ${db} added no jobs for ${plural(n, 'document', 'documents')}.`,
    pausedDelivery: (type: string, error: string) => `Deliveries of type ${type} are paused: ${error}`,
    lostWorker: (id: string, role: string, jobs: number) => (jobs ? `The worker ${id} of ${role} was lost; ${plural(jobs, 'job', 'jobs')} of it came back to the queue.` : `The worker ${id} of ${role} is gone.`),
  },
  databases: {
    title: 'Databases', documents: 'Documents', deleted: 'Deleted', create: 'Create a database', name: 'Name', open: 'Open',
    rule: 'A lower-case letter, then lower-case letters, digits and _ $ ( ) + - /',
    partitioned: 'Partitioned', empty: 'There are no databases yet.', emptyHint: 'Create one here, or with a request:', filter: 'Filter by name',
    delete: 'Delete the database', deleteText: (name: string) => `This deletes ${name} with all documents, and cannot be undone. Type its name to confirm.`,
    created: (name: string) => `${name} was created.`, deletedText: (name: string) => `${name} was deleted.`,
  },
  database: {
    documents: 'Documents', queries: 'Query', search: 'Search', map: 'Map', views: 'Views', changes: 'Changes', permissions: 'Permissions', newDocument: 'New document', id: 'Id', rev: 'Revision',
    content: 'Content', from: 'First id', empty: 'There are no documents yet.', emptyHint: 'Add one here, or with a request:', design: 'Design documents only',
    total: (n: number) => plural(n, 'document', 'documents'), noViews: 'No design document has views.', key: 'Key', reduce: 'Reduce', descending: 'Descending',
    run: 'Run', startKey: 'First key', endKey: 'Last key', selector: 'Selector', index: 'Index used', live: 'Changes appear here as they happen.',
    admins: 'Admins', members: 'Members', names: 'Names', roles: 'Roles', onePerLine: 'one per line', saved: 'Saved.', seq: 'Sequence', deleted: 'deleted',
    firstRows: (n: number) => `Only the first ${plural(n, 'row is', 'rows are')} shown.`,
    examined: (docs: number, ms: number) => `${plural(docs, 'document', 'documents')} examined in ${ms.toFixed(1)} ms`,
  },
  document: {
    newTitle: 'New document', save: 'Save', saved: 'Saved.', delete: 'Delete the document', deleteText: 'This deletes the document. Its revisions stay until the next compaction.',
    conflict: 'It has been changed meanwhile. Your text is kept: load the new revision, and repeat your change.', reload: 'Load the new revision',
    noConflicts: 'No conflicts.', keep: 'Keep this revision', keepText: 'This deletes the other revisions in conflict.', attachments: 'Attachments', upload: 'Attach a file',
    winner: 'winner', isDeleted: 'This document is deleted.', noObject: 'A document is a JSON object.', unsaved: 'The text has changes that are not saved. Save them first.',
  },
  revisions: {
    title: 'Revisions', conflict: 'conflict', gone: 'not stored', conflicts: (n: number) => `${plural(n, 'revision is', 'revisions are')} in conflict with the winner. Keep one of them.`,
    goneText: 'The content of this revision is no longer stored: the database was compacted.', gap: (n: number) => `${count(n)} revisions that are not stored`,
    same: 'Its content is the same as the winner\u2019s.', legend: '− in this revision only, + in the winner only', content: 'Content of this revision', left: (n: number) => `${plural(n, 'more branch is', 'more branches are')} not shown.`,
  },
  designs: {
    indexed: (n: number) => `${plural(n, 'document', 'documents')} in the index.`, leftOut: (n: number) => `${plural(n, 'document is', 'documents are')} left out.`, example: 'For example',
    create: 'Create this design document',
  },
  query: {
    explain: 'Explain', plan: 'How the query is executed', readsAll: 'All documents are read.', readsAllHint: 'No index fits the selector and the sort.', selectsAll: 'The selector has no conditions.',
    noIndex: 'No index can be used for this query.', createJson: (fields: string[]) => `Create an index of ${fields.join(', ')}`, createText: 'Create a text index', created: 'The index was created. It builds itself.',
    read: 'Read the index', fetch: 'Read and test each document', covering: 'Test each row; documents are not read, since the index has all fields', order: 'Sort', return: 'Return',
    types: { special: 'primary index', json: 'JSON index', text: 'text index' } as Record<string, string>, partial: 'partial', columns: 'Columns', to: 'to', firstKey: 'first key', lastKey: 'last key', anything: '…', backwards: 'in descending order',
    noConditions: 'There are no conditions.', byRange: 'bounds the key range', tested: 'tested', orderOfIndex: 'the order of the index', unsorted: 'No sort: the order of the index.', relevance: 'By relevance.',
    skip: (n: number) => `Skip ${plural(n, 'result', 'results')}.`, limit: (n: number) => `At most ${plural(n, 'result', 'results')}.`, fields: 'Fields', whole: 'Whole documents.',
    others: (n: number) => `${plural(n, 'index', 'indexes')} not used`, reason: 'Why it is not used',
    reasons: {
      field_mismatch: 'The selector does not require all of its columns.', sort_order_mismatch: 'Its order is not that of the sort.', needs_text_search: 'Only a text index can find words.', empty_selector: 'The selector has no conditions.',
      is_partial: 'It has only some of the documents; use_index must name it.', scope_mismatch: 'It is of partitions and the query of the whole database, or the reverse.', excluded_by_user: 'use_index names another one.',
      unfavored_type: 'Another type of index is preferred.', less_overlap: 'Its first columns have fewer of the conditions.', too_many_fields: 'It has more columns.', alphabetically_comes_after: 'Its name comes later in the alphabet.',
    } as Record<string, string>,
  },
  search: {
    index: 'Full-text index', query: 'Query', highlights: 'Highlight matches', search: 'Search', partition: 'Partition', syntax: 'Examples:', score: 'Score', nothing: 'No document matches.',
    range: (first: number, last: number, all: number) => `${count(first)} to ${count(last)} of ${plural(all, 'result', 'results')}`,
    none: 'No design document has full-text indexes.', noneHint: 'An index has the words of documents. This one has those of all strings, and their fields:',
  },
  map: {
    index: 'Spatial index', label: 'Map', zoomIn: 'Zoom in', zoomOut: 'Zoom out', world: 'Whole world', fit: 'Fit to the features', more: 'Load more', list: 'Features in view', nothing: 'There are no features here.',
    shown: (n: number, more: boolean) => (more ? `The first ${plural(n, 'feature', 'features')} in view.` : `${plural(n, 'feature', 'features')} in view.`),
    keys: 'Drag to move, turn the wheel to zoom. Keys: arrows, + and −, 0 for the whole world.',
    none: 'No design document has spatial indexes.', noneHint: 'An index has the places of documents, as GeoJSON. This one has their member geometry:', example: 'A document for it:',
    firstListed: (n: number) => `Only the first ${plural(n, 'feature is', 'features are')} listed.`,
  },
  indexes: {
    title: 'Indexes', index: 'Index', database: 'Database', progress: 'Progress', rate: 'Documents a second', left: 'Time left', building: 'Being built', waiting: 'Waiting', queued: 'Databases in the queue',
    calm: 'No builds run or wait.', calmHint: 'Indexes build themselves. To see it, write a design document and some documents:', leftOut: 'Indexes that lack rows',
    channels: (used: number, all: number) => `${used} of ${all} channels in use`, busy: (busy: number, threads: number) => `${busy} of ${threads} threads busy`,
    history: 'Latest builds', noHistory: 'No builds are known. The server keeps them for an hour.', took: 'Took', changes: 'Changes', builds: 'Earlier builds', all: 'All indexes', none: 'No design document has indexes.', size: 'Size', upToDate: 'up to date',
    waitsForBuilder: (time: string) => `waits for a builder for ${time}`, progressOf: (ddoc: string, db: string) => `Progress of ${ddoc} of ${db}`, first: (n: number, all: number) => `The first ${count(n)} of ${count(all)}`,
    why: { channels: 'all channels are in use', batch_channels: 'all channels of large builds are in use', limit: 'its database has its maximum of builds', delay: 'it was built a moment ago', failed: 'its last build failed', batch: 'few changes so far' } as Record<string, string>,
  },
  jobs: {
    title: 'Jobs', type: 'Type', pending: 'Waiting', running: 'Running', finished: 'Finished', failed: 'Failed', cancelled: 'Cancelled', paused: 'paused', pause: 'Pause', resume: 'Resume',
    empty: 'There are no job types yet.', emptyHint: 'Declare one here, or with a request:', newType: 'Declare a type', own: 'The server\u2019s own', addJob: 'Add a job', data: 'Data (JSON)', priority: 'Priority',
    scheduledAt: 'Not before', settings: 'Settings', list: 'Jobs', filterId: 'Filter by the beginning of the id', due: 'Due', attempt: 'Attempt', worker: 'Worker', added: 'Added', resubmit: 'Run again', cancel: 'Cancel', remove: 'Remove',
    resubmitFailed: 'Run all failed ones again', noJobs: 'No jobs match.', noneSoFar: 'None of the first jobs with this id match.', history: 'Time line', about: 'Job', result: 'Result', progress: 'Progress', when: 'Due, started or ended', ended: 'Ended', failures: 'Failures',
    schedule: 'Schedule', deadline: 'Runs at most until', stopping: 'It was asked to stop.', again: 'It runs once more when this run has ended.', attemptNumber: (n: number) => `Attempt ${n}`, after: (took: string) => `after ${took}`, next: 'Next attempt', waits: 'Waits for a worker since',
    failuresAndLost: (failures: number, lost: number) => (lost ? `${failures}, and ${plural(lost, 'attempt', 'attempts')} lost` : `${failures}`),
    first: (n: number) => `The first ${plural(n, 'job', 'jobs')} that match.`, more: 'Show more', stop: 'Stop', stopped: 'The others were left as they are.',
    counting: (n: number) => `Counting: ${plural(n, 'job', 'jobs')} so far …`, changed: (n: number, all: number) => `${count(n)} of ${count(all)}`, refused: (n: number) => `The server refused ${plural(n, 'job', 'jobs')}:`,
    hasChanged: (state: string) => `Its state is now ${state}.`,
    bulkOf: (n: number, states: string[], prefix: string) => `${plural(n, 'job', 'jobs')} (${states.join(', ')})${prefix && ` whose ids begin with \u201c${prefix}\u201d`}`,
    bulk: {
      _resubmit: { title: 'Run all again', action: 'Run again', confirm: (what: string) => `This runs ${what} again.`, done: (n: number) => `${plural(n, 'job', 'jobs')} will run again.` },
      _cancel: { title: 'Cancel all', action: 'Cancel jobs', confirm: (what: string) => `This cancels ${what}. Workers of running ones are asked to stop.`, done: (n: number) => `${plural(n, 'job was', 'jobs were')} cancelled.` },
      _remove: { title: 'Remove all', action: 'Remove jobs', confirm: (what: string) => `This removes ${what} with their history, and cannot be undone.`, done: (n: number) => `${plural(n, 'job was', 'jobs were')} removed.` },
    },
    removeText: 'This removes the job and its history.', added_: 'The job was added.', idOptional: 'Id (optional; the same id is the same job)', savedSettings: 'The settings are in force.',
  },
  workers: {
    title: 'Workers', role: 'Role', timeout: 'Time-out', empty: 'No workers are registered.', emptyHint: 'A worker registers itself, and then accepts jobs. The client libraries do both; as requests:', lost: 'lost', gone: 'gone', joined: 'joined', events: 'What happened since this page was opened',
    joinedText: (id: string, role: string) => `${id} joined ${role}.`, leftText: (id: string, role: string) => `${id} left ${role}.`, own: 'The server\u2019s own', runs: 'Runs', running: (n: number) => plural(n, 'job', 'jobs'), busyFor: (time: string) => `for ${time}`, ended: 'Ended meanwhile', end: 'End the registration',
    endText: (id: string, jobs: number) => `${id} is no longer a worker. ${jobs === 0 ? 'It runs no jobs.' : `${plural(jobs, 'job', 'jobs')} of it will be pending again, and what it still reports about them is refused.`} A worker that is alive registers again.`,
    endedText: (id: string) => `The registration of ${id} has ended.`, more: (n: number) => `and ${count(n)} more`, cameBack: 'Came back to the queue:', idle: 'idle', lastReport: 'Last seen at a job',
  },
  replications: {
    title: 'Replications', source: 'Source', target: 'Target', read: 'Read', written: 'Written', failures: 'Failures', pending: 'Pending', new: 'Replicate', continuous: 'Continuous', createTarget: 'Create the target',
    empty: 'There are no replications.', emptyHint: 'Start one here, or with a request:', started: 'The replication runs.', cancelled: 'The replication has ended.', stop: 'Stop',
  },
  triggers: {
    title: 'Triggers and deliveries', trigger: 'Trigger', behind: 'Behind', jobsAdded: 'Jobs added', leftOut: 'Left out', lastError: 'Last error', waits: 'Waits', deliveries: 'Deliveries', noTriggers: 'No design document has triggers.',
    emptyHint: 'A trigger turns changes of documents into jobs:', underWay: 'Under way', delivered: 'Delivered', failed: 'Failed', receivers: 'Receivers that fail', calm: 'All receivers respond.', some: (n: number) => `Only the first ${count(n)} databases are shown.`, retryAt: 'Next attempt',
  },
  feeds: {
    title: 'Feeds', feed: 'Feed', start: 'Follow', stop: 'Stop', clear: 'Clear', from: 'From', now: 'now', beginning: 'the beginning', empty: 'Rows appear here as they come.', updates: 'Updates of all databases', changes: 'Changes of a database', events: 'Events of a channel',
    rate: (n: number) => `${n.toFixed(0)} rows a second`, database: 'Database', channel: 'Channel',
  },
  nodes: {
    title: 'Nodes', address: 'Address', version: 'Version', started: 'Started', work: 'Background work', cpu: 'Processor cores', memory: 'Memory', requests: 'Requests a second', builds: 'Builds',
  },
  settings: {
    title: 'Settings', filter: 'Filter by name', setting: 'Setting', saved: (name: string) => `${name} was changed.`, empty: 'No setting has this name.', meaning: 'Meaning', atStart: 'read at the start', reset: 'Set to the default',
    unit: (unit: string) => `in ${unit}`, defaultIs: (value: string) => (value === '' ? 'Default: empty' : `Default: ${value}`), changed: 'changed', onlyChanged: 'Changed ones only', restart: 'This setting is only read when the server starts: change it where the server is started.',
  },
  charts: {
    soon: 'The chart begins in a few seconds.', requests: 'Requests and documents a second', requestsLine: 'requests', documents: 'documents written', jobs: 'Attempts of jobs a second', ended: 'ended', failed: 'of these failed',
    times: 'Times of jobs, average', waited: 'waited', ran: 'ran', processor: 'Processor', cpu: 'cores in use', javascript: 'JavaScript processes at work', memory: 'Memory',
  },
  log: {
    title: 'Log', empty: 'No line matches.', level: 'At least', filter: 'Filter by text', kept: 'The last 1,000 lines of this node since it started.', latest: (n: number, all: number) => `The latest ${count(n)} of ${plural(all, 'line', 'lines')} that match.`,
  },
  users: {
    title: 'Users', new: 'New user', roles: 'Roles', password: 'Password', empty: 'There are no users yet.', emptyHint: 'Create one here, or with a request:', created: (name: string) => `The user ${name} was created.`, delete: 'Delete the user', rolesHint: 'separated by commas',
    deleteText: (name: string) => `${name} can no longer log in.`, first: (n: number) => `Only the first ${plural(n, 'user is', 'users are')} shown. Filter by name to see others.`,
  },
}
