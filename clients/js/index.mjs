// Divan's jobs and workers for Node.js. README.md shows how; index.d.ts documents the API.
export { Divan } from './lib/divan.mjs'
export { DivanError } from './lib/transport.mjs'
export { JobAborted, JobFailure, JobResult, JobSnooze } from './lib/run.mjs'
export { Worker } from './lib/worker.mjs'
