// The client for applications that add, read, wait for and remove jobs.
import { randomUUID } from 'node:crypto'
import { DivanError, Transport } from './transport.mjs'
import { changes, newJob, pieces, time } from './wire.mjs'
import { Worker } from './worker.mjs'

const LISTED = 1_000 // the server's limit
const POLL_MS = 60_000
const ENDED = ['finished', 'failed', 'cancelled']

export class Divan {
  #transport
  #url

  constructor(url) {
    this.#url = url
    this.#transport = new Transport(url)
  }

  #request(method, path, body) {
    return this.#transport.request(method, path, body, { again: method !== 'POST' })
  }
  #job(type, id) {
    return `/_jobs/${encodeURIComponent(type)}/${encodeURIComponent(id)}`
  }

  async declare(type, settings = {}) {
    await this.#request('PUT', `/_jobs/${encodeURIComponent(type)}`, settings)
  }

  async enqueue(type, id, data, options = {}) {
    // With an id chosen here the request can be repeated: adding the same job again has no effect.
    const { id: _, ...body } = newJob({ data, ...options })
    const added = await this.#request('PUT', this.#job(type, id ?? randomUUID()), body)
    return { id: added.id, created: added.created }
  }

  async enqueueMany(type, jobs) {
    // With ids chosen here, jobs that were added before an error can be added again.
    const all = jobs.map((job) => ({ ...newJob(job), id: job.id ?? randomUUID() }))
    const ids = new Set()
    for (const { id } of all) {
      if (ids.has(id)) throw new TypeError(`job ${id} is given twice`)
      ids.add(id)
    }
    const added = []
    try {
      for (const piece of pieces(all)) await this.#enqueuePiece(type, piece, added)
    } catch (error) {
      if (added.length > 0) error.added = added
      throw error
    }
    return added
  }

  async #enqueuePiece(type, piece, added) {
    try {
      const answers = await this.#request('POST', `/_jobs/${encodeURIComponent(type)}/_bulk`, `{"jobs":[${piece}]}`)
      for (const { id, created } of answers) added.push({ id, created })
    } catch (error) {
      if (error.status !== 413 || piece.length === 1) throw error
      const middle = piece.length >> 1
      await this.#enqueuePiece(type, piece.slice(0, middle), added)
      await this.#enqueuePiece(type, piece.slice(middle), added)
    }
  }

  transact(given) {
    return this.#request('POST', '/_transact', changes(given))
  }

  get(type, id) {
    return this.#request('GET', this.#job(type, id))
  }
  /** Page by page. */
  async *list(type, { state, startId, descending = false } = {}) {
    const query = new URLSearchParams({ limit: LISTED, descending })
    if (state) query.set('state', state)
    if (startId) query.set('start_id', JSON.stringify(startId))
    for (;;) {
      const { jobs, next } = await this.#request('GET', `/_jobs/${encodeURIComponent(type)}/_list?${query}`)
      yield* jobs
      if (next === undefined) return
      query.delete('start_id')
      query.set('start', next)
    }
  }
  async wait(type, id, { timeout = Infinity, signal } = {}) {
    const deadline = Date.now() + timeout
    for (let since = ''; ; ) {
      const poll = Math.max(0, Math.min(POLL_MS, deadline - Date.now()))
      const query = new URLSearchParams({ feed: 'longpoll', timeout: Math.ceil(poll), since })
      const options = { poll: true, timeout: poll + 30_000, signal, again: true }
      const { results, last_seq } = await this.#transport.request('GET', `${this.#job(type, id)}?${query}`, undefined, options)
      const { state } = results.at(-1) ?? {}
      if (state === 'not_found') throw new DivanError(404, 'not_found', 'The job was removed.')
      // Read it again to include its attempts.
      if (ENDED.includes(state)) return this.get(type, id)
      since = last_seq
      if (Date.now() >= deadline) throw Object.assign(new Error(`job ${id} has not ended in ${timeout} ms`), { code: 'ETIMEDOUT' })
    }
  }
  async waitForMany(jobs, { count = jobs.length, states, timeout = Infinity, signal } = {}) {
    const deadline = Date.now() + timeout
    for (;;) {
      const poll = Math.ceil(Math.max(0, Math.min(POLL_MS, deadline - Date.now())))
      const options = { poll: true, timeout: poll + 30_000, signal, again: true }
      const named = jobs.map(({ type, id }) => ({ type, id }))
      const answer = await this.#transport.request('POST', '/_jobs/_wait', { jobs: named, count, states, timeout: poll }, options)
      if (answer.reached >= count || Date.now() >= deadline) return answer.jobs
    }
  }
  async resubmit(type, id, { data, scheduledAt } = {}) {
    await this.#request('POST', `${this.#job(type, id)}/_resubmit`, { data, scheduled_at: time(scheduledAt) })
  }
  async counts(type) {
    return (await this.#request('GET', `/_jobs/${encodeURIComponent(type)}`)).counts
  }
  async cancel(type, id) {
    await this.#request('POST', `${this.#job(type, id)}/_cancel`)
  }
  async remove(type, id) {
    await this.#request('DELETE', this.#job(type, id))
  }

  worker(options) {
    return new Worker(this.#url, options)
  }
  close() {
    this.#transport.close()
  }
}
