import { array, boolean, count, is, integer, map, nullable, number, object, ok, operation, ref, string } from './schema.mjs'

export const tag = { name: 'Nodes', description: 'Settings, statistics and logs of one process.' }

const statistics = operation('Read statistics', {
  access: 'metrics',
  ok: {
    200: ['Statistics, nested by the parts of their names; null if there is none with this name.', { 'application/json': { schema: { type: ['object', 'null'] } } }]
  }
})
const value = is(string, 'A value.')

export const paths = {
  '/_node/{node}': {
    get: operation('Show the name of a node', { access: 'administrator', ok: { 200: ['The name.', object({ name: string })] } })
  },
  '/_node/{node}/_config': {
    get: operation('Read the settings', { text: 'Without those that are secret.', access: 'administrator', ok: { 200: ['Settings by section.', map(map(string))] } })
  },
  '/_node/{node}/_config/_reload': {
    post: operation('Read the settings file again', { access: 'administrator', ok: { 200: ['Done.', ok] } })
  },
  '/_node/{node}/_config/{section}': {
    get: operation('Read the settings of a section', { access: 'administrator', ok: { 200: ['The settings.', map(string)] } })
  },
  '/_node/{node}/_config/{section}/{key}': {
    get: operation('Read a setting', { access: 'administrator', ok: { 200: ['The value.', value] }, errors: { 404: 'The setting has no value.' } }),
    put: operation('Set a setting', {
      access: 'administrator',
      body: value,
      needsBody: true,
      ok: { 200: ['The old value.', value] },
      errors: { 403: 'The setting is secret: it can only be set where the server is started.' }
    }),
    delete: operation('Set a setting to its default', { access: 'administrator', ok: { 200: ['The old value.', value] }, errors: { 404: 'The setting has no value.' } })
  },
  '/_node/{node}/_settings': {
    get: operation('Describe all settings', {
      access: 'administrator',
      ok: { 200: ['The settings.', array(ref('Setting'))] }
    })
  },
  '/_node/{node}/_stats': { get: statistics },
  '/_node/{node}/_stats/{statistic}': { get: statistics },
  '/_node/{node}/_prometheus': {
    get: operation('Read the metrics', { access: 'metrics', ok: { 200: ["Metrics in Prometheus' text format.", { 'text/plain': { schema: string } }] } })
  },
  '/_node/{node}/_system': {
    get: operation('Show what the process uses', {
      access: 'metrics',
      ok: {
        200: [
          'Counts since its start.',
          object({
            uptime: is(count, 'Seconds.'),
            memory: object({ other: is(count, 'Bytes.') }),
            run_queue: is(count, 'Requests that wait for a thread.'),
            context_switches: count,
            io_input: is(count, 'Bytes that were read.'),
            io_output: is(count, 'Bytes that were written.'),
            os_proc_count: is(count, 'Processes that run JavaScript.'),
            message_queues: object({}),
            internal_replication_jobs: integer,
            distribution: object({}),
            disk: object({ total: is(count, 'Bytes of the file system that has the data directory.'), free: is(count, 'Of these, free ones.') })
          })
        ]
      }
    })
  },
  '/_node/{node}/_history': {
    get: operation('Show what was counted in the last hour', {
      access: 'metrics',
      query: { samples: is(count, 'The most samples.', 720), type: is(string, 'Only attempts of jobs of this type.') },
      ok: {
        200: [
          'Samples, the oldest first.',
          object({
            interval: is(count, 'Seconds between samples.'),
            times: is(array(number), 'Seconds since 1970-01-01 UTC.'),
            series: map(array(number)),
            jobs_of: is(nullable(string), 'The type of `jobs`: `_other` for all types beyond the first 200; null for all.'),
            jobs: map(array(number))
          })
        ]
      }
    })
  },
  '/_node/{node}/_log': {
    get: operation('Read the last lines of the log', {
      access: 'administrator',
      query: { limit: is(count, 'The most lines.', 1000), after: is(count, 'Only lines after this time, in microseconds since 1970-01-01 UTC.', 0) },
      ok: {
        200: [
          'Lines, the oldest first.',
          object({ lines: array(object({ time: is(count, 'Microseconds since 1970-01-01 UTC.'), level: string, text: string })) })
        ]
      }
    })
  },
  '/_node/{node}/_versions': {
    get: operation('Show the versions of libraries', {
      access: 'administrator',
      ok: {
        200: [
          'The versions.',
          object({
            javascript_engine: object({ name: string, version: string }),
            collation_driver: object({ name: string, library_version: string, collation_algorithm_version: string, collator_version: string })
          })
        ]
      }
    })
  },
  '/_node/{node}/_restart': {
    post: operation('Restart the process', { access: 'administrator', ok: { 200: ['It will restart.', ok] } })
  }
}

export const schemas = {
  Setting: object({ section: string, key: string, default: string, unit: string, live: is(boolean, 'A change applies without a restart.'), description: string })
}
