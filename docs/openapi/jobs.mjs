import { any, array, boolean, count, either, exactly, integer, is, map, nullable, number, object, ok, oneOf, operation, ref, string } from './schema.mjs'
import { feed, feedContent, feedObject } from './feeds.mjs'

export const tag = { name: 'Jobs', description: "The durable job queue. Jobs of the server's own types, such as index builds and replications, are for server administrators only." }

const noType = { 404: 'The type is not declared.' }
const noJob = { 404: 'The job or its type does not exist.' }
const halt = { 404: noJob[404], 409: 'The attempt has ended: the lock (`halt`), or the epoch (`conflict`), is not that of the running attempt.' }
const states = oneOf('pending', 'running', 'finished', 'failed', 'cancelled')
const milliseconds = (description, fallback) => is(count, `Milliseconds: ${description}`, fallback)
const lock = is(string, 'The lock of the attempt, from the accept.')
const delay = milliseconds('how long the job then waits; by default the back-off of its type, or none for a release.')

// Others than the worker release a job by the epoch of its attempt.
const epoch = is(integer, 'The epoch of the running attempt, as the job has it.')
const bodyOf = (action, members) => {
  const byLock = object({ lock, 'id?': string, ...members })
  return action === '_release' ? either(byLock, object({ epoch, 'id?': string, ...members })) : byLock
}

// The members that a report may have beside `lock`; `id` may repeat that of the path.
const reports = {
  _update: { 'data?': any, 'progress?': is(any, 'Shown with the job.') },
  _finish: { 'data?': any, 'result?': is(any, 'Kept with the job.') },
  _fail: { 'error?': is(string, 'What went wrong.'), 'retry?': is(boolean, '`false`: the job fails permanently.', true), 'delay?': delay },
  _release: { 'delay?': delay }
}
const summaries = {
  _update: ['Report that an attempt is alive', 'Report that attempts are alive'],
  _finish: ['Finish a job', 'Finish jobs'],
  _fail: ['Report that an attempt has failed', 'Report that attempts have failed'],
  _release: ['Return a job to the queue', 'Return jobs to the queue']
}
const flags = object({
  ok: exactly(true),
  resubmit: is(boolean, 'The job was submitted again since the attempt began.'),
  cancel: is(boolean, 'The job was cancelled: the attempt should end.')
})
const refused = object({ id: string, error: string, reason: string, status: is(integer, 'The status of this error if it were the only report.') })

const reportPaths = Object.fromEntries(
  Object.entries(reports).flatMap(([action, members]) => {
    const good = action === '_update' ? flags : ok
    const [one, several] = summaries[action]
    return [
      [
        `/_jobs/{type}/{id}/${action}`,
        { post: operation(one, { access: 'jobs', body: bodyOf(action, members), needsBody: true, ok: { 200: ['Done.', good] }, errors: halt }) }
      ],
      [
        `/_jobs/{type}/${action}`,
        {
          post: operation(several, {
            text: 'Each report is executed or refused by itself.',
            access: 'jobs',
            body: object({ jobs: array(object({ id: string, lock, ...members })) }),
            needsBody: true,
            ok: { 200: ['A result for each report, in their order.', array(either(good, refused))] }
          })
        }
      ]
    ]
  })
)

const accept = (summary, more, finished) =>
  operation(summary, {
    text: 'Returns at once if there are jobs that are due, and otherwise waits for `timeout`.',
    access: 'jobs',
    body: object({
      'limit?': is({ ...count, minimum: 1, maximum: 1000 }, 'The most jobs.', 1),
      'timeout?': milliseconds('how long to wait for jobs, at most 300,000.', 0),
      'max_scheduled_at?': is(ref('Time'), 'Only jobs that are scheduled for this time or earlier.'),
      'worker?': is(
        object({ role: string, id: string, 'incarnation?': string }),
        'The registered worker that executes the jobs: they are pending again when its registration ends.'
      ),
      'finish?': is(array(finished), 'Jobs that are finished first. Not with `timeout`.'),
      ...more
    }),
    ok: {
      200: [
        'The jobs; none after the timeout.',
        object({ jobs: array(ref('AcceptedJob')), 'finished?': is(array(either(ok, refused)), 'With `finish`: a result for each.') })
      ]
    },
    errors: { 404: 'A type is not declared, or the worker is not registered.' }
  })
