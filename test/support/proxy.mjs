// A TCP proxy before a server, which can observe, change and cut connections.
import net from 'node:net'

/**
 * Returns {url, close, cutClients, endUpstream}. cutClients() cuts the clients' sides of all connections and leaves the server's
 * open, which endUpstream() ends. `onRequest(text)` gets the clients' bytes, `onAnswer(bytes so far)` those of the server on one
 * connection. Either may return 'cut' to cut that connection, and then passes nothing on. onRequest may also return a promise of
 * that, for which the request waits, or {answer: text}, which the client gets instead of the server's. onAnswer may return bytes to
 * send instead.
 */
export async function startProxy(server, { onRequest = () => {}, onAnswer = () => {} }) {
  const { hostname, port } = new URL(server.url)
  const sockets = new Set()
  const pairs = new Set()
  const listener = net.createServer((client) => {
    const upstream = net.connect({ host: hostname, port: Number(port) })
    const cut = () => {
      client.destroy()
      upstream.destroy()
    }
    const pair = { client, upstream, isSplit: false }
    pairs.add(pair)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => pair.isSplit || cut()).on('close', () => {
        sockets.delete(socket)
        if (pair.isSplit) return
        pairs.delete(pair)
        cut()
      })
    }
    let answered = 0
    let sent = Promise.resolve()
    client.on('data', (bytes) => {
      const answer = onRequest(bytes.toString('latin1'))
      if (answer === 'cut') cut()
      else if (answer?.answer) client.write(answer.answer)
      else sent = sent.then(() => answer).then((late) => (late === 'cut' ? cut() : upstream.write(bytes)))
    })
    upstream.on('data', (bytes) => {
      answered += bytes.length
      const change = onAnswer(answered)
      if (change === 'cut') cut()
      else if (!pair.isSplit) client.write(change ?? bytes)
    })
  })
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${listener.address().port}`,
    cutClients() {
      for (const pair of pairs) {
        pair.isSplit = true
        pair.client.destroy()
      }
    },
    endUpstream() {
      for (const pair of pairs) if (pair.isSplit) pair.upstream.destroy()
    },
    close() {
      listener.close()
      for (const socket of sockets) socket.destroy()
    }
  }
}
