// Sends requests to one server with undici: Node's http takes twice as long, and fetch several times as long.
import { Connection, Connections } from './connections.mjs'

const CALLS_AT_ONCE = 8

/** An error response of the server: an HTTP status, and CouchDB's error and reason. */
export class DivanError extends Error {
  constructor(status, error, reason) {
    super(`${error}: ${reason}`)
    this.name = 'DivanError'
    this.status = status
    this.error = error
    this.reason = reason
  }
}

/** Whether authentication or authorization failed. */
export const isRefused = (error) => error.status === 401 || error.status === 403

// A gateway may send a body of another form.
function parseObject(text) {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

function parseError(status, text) {
  const body = parseObject(text)
  return new DivanError(status, body.error ?? 'http_error', body.reason ?? `HTTP status ${status}`)
}

// Errors do not contain the URL, which may have a password.
function parseUrl(url) {
  const parsed = URL.canParse(url) ? new URL(url) : {}
  if (parsed.protocol === 'http:' || parsed.protocol === 'https:') return parsed
  throw new TypeError('the URL of the server is malformed; expected http://NAME:PASSWORD@HOST:PORT')
}

export class Transport {
  #calls
  #polls
  #origin
  #prefix
  #headers
  #headersOfBody

  constructor(url) {
    const { protocol, origin, pathname, username, password } = parseUrl(url)
    this.#origin = origin
    this.#prefix = pathname.replace(/\/$/, '')
    this.#headers = ['Accept', 'application/json']
    if (username) {
      const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
      this.#headers.push('Authorization', 'Basic ' + Buffer.from(credentials).toString('base64'))
    }
    this.#headersOfBody = [...this.#headers, 'Content-Type', 'application/json']
    this.#calls = new Connections(origin, CALLS_AT_ONCE)
    this.#polls = new Connections(origin)
  }

  /**
   * Resolves to the parsed response; throws DivanError for a status other than 2xx, and the system's error without a response.
   * `timeout`: milliseconds without a byte from the server. `again`: the request may be repeated. `poll`: it is a long poll.
   */
  request(method, path, body, { timeout = 30_000, signal, again = false, poll = false } = {}) {
    const options = this.#options(method, path, body, timeout)
    const connections = poll ? this.#polls : this.#calls
    return new Promise((resolve, reject) => {
      connections.acquire((connection) => exchange(connections, connection, options, { signal, again, resolve, reject }))
    })
  }

  /**
   * Opens a streamed response of JSON lines on a connection of its own: {first: its first line, closed, close()}.
   * `closed` resolves when it ends, with the error that it ends with, or {}. `heard` is called with each later line.
   */
  hold(path, body, { timeout, signal, heard }) {
    return new Promise((resolve, reject) => {
      const connection = new Connection(this.#origin)
      const close = () => connection.destroy()
      const late = setTimeout(() => connection.destroy(new Error('the registration timed out')), timeout)
      let ended
      const closed = new Promise((resolve) => (ended = resolve))
      const over = (error) => {
        clearTimeout(late)
        signal.removeEventListener('abort', close)
        ended({})
        reject(error)
        close()
      }
      const text = new TextDecoder()
      let rest = ''
      let first
      signal.addEventListener('abort', close)
      connection.send(this.#options('POST', path, body, 0), {
        data(status, bytes) {
          rest += text.decode(bytes, { stream: true })
          if (status !== 200) return
          const lines = rest.split('\n')
          rest = lines.pop()
          for (const line of lines) {
            if (!line) continue // keep-alive
            const said = parseObject(line)
            if (said.error) ended(said)
            else if (first) heard(said)
            if (first) continue
            first = said
            clearTimeout(late)
            resolve({ first, closed, close })
          }
        },
        end: (status) => over(status === 200 ? new Error('the connection was closed') : parseError(status, rest)),
        failed: over
      })
      if (signal.aborted) close()
    })
  }

  #options(method, path, body, timeout) {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    return {
      method,
      path: this.#prefix + path,
      headers: text !== undefined || method === 'POST' ? this.#headersOfBody : this.#headers,
      body: text,
      headersTimeout: timeout,
      bodyTimeout: timeout
    }
  }

  /** Closes the connections that are idle. */
  close() {
    this.#calls.closeIdle()
    this.#polls.closeIdle()
  }
}

function exchange(connections, connection, options, { signal, again, resolve, reject }) {
  const { used } = connection
  const abort = () => connection.destroy(signal.reason)
  const pieces = []
  signal?.addEventListener('abort', abort)
  connection.send(options, {
    data: (status, bytes) => pieces.push(bytes),
    end(status) {
      signal?.removeEventListener('abort', abort)
      connections.release(connection)
      const text = (pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)).toString()
      if (status >= 300) return reject(parseError(status, text))
      try {
        resolve(text ? JSON.parse(text) : undefined)
      } catch (error) {
        reject(error)
      }
    },
    failed(error) {
      signal?.removeEventListener('abort', abort)
      connections.drop(connection)
      // The server closed an idle connection just as it was reused.
      const wasClosed = used && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
      if (!again || !wasClosed || signal?.aborted) return reject(error)
      connections.acquire((other) => exchange(connections, other, options, { signal, again: false, resolve, reject }))
    }
  })
  if (signal?.aborted) abort()
}
