// Divan's jobs and workers for Node.js. README.md shows how.
import { EventEmitter } from 'node:events'

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/**
 * What the server answers when it refuses. Without an answer the error is another, with a `code`: ECONNREFUSED,
 * ECONNRESET, ETIMEDOUT, or one more of Node's or undici's.
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
   * `cancel`: somebody asks the job to stop; it may still finish. `halt`: the job is not this attempt's any more, and
   * what the handler answers is dropped. `stop`: the worker stops, and has given the job back.
   */
  readonly code: 'cancel' | 'halt' | 'stop'
  constructor(code: 'cancel' | 'halt' | 'stop', message: string)
}

/**
 * What a handler throws to say more than that it failed: with `retry: false` the job is failed for good; with a `delay` it
 * runs again after so many milliseconds, in place of the type's backoff.
 */
export class JobFailure extends Error {
  readonly name: 'JobFailure'
  readonly retry?: boolean
  readonly delay?: number
  constructor(message: string, options?: { retry?: boolean; delay?: number; cause?: unknown })
}

/** What a handler throws to give its job back, which is no failure: it runs again after `delay` milliseconds. */
export class JobSnooze extends Error {
  readonly name: 'JobSnooze'
  readonly delay: number
  constructor(delay: number)
}

/**
 * What a handler returns to change its job's data beside its result: a resubmit, or the next occurrence of a periodic job,
 * runs with them.
 */
export class JobResult<Result = unknown, Data = unknown> {
  readonly result: Result
  readonly data?: Data
  constructor(result: Result, options?: { data?: Data })
}

/** Settings of a type; what is left out stays as it is. Times are in milliseconds, as everywhere in this kit. */
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

/** A job with a schedule is pending again, for the next tick, when it has finished or failed for good. */
export interface Schedule {
  /** Five fields as in crontab(5), or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. */
  cron: string
  /** A name of the tz database, as `Europe/Berlin`; UTC without it. */
  timeZone?: string
  /** What nobody has begun when the next is due runs once for all that were missed (`once`, without it), or not (`skip`). */
  missed?: 'once' | 'skip'
}

export interface JobOptions {
  /** Not before then: a date, or milliseconds since 1970. */
  scheduledAt?: Date | number
  /** Lower runs first; 0 without it. */
  priority?: number
  /** Again and again; not together with `scheduledAt`. A job that is there with the same schedule keeps its time. */
  schedule?: Schedule
  /** The trace that the job belongs to (W3C Trace Context); its data, an object then, have it as a member. */
  traceparent?: string
  /** Its own limits, in place of its type's. */
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
  /** Unique in its type; without one the job gets one. */
  id?: string
  data?: Data
}

export interface Added {
  id: string
  /** false: a job of that id was there. It runs with the new data, again if need be. */
  created: boolean
}

export type State = 'pending' | 'running' | 'finished' | 'failed' | 'cancelled'

/** One of the attempts at a job as the server shows it. What has not ended has no `ended_at` and no `outcome`. */
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
  /** The time that it was given, or the tick that a periodic job waits for, runs for or is tried again for. */
  scheduled_at: number
  /** When a pending one runs. */
  due_at?: number
  schedule?: { cron: string; time_zone: string; missed: 'once' | 'skip' }
  attempt: number
  failures: number
  epoch: number
  data: Data
  /** What its last run finished with. */
  result?: Json
  worker?: { role: string; id: string }
  progress?: Json
  last_error?: string
  /** The last 20 attempts and the present one, the oldest first. */
  history: Attempt[]
  [other: string]: unknown
}

