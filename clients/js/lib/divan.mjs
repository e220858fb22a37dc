// What everybody does with jobs who does not run them: adds them, looks at them, takes them away.
import { randomUUID } from 'node:crypto'
import { Transport } from './transport.mjs'
import { changes, newJob } from './wire.mjs'
import { Worker } from './worker.mjs'

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
    // With an id of ours a lost answer does no harm: adding the same again changes nothing.
    const { id: _, ...body } = newJob({ data, ...options })
    const added = await this.#request('PUT', this.#job(type, id ?? randomUUID()), body)
    return { id: added.id, created: added.created }
  }

  async enqueueMany(type, jobs) {
    const added = await this.#request('POST', `/_jobs/${encodeURIComponent(type)}/_bulk`, { jobs: jobs.map(newJob) })
    return added.map(({ id, created }) => ({ id, created }))
  }

  transact(given) {
    return this.#request('POST', '/_transact', changes(given))
  }

  get(type, id) {
    return this.#request('GET', this.#job(type, id))
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
