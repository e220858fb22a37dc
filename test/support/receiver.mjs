// A receiver of webhooks: a real HTTP server of a test's own, which records requests and misbehaves as the test says.
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import { pause, waitFor } from './wait.mjs'

// Replies that are not a complete response, for Receiver.answer: functions of the http.ServerResponse.
/** Never responds. */
export const hang = () => {}
/** Closes the connection instead of a response. */
export const closeEarly = (response) => void response.socket.destroy()
/** Closes the connection in the middle of a response with status 200. */
export const halfResponse = (response) => {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 1000 })
  response.write('{"half":', () => response.socket?.destroy())
}
/** A response with status 200 that never ends, a few bytes at a time. */
export const drip = (response) => {
  response.writeHead(200, { 'Content-Type': 'application/json' })
  const timer = setInterval(() => response.write(' '), 20)
  response.on('close', () => clearInterval(timer))
}
const FAULTS = [hang, closeEarly, halfResponse, drip]

/** Responds after a while. */
export const late = async (ms, reply = 200) => {
  await pause(ms)
  return reply
}
/** A redirect. */
export const redirect = (location, status = 307) => ({ status, headers: { Location: location } })

/** Something that is closed until open() is called: `passed` is a promise of that. */
export function newGate() {
  let open
  const passed = new Promise((resolve) => (open = resolve))
  return { passed, open }
}

export class Receiver {
  /** What has been received completely, in order: {method, url, headers, body, at}; `headers` has lower-case names, `at` is Date.now(). */
  requests = []
  /** Requests that have begun and whose connection or response has not ended: now, and the most so far. */
  open = 0
  mostOpen = 0
  /** Connections so far. */
  connections = 0
  #server
  #protocol
  #sessions = [] // of HTTP/2

  /** `address` and `port` to listen on; `tls`: {cert, key}, with which it uses HTTPS, and HTTP/2 if `speaksHttp2`; `answer`: see below. */
  static async start({ address = '127.0.0.1', port = 0, tls, speaksHttp2, answer = 200 } = {}) {
    const receiver = new Receiver()
    receiver.answer = answer
    receiver.#protocol = tls ? 'https' : 'http'
    const take = (request, response) => void receiver.#take(request, response)
    receiver.#server = speaksHttp2 ? http2.createSecureServer(tls, take) : tls ? https.createServer(tls, take) : http.createServer(take)
    receiver.#server.on(tls ? 'secureConnection' : 'connection', () => ++receiver.connections)
    // A connection that ends while it is reused would be a failure that the test has not asked for.
    receiver.#server.keepAliveTimeout = 0
    receiver.#server.on('session', (session) => receiver.#sessions.push(session))
    await new Promise((resolve, reject) => receiver.#server.on('error', reject).listen(port, address, resolve))
    receiver.port = receiver.#server.address().port
    return receiver
  }

  /**
   * What requests are answered with: a status, {status, headers, body}, or one of `hang`, `closeEarly`, `halfResponse` and `drip`; or a
   * function (request, count) that returns one of these or a promise of one. `count` is the number of requests for the same job so far,
   * with this one.
   */
  set answer(answer) {
    this.#answer = typeof answer === 'function' && !FAULTS.includes(answer) ? answer : () => answer
  }
  #answer

  /** The URL of a path, by the address or by another name of this machine. */
  url(path = '/', host = '127.0.0.1') {
    return `${this.#protocol}://${host}:${this.port}${path}`
  }

  /** The requests of a job. */
  of(type, id) {
    return this.requests.filter(({ headers }) => headers['divan-type'] === type && decodeURIComponent(headers['divan-id']) === id)
  }

  /** Waits until at least so many requests have been received, and returns them all. */
  async received(count = 1) {
    await waitFor(`${count} requests`, () => this.requests.length >= count)
    return this.requests
  }

  async stop() {
    const ended = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections?.()
    for (const session of this.#sessions) session.destroy()
    await ended
  }

  async #take(request, response) {
    this.mostOpen = Math.max(this.mostOpen, ++this.open)
    response.on('close', () => --this.open)
    response.on('error', () => {})
    const chunks = []
    try {
      for await (const chunk of request) chunks.push(chunk)
    } catch {
      return // the server has closed the connection
    }
    const { method, url, headers } = request
    const record = { method, url, headers, body: Buffer.concat(chunks).toString(), at: Date.now() }
    this.requests.push(record)
    const isSameJob = ({ headers: other }) => ['divan-type', 'divan-id'].every((name) => other[name] === headers[name])
    const count = this.requests.filter(isSameJob).length
    const reply = await this.#answer(record, count)
    if (response.destroyed) return
    if (typeof reply === 'function') return void reply(response)
    const { status, headers: fields = {}, body = '' } = typeof reply === 'number' ? { status: reply } : reply
    response.writeHead(status, fields).end(body)
  }
}
