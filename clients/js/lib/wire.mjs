// What callers give, as the server names it.

// Other members than ours go as they are: the server knows them, or refuses them by name.
const schedule = (given) => {
  if (!given) return given
  const { timeZone, ...others } = given
  return { time_zone: timeZone, ...others }
}

/** A job that is added. */
export const newJob = ({ id, data, scheduledAt, priority, schedule: given }) => ({
  id,
  data,
  scheduled_at: scheduledAt instanceof Date ? scheduledAt.getTime() : scheduledAt,
  priority,
  schedule: schedule(given)
})

/** The documents and jobs of a transaction. */
export const changes = ({ docs = {}, jobs = {} } = {}) => {
  const { add = [], ...others } = jobs
  return { docs, jobs: { ...others, add: add.map(({ type, ...job }) => ({ type, ...newJob(job) })) } }
}
