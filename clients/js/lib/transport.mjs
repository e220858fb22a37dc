// Requests to one server. Node's own http with keep-alive: fetch costs a worker several times as much.
import http from 'node:http'
import https from 'node:https'

// Below the server's own limit of two minutes, so that no request meets a connection that is being closed.
const IDLE_MS = 30_000
const CALLS_AT_ONCE = 8

/** What the server answers when it refuses: an HTTP status, and CouchDB's error and reason. */
export class DivanError extends Error {
  constructor(status, error, reason) {
    super(`${error}: ${reason}`)
    this.name = 'DivanError'
    this.status = status
    this.error = error
    this.reason = reason
  }
}

/** Whether the server does not know us, or does not let us. */
export const isRefused = (error) => error.status === 401 || error.status === 403

function parseError(status, text) {
  let body = {}
  try {
    body = JSON.parse(text)
  } catch {
    // Whatever stands between us and the server answers in its own words.
  }
  return new DivanError(status, body.error ?? 'http_error', body.reason ?? `HTTP status ${status}`)
}

function parseLine(line) {
  try {
    return JSON.parse(line) ?? {}
  } catch {
    return {}
  }
}

export class Transport {
  #calls
  #polls
  #base
  #authorization
  #send

  constructor(url) {
    const { protocol, hostname, port, pathname, username, password } = new URL(url)
    const { Agent, request } = { 'http:': http, 'https:': https }[protocol] ?? fail(`no address of a server: ${url}`)
    this.#send = request
    this.#base = { hostname: hostname.replace(/^\[|\]$/g, ''), port: port || undefined, prefix: pathname.replace(/\/$/, '') }
    if (username) {
      const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
      this.#authorization = 'Basic ' + Buffer.from(credentials).toString('base64')
    }
    this.#calls = new Agent({ keepAlive: true, maxSockets: CALLS_AT_ONCE, timeout: IDLE_MS })
    this.#polls = new Agent({ keepAlive: true, timeout: IDLE_MS })
  }

  /**
   * The parsed answer; throws DivanError for any status but 2xx, and the system's error when none came.
   * `timeout`: how long the server may be silent. `again`: the request may be sent twice. `poll`: it waits.
   */
  request(method, path, body, { timeout = 30_000, signal, again = false, poll = false } = {}) {
    return new Promise((resolve, reject) => {
      const request = this.#open(method, path, body, { timeout, signal, agent: poll ? this.#polls : this.#calls })
      request.on('response', (response) => {
        const chunks = []
        response.on('data', (chunk) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          if (response.statusCode >= 300) return reject(parseError(response.statusCode, text))
          try {
            resolve(text ? JSON.parse(text) : undefined)
          } catch (error) {
            reject(error)
          }
        })
      })
      request.on('error', (error) => {
        // The server closed a connection that was idle just as we took it.
        if (again && request.reusedSocket && error.code === 'ECONNRESET') {
          resolve(this.request(method, path, body, { timeout, signal, poll }))
        } else {
          reject(error)
        }
      })
    })
  }

  /**
   * An answer that stays open, on a connection of its own, of lines of JSON: {first: its first line, closed, close()}.
   * `closed` resolves when it ends, with the error that it ends with, or {}.
   */
  hold(path, body, { timeout, signal }) {
    return new Promise((resolve, reject) => {
      const request = this.#open('POST', path, body, { agent: false, signal })
      const late = setTimeout(() => request.destroy(new Error('no answer to a registration')), timeout)
      let ended
      const closed = new Promise((resolve) => (ended = resolve))
      request.on('close', () => {
        clearTimeout(late)
        ended({})
        reject(new Error('the connection was closed'))
      })
      request.on('error', reject)
      request.on('response', (response) => {
        let text = ''
        let first
        response.setEncoding('utf8')
        response.on('error', () => ended({}))
        response.on('data', (piece) => {
          text += piece
          if (response.statusCode !== 200) return
          const lines = text.split('\n')
          text = lines.pop()
          for (const line of lines) {
            if (!line) continue // the server's sign of life
            const said = parseLine(line)
            if (said.error) ended(said)
            if (first) continue
            first = said
            clearTimeout(late)
            resolve({ first, closed, close: () => request.destroy() })
          }
        })
        response.on('end', () => {
          if (response.statusCode !== 200) reject(parseError(response.statusCode, text))
          ended({})
          request.destroy()
        })
      })
    })
  }

  #open(method, path, body, options) {
    const { prefix, ...base } = this.#base
    const bytes = body === undefined ? undefined : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    const headers = { Accept: 'application/json' }
    if (this.#authorization) headers.Authorization = this.#authorization
    if (bytes || method === 'POST') headers['Content-Type'] = 'application/json'
    if (bytes) headers['Content-Length'] = bytes.length
    const request = this.#send({ ...base, method, path: prefix + path, headers, ...options })
    request.on('timeout', () => request.destroy(Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })))
    request.end(bytes)
    return request
  }

  close() {
    this.#calls.destroy()
    this.#polls.destroy()
  }
}

function fail(reason) {
  throw new TypeError(reason)
}