const finish = { id: string, lock, ...reports._finish }

const change = (summary) =>
  operation(summary, {
    text: 'Changes all jobs in a state, up to `limit`, for at most some seconds. If the response has `next`, repeat the request with it as `start`.',
    access: 'jobs',
    body: object({
      state: states,
      'limit?': is({ ...count, minimum: 1, maximum: 100000 }, 'The most jobs.', 10000),
      'start?': is(string, 'The `next` of the previous response.')
    }),
    needsBody: true,
    ok: {
      200: [
        'Some or all were changed.',
        object({ ok: exactly(true), changed: count, left: is(count, 'Jobs that are in the state now.'), done: is(boolean, 'There are no more.'), 'next?': string })
      ]
    },
    errors: noType
  })

const added = object({ ok: exactly(true), id: string, created: is(boolean, '`false`: a job with this id existed.') })

export const paths = {
  '/_jobs': {
    get: operation('List the types of jobs', { access: 'jobs', ok: { 200: ['The types.', object({ types: array(ref('JobType')) })] } })
  },
  '/_jobs/_accept': {
    post: accept('Accept jobs of several types', { types: { ...array(string), minItems: 1, maxItems: 100 } }, object({ type: string, ...finish }))
  },
  '/_jobs/_wait': {
    post: operation('Wait for jobs', {
      text: 'Returns when `count` of the jobs are in one of the states, or after `timeout`.',
      access: 'jobs',
      body: object({
        jobs: array(object({ type: string, id: string })),
        'states?': is(nullable(array(states)), 'By default finished, failed and cancelled. A job that does not exist counts as ended.'),
        'count?': is({ ...count, minimum: 1 }, 'How many.', 1),
        'timeout?': milliseconds('how long to wait, at most 300,000.', 0)
      }),
      needsBody: true,
      ok: {
        200: [
          'The states of all jobs.',
          object({
            reached: count,
            jobs: array(object({ type: string, id: string, state: oneOf('pending', 'running', 'finished', 'failed', 'cancelled', 'not_found'), reached: boolean }))
          })
        ]
      }
    })
  },
  '/_jobs/_events': {
    get: operation('Follow the changes of all jobs', {
      text: 'Rows are `JobEvent`s. They are not stored: a feed cannot be resumed.',
      access: 'jobs',
      query: { ...feed, feed: is(oneOf('continuous', 'eventsource'), 'The form of the response.', 'continuous') },
      ok: { 200: ['The events, without end.', feedContent(ref('JobEvent'))] }
    })
  },
  '/_jobs/{type}': {
    get: operation('Show a type', { access: 'jobs', ok: { 200: ['The type.', ref('JobType')] }, errors: noType }),
    put: operation('Declare a type, or change its settings', {
      text: 'Settings that are not in the body remain.',
      access: 'jobs',
      body: ref('JobSettings'),
      ok: { 201: ['Stored.', ok] },
      errors: { 403: '`deliver` is for server administrators.' }
    }),
    post: operation('Add a job whose id the server chooses', { access: 'jobs', body: ref('JobToAdd'), ok: { 201: ['Added.', added] }, errors: noType }),
    delete: operation('Delete a type', {
      access: 'jobs',
      query: { force: is(boolean, 'Also if there are jobs, which are deleted.', false) },
      ok: { 200: ['Deleted.', ok] },
      errors: { ...noType, 409: 'There are jobs.' }
    })
  },
  '/_jobs/{type}/_accept': { post: accept('Accept jobs', {}, object(finish)) },
  '/_jobs/{type}/_bulk': {
    post: operation('Add jobs', {
      text: 'Adds all or none.',
      access: 'jobs',
      body: object({ jobs: array(ref('JobToAddWithId')) }),
      needsBody: true,
      ok: { 201: ['Added, in the order of the request.', array(added)] },
      errors: { ...noType, 413: 'The jobs exceed what a transaction may write.' }
    })
  },
  '/_jobs/{type}/_list': {
    get: operation('List jobs', {
      text: 'Without data and results.',
      access: 'jobs',
      query: {
        state: is(states, 'Only jobs in this state.'),
        start_id: is(string, 'The first id, without `state`.'),
        start: is(string, 'The `next` of the previous response.'),
        descending: is(boolean, 'The last first.', false),
        limit: is({ ...count, maximum: 1000 }, 'The most jobs.', 100)
      },
      ok: { 200: ['The jobs.', object({ jobs: array(ref('Job')), 'next?': is(string, 'The `start` of the next request.') })] },
      errors: noType
    })
  },
  '/_jobs/{type}/_cancel': { post: change('Cancel all jobs in a state') },
  '/_jobs/{type}/_resubmit': { post: change('Submit all jobs in a state again') },
  '/_jobs/{type}/_remove': { post: change('Remove all jobs in a state') },
  '/_jobs/{type}/{id}': {
    get: operation('Show a job', {
      text: 'As a feed, a row for each change until the job ends.',
      access: 'jobs',
      query: { ...feed, since: is(string, 'The sequence of the last row that the client has.') },
      ok: {
        200: ['The job.', feedContent(ref('JobState'), either(ref('Job'), feedObject(ref('JobState'))))]
      },
      errors: noJob
    }),
    put: operation('Add a job', {
      text: 'A pending job with this id is changed, and one that has ended is pending again. A running one runs again after its attempt, with the new data.',
      access: 'jobs',
      body: ref('JobToAdd'),
      ok: { 201: ['Added.', added], 200: ['A job with this id existed.', added] },
      errors: noType
    }),
    delete: operation('Remove a job', { access: 'jobs', ok: { 200: ['Removed.', ok] }, errors: noJob })
  },
  '/_jobs/{type}/{id}/_cancel': {
    post: operation('Cancel a job', { text: 'The worker of a running job gets `cancel` in the response to its next report.', access: 'jobs', body: object({}), ok: { 200: ['Cancelled.', ok] }, errors: noJob })
  },
  '/_jobs/{type}/{id}/_resubmit': {
    post: operation('Submit a job again', {
      text: 'An ended job is pending again. A running one will be when its attempt ends.',
      access: 'jobs',
      body: object({ 'lock?': is(string, 'Only if this is the lock of the running attempt.'), 'scheduled_at?': ref('Time'), 'data?': any }),
      ok: { 200: ['Done.', ok] },
      errors: halt
    })
  },
  ...reportPaths
}

