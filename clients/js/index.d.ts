// Divan's jobs and workers for Node.js. README.md shows how. Of other declarations, only AbortSignal is used: from TypeScript's library
// `dom`, or from @types/node.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/**
 * An error response of the server. If there is no response, the error has a `code` instead: ECONNREFUSED, ECONNRESET,
 * ETIMEDOUT, or another one of Node.js or undici.
 */
export class DivanError extends Error {
  readonly name: 'DivanError'
  /** The HTTP status: 401, 404, 409, … */
  readonly status: number
  /** `no_such_job_type`, `not_found`, `conflict`, `halt`, `unauthorized`, … */
  readonly error: string
  readonly reason: string
  constructor(status: number, error: string, reason: string)
}

/** The reason of a job's signal. */
export class JobAborted extends Error {
  readonly name: 'JobAborted'
  /**
   * `cancel`: a client has cancelled the job; it may still finish. `halt`: the attempt does not own the job any more, and
   * the handler's result is ignored. `stop`: the worker stops, and has released the job.
   */
  readonly code: 'cancel' | 'halt' | 'stop'
  constructor(code: 'cancel' | 'halt' | 'stop', message: string)
}

/**
 * Thrown by a handler to control the retry: with `retry: false` the job fails permanently; with a `delay` it is retried
 * after that many milliseconds, instead of the type's backoff.
 */
export class JobFailure extends Error {
  readonly name: 'JobFailure'
  readonly retry?: boolean
  readonly delay?: number
  constructor(message: string, options?: { retry?: boolean; delay?: number; cause?: unknown })
}

/** Thrown by a handler to release its job, which does not count as a failure: it runs again after `delay` milliseconds. */
export class JobSnooze extends Error {
  readonly name: 'JobSnooze'
  readonly delay: number
  constructor(delay: number)
}

/**
 * Returned by a handler to replace the job's data in addition to its result: a resubmit, or the next occurrence of a
 * periodic job, runs with that data.
 */
export class JobResult<Result = unknown, Data = unknown> {
  readonly result: Result
  readonly data?: Data
  constructor(result: Result, options?: { data?: Data })
}

/** Settings of a type; missing ones are not changed. Times are in milliseconds, as everywhere in this kit. */
export interface TypeSettings {
  timeout?: number
  max_attempts?: number
  max_lost?: number | null
  max_runtime?: number | null
  backoff_min?: number
  backoff_max?: number
  retention?: number
  retention_failed?: number | null
  max_running?: number | null
  paused?: boolean
  /** The type has a job `_periodic` with this schedule; null: none. */
  schedule?: { cron: string; time_zone?: string; missed?: 'once' | 'skip' } | null
}

/** A job with a schedule is pending again, for the next tick, when it has finished or failed permanently. */
export interface Schedule {
  /** Five fields as in crontab(5), or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. */
  cron: string
  /** A name of the tz database, such as `Europe/Berlin`; default UTC. */
  timeZone?: string
  /** Occurrences that were not started before the next tick run once for all of them (`once`, the default), or not (`skip`). */
  missed?: 'once' | 'skip'
}

export interface JobOptions {
  /** Not before then: a date, or milliseconds since 1970. */
  scheduledAt?: Date | number
  /** Lower runs first; default 0. */
  priority?: number
  /** Makes the job periodic; excludes `scheduledAt`. An existing job with the same schedule keeps its time. */
  schedule?: Schedule
  /** The job's trace (W3C Trace Context), stored as a member of its data, which must be an object. */
  traceparent?: string
  /** The job's own limits, which override its type's. */
  timeout?: number
  max_attempts?: number
  max_lost?: number | null
  max_runtime?: number | null
  backoff_min?: number
  backoff_max?: number
  /** Other members of a job in the HTTP API, under their names there. */
  [other: string]: unknown
}

export interface NewJob<Data = unknown> extends JobOptions {
  /** Unique in its type; default: a UUID. */
  id?: string
  data?: Data
}

export interface Added {
  id: string
  /** false: a job of that id existed. It runs with the new data, again if it was running. */
  created: boolean
}

export type State = 'pending' | 'running' | 'finished' | 'failed' | 'cancelled'

/** One of the attempts at a job as the server shows it. A running one has no `ended_at` and no `outcome`. */
export interface Attempt {
  attempt: number
  epoch: number
  started_at: number
  ended_at?: number
  worker?: { role: string; id: string }
  outcome?: 'finished' | 'failed' | 'lost' | 'released' | 'cancelled'
  error?: string
}

