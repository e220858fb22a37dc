// Converts callers' options to the members of the HTTP API.
import { withTrace } from './trace.mjs'

// Other members are sent unchanged: the server accepts them or names them in an error.
const schedule = (given) => {
  if (!given) return given
  const { timeZone, ...others } = given
  return { time_zone: timeZone, ...others }
}

export const pathOf = (type) => `/_jobs/${encodeURIComponent(type)}`

/** Milliseconds since 1970. */
export const time = (given) => (given instanceof Date ? given.getTime() : given)

/** Converts a job to add. */
export const newJob = ({ data, scheduledAt, schedule: given, traceparent, ...others }) => ({
  ...others,
  data: withTrace(data, traceparent),
  scheduled_at: time(scheduledAt),
  schedule: schedule(given)
})

// The most jobs and bytes of one request that adds jobs, below the limits of a transaction.
const MAX_JOBS = 5_000
const MAX_BYTES = 4_000_000

/** Converts jobs to add to JSON, in pieces that fit into one request each. */
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

/** Converts the documents and jobs of a transaction. */
export const changes = ({ docs = {}, jobs = {} } = {}) => {
  const { add = [], ...others } = jobs
  return { docs, jobs: { ...others, add: add.map(({ type, ...job }) => ({ type, ...newJob(job) })) } }
}