const schedule = ref('Schedule')
const limits = (defaults) => ({
  'timeout?': milliseconds('an attempt without a registered worker is lost if it does not report for this long.', defaults.timeout),
  'max_attempts?': is({ ...count, minimum: 1 }, 'Failed attempts after which a job fails permanently.', defaults.max_attempts),
  'max_lost?': is(nullable(count), 'Lost attempts after which a job fails permanently; null: no limit.', defaults.max_lost),
  'backoff_min?': milliseconds('the pause after the first failed attempt.', defaults.backoff_min),
  'backoff_max?': milliseconds('the longest pause.', defaults.backoff_max),
  'max_runtime?': is(nullable(count), 'Milliseconds: the longest run of an attempt; null: no limit.', defaults.max_runtime)
})
// Those of a job are those of its type by default.
const ownLimits = limits({})
const typeLimits = limits({ timeout: 30000, max_attempts: 25, max_lost: 10, backoff_min: 1000, backoff_max: 3600000, max_runtime: null })
const settings = {
  ...typeLimits,
  'max_running?': is(nullable(count), 'The most jobs that run at a time; null: no limit.', null),
  'retention?': milliseconds('how long ended jobs are kept.', 86400000),
  'retention_failed?': is(nullable(count), 'Milliseconds: how long failed jobs are kept; null: `retention`.', null),
  'paused?': is(boolean, 'Jobs can be added, but are not accepted.', false),
  'schedule?': is(nullable(schedule), "Of the type's own periodic job."),
  'deliver?': is(nullable(ref('Delivery')), 'The server sends the jobs as webhooks; null: workers accept them.')
}
const toAdd = {
  'data?': any,
  'scheduled_at?': is(nullable(ref('Time')), 'Not before this time.'),
  'priority?': is(nullable(integer), 'Jobs with smaller numbers are accepted first.', 0),
  'schedule?': nullable(schedule),
  ...ownLimits
}
const job = {
  type: string,
  id: string,
  state: states,
  priority: integer,
  scheduled_at: ref('Time'),
  'due_at?': is(ref('Time'), 'When a pending job can be accepted.'),
  'schedule?': schedule,
  ...ownLimits,
  attempt: is(count, 'Number of the last attempt.'),
  failures: is(count, 'Failed attempts since the job was submitted.'),
  epoch: is(integer, 'Fencing token: greater for each attempt.'),
  'lost?': is(count, 'Lost attempts.'),
  'resubmit?': exactly(true),
  'cancel?': exactly(true),
  'worker?': ref('WorkerName'),
  'added_at?': ref('Time'),
  'started_at?': ref('Time'),
  'finished_at?': ref('Time'),
  'deadline?': is(ref('Time'), 'When the attempt is lost, with `max_runtime`.'),
  'progress?': any,
  'last_error?': string,
  'history?': array(ref('Attempt')),
  'data?': any,
  'result?': any
}
const outcome = oneOf('finished', 'failed', 'lost', 'released', 'cancelled')

