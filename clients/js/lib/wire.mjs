// What callers give, as the server names it.
import { withTrace } from './trace.mjs'

// Other members are sent as they are: the server knows them, or refuses them by name.
const schedule = (given) => {
  if (!given) return given
  const { timeZone, ...others } = given
  return { time_zone: timeZone, ...others }
}

export const pathOf = (type) => `/_jobs/${encodeURIComponent(type)}`

/** Milliseconds since 1970. */
export const time = (given) => (given instanceof Date ? given.getTime() : given)

/** A job that is added. */
export const newJob = ({ data, scheduledAt, schedule: given, traceparent, ...others }) => ({
  ...others,
  data: withTrace(data, traceparent),
  scheduled_at: time(scheduledAt),
  schedule: schedule(given)
})

// Jobs and bytes of one request to add jobs, below what a transaction of the server takes.
const MAX_JOBS = 5_000
const MAX_BYTES = 4_000_000

/** Jobs that are added, as JSON, in pieces that fit into one request each. */
export function pieces(jobs) {
  const all = [[]]
  let bytes = 0
  for (const job of jobs) {
    const text = JSON.stringify(job)
    bytes += Buffer.byteLength(text)
    if (all.at(-1).length === MAX_JOBS || (bytes > MAX_BYTES && all.at(-1).length > 0)) {
      all.push([])
      bytes = Buffer.byteLength(text)
    }
    all.at(-1).push(text)
  }
  return all
}

/** The documents and jobs of a transaction. */
export const changes = ({ docs = {}, jobs = {} } = {}) => {
  const { add = [], ...others } = jobs
  return { docs, jobs: { ...others, add: add.map(({ type, ...job }) => ({ type, ...newJob(job) })) } }
}
