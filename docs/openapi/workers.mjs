import { anyObject, array, count, either, exactly, integer, is, object, ok, operation, ref, string } from './schema.mjs'
import { feed, feedContent, feedObject } from './feeds.mjs'

export const tag = { name: 'Workers', description: 'Registered workers, whose jobs are pending again as soon as they are lost.' }

const registration = object({
  'timeout?': is({ ...count, minimum: 100, maximum: 3600000 }, 'Milliseconds without a heartbeat after which the registration ends.', 15000),
  'opts?': is(anyObject, 'Shown with the worker.'),
  'incarnation?': is(string, 'Of an earlier registration, which continues.')
})
const registered = {
  ok: exactly(true),
  role: string,
  id: string,
  incarnation: is(string, 'Identifies the registration.')
}
const ended = { 409: 'The registration has ended (`halt`).' }

export const paths = {
  '/_workers': {
    get: operation('List the roles and their workers', { access: 'jobs', ok: { 200: ['The roles.', object({ roles: array(ref('Members')) })] } })
  },
  '/_workers/{role}': {
    get: operation('List the workers of a role', {
      text: 'As a feed, a row with all workers for each change.',
      access: 'jobs',
      query: { ...feed, since: is(string, 'The sequence of the last row that the client has.') },
      ok: {
        200: ['The workers.', feedContent(ref('Members'), either(ref('Members'), feedObject(ref('Members'))))]
      }
    })
  },
  '/_workers/{role}/{worker}': {
    get: operation('Show a registration', { access: 'jobs', ok: { 200: ['The registration.', object(registered)] }, errors: { 404: 'There is no such worker.' } }),
    put: operation('Register a worker', {
      text: 'An earlier registration with this role and id ends, unless the body has its `incarnation`.',
      access: 'jobs',
      body: registration,
      ok: { 201: ['Registered.', object({ ...registered, timeout: count })] },
      errors: { 403: 'The role begins with an underscore: it is reserved for the server.' }
    }),
    delete: operation('End a registration', {
      access: 'jobs',
      query: { incarnation: is(string, 'Only if this is the registration.') },
      ok: { 200: ['It has ended.', ok] },
      errors: { 404: 'There is no such registration.' }
    })
  },
  '/_workers/{role}/{worker}/_heartbeat': {
    post: operation('Send a heartbeat', {
      access: 'jobs',
      body: object({ 'incarnation?': string }),
      ok: { 200: ['The registration continues.', ok] },
      errors: ended
    })
  },
  '/_workers/{role}/{worker}/_hold': {
    post: operation('Register a worker until its connection ends', {
      text: 'The response is lines: the registration, empty lines, `{"halt": {...}}` for each attempt that was ended, and `{"error": "halt", ...}` if the registration has ended. Heartbeats are needed, too.',
      access: 'jobs',
      body: registration,
      ok: { 200: [
          'The registration, and lines without end.',
          {
            'application/json': {
              schema: is(string, 'Lines of JSON.'),
              'x-rows': either(
                object({ ...registered, timeout: count }),
                object({ halt: object({ type: string, id: string, lock: string, epoch: integer, reason: string }) }),
                ref('Error')
              )
            }
          }
        ] },
      errors: { 403: 'The role begins with an underscore: it is reserved for the server.' }
    })
  },
  '/_workers/{role}/{worker}/_jobs': {
    get: operation("List a worker's jobs of a type", {
      access: 'jobs',
      query: {
        'type!': is(string, 'The type of the jobs.'),
        limit: is({ ...count, minimum: 1, maximum: 1000 }, 'The most jobs.', 100),
        start_id: is(string, 'The first id.')
      },
      ok: { 200: ['The jobs.', object({ jobs: array(ref('Job')) })] },
      errors: { 404: 'The type is not declared.' }
    })
  }
}

export const schemas = {
  Members: object({
    role: string,
    seq: ref('Sequence'),
    workers: array(object({ id: string, incarnation: string, timeout: count, 'silence?': is(count, 'For how many milliseconds this node has waited for the next heartbeat. Workers of the node itself have none, and rows of a feed.'), opts: anyObject }))
  })
}