export const schemas = {
  Schedule: object({
    cron: is(string, 'A cron expression of five fields.'),
    'time_zone?': is(string, 'A time zone of the tz database.', 'UTC'),
    'missed?': is(oneOf('once', 'skip'), 'What happens if times were missed: one run, or none.', 'once')
  }),
  JobSettings: object(settings),
  ShownJobSettings: object(Object.fromEntries(Object.entries(settings).map(([name, schema]) => [name === 'deliver?' ? name : name.replace('?', ''), schema]))),
  Delivery: is(
    object({
      'url?': string,
      'host?': is(string, 'In responses to users who are not administrators, instead of all other members.'),
      'method?': is(nullable(oneOf('POST', 'PUT', 'PATCH')), 'The method.', 'POST'),
      'headers?': is(nullable(map(string)), 'Header fields. Responses have `***` for their values.'),
      'secret?': is(nullable(either(string, array(string))), 'Secrets of the signature. Responses have `***`.'),
      'timeout?': is(nullable(count), 'Milliseconds: how long a request may take, from 100 to 300,000.', 30000),
      'concurrency?': is(nullable({ ...count, minimum: 1, maximum: 1000 }), 'The most requests at a time.', 10),
      'rate?': is(nullable(object({ per_second: number })), 'The most requests in a second.'),
      'fail_on?': is(nullable(array(integer)), 'Statuses with which a job fails permanently.'),
      'result?': is(nullable(boolean), 'The response is kept as the result of the job.', false)
    }),
    'How jobs are sent. A request changes the members that it has; null sets the default.'
  ),
  JobType: object({
    type: string,
    own: is(boolean, "The jobs are the server's own."),
    settings: ref('ShownJobSettings'),
    counts: is(map(integer), 'Number of jobs by state.')
  }),
  JobToAdd: object(toAdd),
  JobToAddWithId: object({ 'id?': string, ...toAdd }),
  JobToAddWithType: object({ type: string, 'id?': string, ...toAdd }),
  Job: object(job),
  JobState: either(ref('Job'), object({ type: string, id: string, state: exactly('not_found') })),
  Attempt: object({
    attempt: count,
    epoch: integer,
    started_at: ref('Time'),
    'ended_at?': ref('Time'),
    'worker?': ref('WorkerName'),
    'outcome?': outcome,
    'error?': string
  }),
  AcceptedJob: object({
    type: string,
    id: string,
    lock,
    epoch: is(integer, 'Fencing token: greater for each attempt.'),
    attempt: is(count, 'Number of the attempt, from 1.'),
    data: any
  }),
  JobEvent: either(
    object({ type: string, id: string, state: string, attempt: count, 'outcome?': outcome, 'worker?': ref('WorkerName'), time: ref('Time') }),
    object({ lagged: is(count, 'The number of events that were missed here.') })
  )
}