/** A job as the server shows it. */
export interface JobInfo<Data = unknown> {
  type: string
  id: string
  state: State
  priority: number
  /** The requested time, or the tick of a periodic job's current occurrence. */
  scheduled_at: number
  /** The earliest time at which a pending job runs. */
  due_at?: number
  schedule?: { cron: string; time_zone: string; missed: 'once' | 'skip' }
  attempt: number
  failures: number
  epoch: number
  data: Data
  /** The result of its last finished run. */
  result?: Json
  worker?: { role: string; id: string }
  progress?: Json
  last_error?: string
  /** The last 20 attempts and the current one, the oldest first. */
  history: Attempt[]
  [other: string]: unknown
}

/** Documents and jobs that are written atomically. */
export interface Changes {
  /** Documents by database. An existing one needs its `_rev`; a conflict fails the whole request with status 409. */
  docs?: Record<string, object[]>
  jobs?: {
    add?: (NewJob & { type: string })[]
    finish?: { type: string; id: string; lock: string; result?: unknown; data?: unknown }[]
    remove?: { type: string; id: string }[]
  }
}

export interface TransactAnswer {
  ok: true
  docs: Record<string, { ok: true; id: string; rev: string }[]>
  jobs: {
    add: { ok: true; type: string; id: string; created: boolean }[]
    finish: { ok: true; type: string; id: string }[]
    remove: { ok: true; type: string; id: string }[]
  }
}

/** An attempt at a job, passed to its handler. */
export interface Job<Data = any, Result = any> {
  readonly type: string
  readonly id: string
  readonly data: Data
  /** The `traceparent` of its data, if it is valid. */
  readonly traceparent?: string
  /** The number of the attempt, from 1 on; released attempts do not count. */
  readonly attempt: number
  /** Grows with every attempt. A fencing token: external systems can reject writes of an older attempt. */
  readonly epoch: number
  readonly lock: string
  /** Aborted when the handler should stop; its reason is a JobAborted. */
  readonly signal: AbortSignal
  /**
   * Reports progress, or replaces the job's data. Throws JobAborted if the attempt does not own the job any more. In the
   * result, `resubmit` is true if the job runs again afterwards.
   */
  update(change?: { progress?: Json; data?: Data }): Promise<{ cancel: boolean; resubmit: boolean }>
  /**
   * Finishes the job in one transaction with other changes, so that these are applied exactly once, however often the
   * job runs. What the handler returns afterwards is ignored.
   */
  transact(changes: Changes, result?: Result | JobResult<Result, Data>): Promise<TransactAnswer>
}

/** Returns the job's result, or a JobResult; if it throws, the attempt has failed. */
export type Handler<Data = any, Result = any> = (
  job: Job<Data, Result>
) => Promise<Result | JobResult<Result, Data>> | Result | JobResult<Result, Data>

/** Runs around handlers: `next()` runs the next hook or the handler, and resolves or rejects as that does. */
export type Hook = (job: Job, next: () => Promise<unknown>) => Promise<unknown> | unknown

export interface WorkerOptions {
  /** Workers are grouped by role. */
  role: string
  /** Unique in the role; default: host name, process id and a random suffix. */
  id?: string
  /** Shown in lists of workers. */
  opts?: { [name: string]: Json }
  /** Milliseconds without a heartbeat after which the worker is evicted and its jobs are reclaimed (15,000). */
  timeout?: number
  /** The interval of checks whether running jobs were cancelled, in milliseconds (1,000). */
  checkInterval?: number
  /** How long one request waits for jobs, in milliseconds (30,000). */
  pollTimeout?: number
  /**
   * Pauses between attempts to reach the server, in milliseconds (100 to 30,000; doubled each time, and jittered). At
   * most half the timeout, so that the worker reconnects in time.
   */
  backoff?: { min?: number; max?: number }
}

export interface WorkerEvents {
  /** The worker was registered, initially or again. */
  online: []
  /** The server cannot be reached, or has evicted the worker, which retries. */
  offline: [error: Error]
  /** The worker does not own a job any more; the handler's result is ignored. */
  halt: [job: Job, reason: JobAborted]
  /** A handler threw; `error` is what it threw. */
  fail: [job: Job, error: any]
}