/** Documents and jobs that are written together or not at all. */
export interface Changes {
  /** Documents by database. One that is there needs its `_rev`; one in conflict fails the whole with status 409. */
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

/** An attempt at a job, as its handler gets it. */
export interface Job<Data = any, Result = any> {
  readonly type: string
  readonly id: string
  readonly data: Data
  /** The `traceparent` in its data, if there is a well-formed one. */
  readonly traceparent?: string
  /** How often the job was accepted and not released: 1 the first time. */
  readonly attempt: number
  /** Grows with every attempt: whatever is changed outside of Divan can refuse an older one (a fencing token). */
  readonly epoch: number
  readonly lock: string
  /** Fires when the handler is to stop; its reason is a JobAborted. */
  readonly signal: AbortSignal
  /**
   * Says how far the job is, or changes its data. Throws JobAborted when the job is not ours any more. The answer's
   * `resubmit` says that it will run again afterwards.
   */
  update(change?: { progress?: Json; data?: Data }): Promise<{ cancel: boolean; resubmit: boolean }>
  /**
   * Finishes the job in one transaction with other changes, so that these happen exactly once, however often the job
   * is run. What the handler returns afterwards is ignored.
   */
  transact(changes: Changes, result?: Result | JobResult<Result, Data>): Promise<TransactAnswer>
}

/** Returns the job's result, or a JobResult; a throw is a failed attempt. */
export type Handler<Data = any, Result = any> = (
  job: Job<Data, Result>
) => Promise<Result | JobResult<Result, Data>> | Result | JobResult<Result, Data>

/** Runs around handlers: `next()` runs the next hook or the handler, and resolves or rejects as that does. */
export type Hook = (job: Job, next: () => Promise<unknown>) => Promise<unknown> | unknown

export interface WorkerOptions {
  /** What the worker is: workers of one role are listed together. */
  role: string
  /** Unique in the role; host name, process and chance without it. */
  id?: string
  /** Shown with the worker. */
  opts?: { [name: string]: Json }
  /** How long the worker may be frozen or cut off until others get its jobs, in milliseconds (15,000). */
  timeout?: number
  /** How often the server is asked whether running jobs were cancelled, in milliseconds (1,000). */
  checkInterval?: number
  /** How long one request waits for jobs, in milliseconds (30,000). */
  pollTimeout?: number
  /**
   * Pauses between attempts to reach the server, in milliseconds (100 to 30,000; doubled each time, and jittered). Never
   * longer than half the timeout, so that the worker is back in time.
   */
  backoff?: { min?: number; max?: number }
}

export interface WorkerEvents {
  /** The worker is registered: at first, and whenever it is again. */
  online: []
  /** The server cannot be reached, or does not know the worker any more; it tries again. */
  offline: [error: Error]
  /** A job is not ours any more: its handler's answer is dropped. */
  halt: [job: Job, reason: JobAborted]
  /** A handler threw. */
  fail: [job: Job, error: unknown]
}

export interface Worker {
  on<Name extends keyof WorkerEvents>(name: Name, listener: (...args: WorkerEvents[Name]) => void): this
  once<Name extends keyof WorkerEvents>(name: Name, listener: (...args: WorkerEvents[Name]) => void): this
  off<Name extends keyof WorkerEvents>(name: Name, listener: (...args: WorkerEvents[Name]) => void): this
}
export class Worker extends EventEmitter {
  private constructor()
  readonly role: string
  readonly id: string
  /**
   * Runs up to `concurrency` (1) jobs at once with this handler: those of one type, or of up to 100 types, whose jobs are
   * then one queue, in the order of priority, time and age. Before run().
   */
  handle<Data = any, Result = any>(
    types: string | string[],
    handler: Handler<Data, Result>,
    options?: { concurrency?: number }
  ): this
  /**
   * Adds a hook around the handlers of all types; the first one added is the outermost. What it returns is taken for the
   * handler's result, and what it throws for the handler's failure. Before run().
   */
  use(hook: Hook): this
  /**
   * Works until stop() has done. Throws what trying again would not cure: DivanError with `error` no_such_job_type
   * (the type is not declared) or status 401 or 403.
   */
  run(): Promise<void>
  /**
   * Accepts no more jobs and waits for those that run. Those that take longer than `timeout` (30,000 ms) get their
   * signal and are given back, to run elsewhere at once.
   */
  stop(options?: { timeout?: number }): Promise<void>
}

/** One server, as one user. */
export class Divan {
  /** `url`: "http://name:password@host:port". */
  constructor(url: string)
  /** Declares a type of jobs, or changes its settings. */
  declare(type: string, settings?: TypeSettings): Promise<void>
  /** Adds a job, which runs once, or by its schedule; without an id (null) it gets one. */
  enqueue(type: string, id: string | null | undefined, data?: unknown, options?: JobOptions): Promise<Added>
  /**
   * Adds many jobs: all of them or none if they fit into one request (5,000 jobs and 4 MB), otherwise in several. Then an
   * error has those that were added before it as `added`; adding all again changes nothing for them, if they have ids.
   */
  enqueueMany(type: string, jobs: NewJob[]): Promise<Added[]>
  /** Documents and jobs, all or nothing. */
  transact(changes: Changes): Promise<TransactAnswer>
  get<Data = unknown>(type: string, id: string): Promise<JobInfo<Data>>
  /**
   * The jobs of a type, by id, or those in a state: pending ones as they run, running ones by id, others as they ended. From
   * `startId` on; `descending`: the other way round. `for await (const job of divan.list('letter'))`.
   */
  list<Data = unknown>(
    type: string,
    options?: { state?: State; startId?: string; descending?: boolean }
  ): AsyncGenerator<JobInfo<Data>>
  /**
   * Resolves when the job has ended, with what get() shows then. Rejects with status 404 if there is no such job, or not
   * any more, and with the code ETIMEDOUT after `timeout` milliseconds. A periodic job ends only if it is cancelled.
   */
  wait<Data = unknown>(type: string, id: string, options?: { timeout?: number; signal?: AbortSignal }): Promise<JobInfo<Data>>
  /**
   * Resolves when `count` (all) of up to 1,000 jobs are in one of `states` (finished, failed, cancelled), or after `timeout`
   * milliseconds: with the state of each, in the same order. A job that is not there is `not_found`, and counts.
   */
  waitForMany(
    jobs: { type: string; id: string }[],
    options?: { count?: number; states?: State[]; timeout?: number; signal?: AbortSignal }
  ): Promise<{ type: string; id: string; state: State | 'not_found'; reached: boolean }[]>
  /** The job runs again, with the data that it has unless others are given; if it is running, once more afterwards. */
  resubmit(type: string, id: string, options?: { data?: unknown; scheduledAt?: Date | number }): Promise<void>
  counts(type: string): Promise<Record<State, number>>
  /** A pending job is cancelled, the handler of a running one gets its signal. */
  cancel(type: string, id: string): Promise<void>
  /** Removes every trace of a job; the handler of a running one gets its signal. */
  remove(type: string, id: string): Promise<void>
  worker(options: WorkerOptions): Worker
  /** Closes idle connections. */
  close(): void
}
