// A small HTTP client that sends exactly the given bytes: paths and queries are not normalised.
import http from 'node:http'
import { within } from './wait.mjs'

/** A complete response. */
export class Answer {
  constructor(status, headers, text) {
    this.status = status
    this.headers = headers
    this.text = text
  }
  get json() {
    try {
      return JSON.parse(this.text)
    } catch {
      throw new Error(`status ${this.status}, and the body is not JSON: ${this.text.slice(0, 500)}`)
    }
  }
}

/** A streamed response: the rows of a feed. */
export class Stream {
  #lines = []
  #rest = ''
  #wake = () => {}
  /** Everything received so far. */
  text = ''
  /** 'end' when the response is complete, 'cut' when the connection was lost before. */
  over = undefined
  /** Called with each row that row() and event() return. */
  checkRow = () => {}

  constructor(request, response) {
    this.request = request
    this.response = response
    this.status = response.statusCode
    this.headers = response.headers
    response.setEncoding('utf8')
    response.on('data', (text) => this.#take(text))
    response.on('end', () => this.#finish('end'))
    response.on('aborted', () => this.#finish('cut'))
    response.on('error', () => this.#finish('cut'))
  }

  #take(text) {
    this.text += text
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop()
    this.#lines.push(...lines)
    this.#wake()
  }
  #finish(how) {
    this.over ??= how
    if (this.#rest) this.#lines.push(this.#rest)
    this.#rest = ''
    this.#wake()
  }

  /** The next line without its end; undefined at the end of the response. */
  async line(what = 'a line of a feed') {
    while (this.#lines.length === 0) {
      if (this.over) return undefined
      await within(what, new Promise((resolve) => (this.#wake = resolve)))
    }
    return this.#lines.shift()
  }
  /** The next `count` lines. */
  async lines(count) {
    const lines = []
    while (lines.length < count) lines.push(await this.line())
    return lines
  }
  /** The next line that is not empty (empty ones are heartbeats), parsed. */
  async row(what = 'a row of a feed') {
    for (;;) {
      const line = await this.line(what)
      if (line === undefined) return undefined
      if (line.trim() === '') continue
      const row = JSON.parse(line)
      this.checkRow(row)
      return row
    }
  }
  /** The next server-sent event: {data, id, event}. */
  async event(what = 'an event of a feed') {
    const event = {}
    for (;;) {
      const line = await this.line(what)
      if (line === undefined) return undefined
      if (line === '') {
        if (event.data) this.checkRow(JSON.parse(event.data))
        if (Object.keys(event).length > 0) return event
        continue
      }
      const [, name, value] = /^([a-z]*): ?(.*)$/.exec(line) ?? []
      if (name === undefined) throw new Error(`malformed line of an event stream: ${line}`)
      event[name] = value
    }
  }
  /** The next server-sent event of a name; undefined is that of data without one. */
  async eventOf(name) {
    for (;;) {
      const event = await this.event()
      if (event === undefined || event.event === name) return event
    }
  }
  /** Waits for the end of the response and returns 'end' or 'cut'. */
  async ended(what = 'the end of a feed') {
    while (!this.over) {
      await within(what, new Promise((resolve) => (this.#wake = resolve)))
    }
    return this.over
  }
  close() {
    this.request.destroy()
  }
}

/** Requests to one server, as one user. */
export class Client {
  #agent = new http.Agent({ keepAlive: true, maxSockets: 64 })

  /** `checkExchange` throws if a request or its response is wrong: see openapi.mjs. */
  constructor(url, credentials, checkExchange = () => () => {}) {
    const { hostname, port } = new URL(url)
    this.hostname = hostname
    this.port = Number(port)
    this.credentials = credentials
    this.checkExchange = checkExchange
  }

  #options(method, target, headers, agent) {
    const all = { ...headers }
    const has = (name) => Object.keys(all).some((key) => key.toLowerCase() === name)
    if (this.credentials && !has('authorization')) {
      all.Authorization = 'Basic ' + Buffer.from(this.credentials).toString('base64')
    }
    for (const [name, value] of Object.entries(all)) if (value === undefined) delete all[name]
    return { host: this.hostname, port: this.port, method, path: target, headers: all, agent }
  }

  /** `body`: text, bytes, or anything else as JSON. Undefined headers are omitted. */
  async request(method, target, { body, headers = {} } = {}) {
    const raw = body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
    const bytes = body === undefined ? undefined : Buffer.from(raw ? body : JSON.stringify(body))
    const all = { ...headers }
    if (bytes) {
      if (!('Content-Type' in all)) all['Content-Type'] = 'application/json'
      all['Content-Length'] = bytes.length
    } else if (method === 'POST' && !('Content-Type' in all)) {
      all['Content-Type'] = 'application/json'
    }
    const answer = new Promise((resolve, reject) => {
      const request = http.request(this.#options(method, target, all, this.#agent), (response) => {
        const chunks = []
        response.on('data', (chunk) => chunks.push(chunk))
        response.on('end', () =>
          resolve(new Answer(response.statusCode, response.headers, Buffer.concat(chunks).toString()))
        )
        response.on('error', reject)
      })
      request.on('error', reject)
      request.end(bytes)
    })
    const { status, headers: received, text } = await within(`the answer to ${method} ${target}`, answer)
    this.checkExchange({ method, target, requestHeaders: all, body: bytes, status, headers: received, text })
    return answer
  }

  get(target, options) {
    return this.request('GET', target, options)
  }
  put(target, body, options) {
    return this.request('PUT', target, { ...options, body })
  }
  post(target, body, options) {
    return this.request('POST', target, { ...options, body })
  }
  delete(target, options) {
    return this.request('DELETE', target, options)
  }

  /** Like request(), but throws unless the status is 2xx; returns the parsed body. */
  async ok(method, target, body) {
    const answer = await this.request(method, target, { body })
    if (answer.status >= 300) throw new Error(`${method} ${target}: ${answer.status} ${answer.text}`)
    return answer.json
  }

  /** Opens a streamed response on its own connection; resolves with its head. */
  async open(target, { method = 'GET', body, headers = {} } = {}) {
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    const all = { ...headers }
    if (bytes) Object.assign(all, { 'Content-Type': 'application/json', 'Content-Length': bytes.length })
    const stream = new Promise((resolve, reject) => {
      const agent = new http.Agent({ keepAlive: false })
      const request = http.request(this.#options(method, target, all, agent), (response) =>
        resolve(new Stream(request, response))
      )
      request.on('error', reject)
      request.end(bytes)
    })
    const opened = await within(`the head of the answer to ${method} ${target}`, stream)
    const { status, headers: received } = opened
    opened.checkRow = this.checkExchange({ method, target, requestHeaders: all, body: bytes, status, headers: received })
    return opened
  }

  close() {
    this.#agent.destroy()
  }
}