/** An EventEmitter of Node.js. */
export class Worker {
  private constructor()
  readonly role: string
  readonly id: string
  /**
   * Runs up to `concurrency` (1) jobs at once with this handler: those of one type, or of up to 100 types, whose jobs
   * then form one queue by priority, time and age. Call before run().
   */
  handle<Data = any, Result = any>(
    types: string | string[],
    handler: Handler<Data, Result>,
    options?: { concurrency?: number }
  ): this
  /**
   * Adds a hook around the handlers of all types; the first one added is the outermost. Its return value
   * replaces the handler's result, and an exception is a failure of the handler. Call before run().
   */
  use(hook: Hook): this
  /**
   * Runs until stop() has completed. Throws errors for which a retry is useless: DivanError with `error` no_such_job_type
   * (the type is not declared) or status 401 or 403.
   */
  run(): Promise<void>
  /**
   * Accepts no more jobs and waits for running ones. Jobs that take longer than `timeout` (30,000 ms) get their signal
   * and are released, so that other workers can run them at once.
   */
  stop(options?: { timeout?: number }): Promise<void>
  on<Name extends keyof WorkerEvents>(name: Name, listener: (...args: WorkerEvents[Name]) => void): this
  once<Name extends keyof WorkerEvents>(name: Name, listener: (...args: WorkerEvents[Name]) => void): this
  off<Name extends keyof WorkerEvents>(name: Name, listener: (...args: WorkerEvents[Name]) => void): this
  addListener<Name extends keyof WorkerEvents>(name: Name, listener: (...args: WorkerEvents[Name]) => void): this
  removeListener<Name extends keyof WorkerEvents>(name: Name, listener: (...args: WorkerEvents[Name]) => void): this
  prependListener<Name extends keyof WorkerEvents>(name: Name, listener: (...args: WorkerEvents[Name]) => void): this
  prependOnceListener<Name extends keyof WorkerEvents>(name: Name, listener: (...args: WorkerEvents[Name]) => void): this
  removeAllListeners(name?: keyof WorkerEvents): this
  setMaxListeners(count: number): this
  getMaxListeners(): number
  listeners(name: keyof WorkerEvents): Function[]
  rawListeners(name: keyof WorkerEvents): Function[]
  listenerCount(name: keyof WorkerEvents, listener?: Function): number
  eventNames(): (keyof WorkerEvents)[]
  emit<Name extends keyof WorkerEvents>(name: Name, ...args: WorkerEvents[Name]): boolean
}

/** One server, as one user. */
export class Divan {
  /** `url`: "http://name:password@host:port". */
  constructor(url: string)
  /** Declares a type of jobs, or changes its settings. */
  declare(type: string, settings?: TypeSettings): Promise<void>
  /** Adds a job, which runs once, or by its schedule; without an id (null) it gets a UUID. */
  enqueue(type: string, id: string | null | undefined, data?: unknown, options?: JobOptions): Promise<Added>
  /**
   * Adds many jobs: atomically if they fit into one request (5,000 jobs and 4 MB), otherwise in several. Then an error
   * has the jobs that were added before it as `added`; adding them again has no effect if they have ids.
   */
  enqueueMany(type: string, jobs: NewJob[]): Promise<Added[]>
  /** Writes documents and jobs atomically. */
  transact(changes: Changes): Promise<TransactAnswer>
  get<Data = unknown>(type: string, id: string): Promise<JobInfo<Data>>
  /**
   * The jobs of a type, by id, or those in a state: pending ones in queue order, running ones by id, others in the order of
   * their ends. From `startId` on; `descending` reverses the order. `for await (const job of divan.list('letter'))`.
   */
  list<Data = unknown>(
    type: string,
    options?: { state?: State; startId?: string; descending?: boolean }
  ): AsyncGenerator<JobInfo<Data>>
  /**
   * Resolves when the job has ended, with the result of get(). Rejects with status 404 if the job does not exist or is
   * removed, and with the code ETIMEDOUT after `timeout` milliseconds. A periodic job ends only if it is cancelled.
   */
  wait<Data = unknown>(type: string, id: string, options?: { timeout?: number; signal?: AbortSignal }): Promise<JobInfo<Data>>
  /**
   * Resolves when `count` (all) of up to 1,000 jobs are in one of `states` (finished, failed, cancelled), or after `timeout`
   * milliseconds: with the state of each, in the same order. A missing job is `not_found`, and counts.
   */
  waitForMany(
    jobs: { type: string; id: string }[],
    options?: { count?: number; states?: State[]; timeout?: number; signal?: AbortSignal }
  ): Promise<{ type: string; id: string; state: State | 'not_found'; reached: boolean }[]>
  /** Runs the job again, with its data unless new data is given; a running job runs again afterwards. */
  resubmit(type: string, id: string, options?: { data?: unknown; scheduledAt?: Date | number }): Promise<void>
  counts(type: string): Promise<Record<State, number>>
  /** Cancels a pending job; the handler of a running one gets its signal. */
  cancel(type: string, id: string): Promise<void>
  /** Removes a job; the handler of a running one gets its signal. */
  remove(type: string, id: string): Promise<void>
  worker(options: WorkerOptions): Worker
  /** Closes idle connections. */
  close(): void
}
