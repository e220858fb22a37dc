// Simulates network failures: a proxy between the nodes of a test and their FoundationDB cluster.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import net from 'node:net'
import { pause } from './wait.mjs'

const HEX = (port) => port.toString(16).toUpperCase().padStart(4, '0')

// The first packets of both sides have no checksum; all others have one.
const GREETING = 512

// The kernel's number of the socket that has come from this port to that one.
function inodeOf(from, to) {
  const pair = `:${HEX(from)} 0100007F:${HEX(to)} `
  const line = readFileSync('/proc/net/tcp', 'utf8').split('\n').find((text) => text.includes(pair))
  return line?.trim().split(/\s+/)[9]
}

function inodesOf(pid) {
  const directory = `/proc/${pid}/fd`
  return new Set(
    readdirSync(directory).map((name) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`${directory}/${name}`))?.[1]
      } catch {} // it is closed already
    })
  )
}

/**
 * The link between one node and the cluster. `held`: 'up' (bytes from the node), 'down' (bytes to it), 'both' or undefined: these are
 * silently held back, including ends of connections. `refuses`: new connections are reset. `delay`: milliseconds in each direction.
 * `pieces`: bytes arrive in pieces of 1 to that many. cut() ends its connections, and flip() changes a byte of the next ones in each.
 */
class Link {
  delay = 0
  pieces = 0
  refuses = false
  cuts = 0 // connections that cut() ended
  refused = 0
  flipped = 0
  connections = new Set()
  #held
  #waiting = []

  set held(what) {
    this.#held = what
    for (const look of this.#waiting.splice(0)) look()
  }

  async pass(direction) {
    while (this.#held === direction || this.#held === 'both') await new Promise((resolve) => this.#waiting.push(resolve))
  }

  cut() {
    for (const connection of this.connections) {
      connection.end()
      ++this.cuts
    }
  }

  flip() {
    for (const connection of this.connections) connection.flips = true
  }
}

class Connection {
  flips = false
  isOver = false

  constructor(node, port, link, inode) {
    this.inode = inode
    this.node = node
    this.cluster = net.connect({ host: '127.0.0.1', port })
    this.moveTo(link)
    this.#forward('up', node, this.cluster)
    this.#forward('down', this.cluster, node)
  }

  moveTo(link) {
    this.link?.connections.delete(this)
    this.link = link
    link.connections.add(this)
  }

  end() {
    this.isOver = true
    this.node.destroy()
    this.cluster.destroy()
    this.link.connections.delete(this)
  }

  #forward(direction, from, to) {
    let last = Promise.resolve()
    let seen = 0
    const later = (act) => {
      const due = Date.now() + this.link.delay
      last = last.then(async () => {
        if (due > Date.now()) await pause(due - Date.now())
        await this.link.pass(direction)
        if (!this.isOver) await act()
      })
    }
    from.setNoDelay()
    from.on('error', () => {}).on('close', () => later(() => this.end()))
    from.on('data', (bytes) => {
      seen += bytes.length
      if (this.flips && seen - bytes.length > GREETING) {
        this.flips = false
        ++this.link.flipped
        bytes[Math.floor(Math.random() * bytes.length)] ^= 1 << Math.floor(Math.random() * 8)
      }
      later(() => this.#write(to, bytes))
    })
  }

  async #write(to, bytes) {
    const { pieces } = this.link
    for (let at = 0, next; at < bytes.length && !this.isOver; at = next) {
      next = pieces ? at + 1 + Math.floor(Math.random() * pieces) : bytes.length
      to.write(bytes.subarray(at, next))
      if (pieces) await new Promise(setImmediate)
    }
  }
}

/** A proxy on its own port, which the cluster announces as its address; the cluster listens on `port`. */
export class Network {
  #links = new Map()
  #others = new Link() // for processes without a link of their own: never fails

  static async start(port) {
    const network = new Network()
    const listener = net.createServer((socket) => network.#connect(socket, port))
    await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve))
    network.port = listener.address().port
    network.close = () => {
      listener.close()
      for (const link of [network.#others, ...network.#links.values()]) {
        link.held = undefined
        link.cut()
      }
    }
    return network
  }

  /** Returns the link of a running server, with its present connections. */
  to({ pid }) {
    if (!this.#links.has(pid)) {
      const link = new Link()
      this.#links.set(pid, link)
      const its = inodesOf(pid)
      for (const connection of this.#others.connections) if (its.has(connection.inode)) connection.moveTo(link)
    }
    return this.#links.get(pid)
  }

  #connect(socket, port) {
    const inode = inodeOf(socket.remotePort, this.port)
    const link = this.#linkOf(inode)
    if (!inode || inode === '0' || link.refuses) {
      ++link.refused
      socket.on('error', () => {}).resetAndDestroy()
      return
    }
    new Connection(socket, port, link, inode)
  }

  #linkOf(inode) {
    for (const [pid, link] of this.#links) {
      try {
        if (inodesOf(pid).has(inode)) return link
      } catch {
        this.#links.delete(pid) // it has ended
      }
    }
    return this.#others
  }
}
