// A pool of connections to one server, each with one request at a time.
import { Client } from 'undici'

// Below the server's own limit of two minutes, so that requests rarely use a connection that the server is
// closing.
const IDLE_MS = 30_000
const CONNECT_MS = 5_000

const KEPT = { keepAliveTimeout: IDLE_MS, keepAliveMaxTimeout: IDLE_MS, connectTimeout: CONNECT_MS, pipelining: 1 }

// Maps undici's codes to those of the system.
const CODES = {
  UND_ERR_SOCKET: ['ECONNRESET', 'the server closed the connection'],
  UND_ERR_CONNECT_TIMEOUT: ['ETIMEDOUT', 'connecting timed out'],
  UND_ERR_HEADERS_TIMEOUT: ['ETIMEDOUT', 'the response timed out'],
  UND_ERR_BODY_TIMEOUT: ['ETIMEDOUT', 'the response body timed out']
}

function systemError(cause) {
  const [code, message] = CODES[cause.code] ?? []
  return code ? Object.assign(new Error(message, { cause }), { code }) : cause
}

/**
 * A connection that is opened on demand. One request at a time; its
 * `listener`: {data(status, bytes), end(status), failed(error)}, of which one of the last two ends it.
 */
export class Connection {
  /** Whether it has received a response: the server may have closed it since. */
  used = false

  #client

  constructor(origin) {
    this.#client = new Client(origin, KEPT)
  }

  send(options, listener) {
    let status
    this.#client.dispatch(options, {
      onConnect() {},
      onHeaders(code) {
        status = code
        return true
      },
      onData(bytes) {
        listener.data(status, bytes)
        return true
      },
      onComplete: () => {
        this.used = true
        listener.end(status)
      },
      onError: (error) => listener.failed(systemError(error))
    })
  }

  /** Fails its current request with this error. */
  destroy(error = new Error('the connection was closed')) {
    this.#client.destroy(error, () => {})
  }
}

/** Up to `most` connections; further requests wait for one. */
export class Connections {
  #open = 0
  #idle = []
  #waiting = []

  constructor(origin, most = Infinity) {
    this.origin = origin
    this.most = most
  }

  /** `use(connection)` is called at once if there is a connection. */
  acquire(use) {
    if (this.#idle.length > 0) return use(this.#idle.pop())
    if (this.#open >= this.most) return this.#waiting.push(use)
    ++this.#open
    use(new Connection(this.origin))
  }

  /** Called when a connection's request has completed. */
  release(connection) {
    const next = this.#waiting.shift()
    if (next) next(connection)
    else this.#idle.push(connection)
  }

  /** Called when a connection's request has failed. */
  drop(connection) {
    connection.destroy()
    --this.#open
    const next = this.#waiting.shift()
    if (next) this.acquire(next)
  }

  closeIdle() {
    for (const connection of this.#idle.splice(0)) this.drop(connection)
  }
}
