// The Node.js kit's requests, against servers that send malformed responses, close kept connections, or do
// not respond.
import assert from 'node:assert/strict'
import net from 'node:net'
import { afterEach, test } from 'node:test'
import { DivanError, Transport } from '../clients/js/lib/transport.mjs'
import { waitFor, within } from './support/wait.mjs'

const servers = new Set()
const transports = new Set()
afterEach(() => {
  for (const transport of transports) transport.close()
  for (const server of servers) server.close()
  transports.clear()
  servers.clear()
})

/**
 * A server that calls `answer(socket, request, {nth of all requests, nth connection})` for each request; and a transport to it.
 * `seen`: the requests' texts. `open`: sockets.
 */
async function serve(answer, { host = '127.0.0.1' } = {}) {
  const seen = []
  const open = new Set()
  let connections = 0
  const listener = net.createServer((socket) => {
    const connection = ++connections
    let text = ''
    open.add(socket)
    socket.on('close', () => open.delete(socket)).on('error', () => {})
    socket.setEncoding('latin1').on('data', (piece) => {
      text += piece
      const [head, body] = text.split('\r\n\r\n')
      if (body === undefined || body.length < Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)) return
      seen.push(text)
      text = ''
      answer(socket, seen.at(-1), { request: seen.length, connection })
    })
  })
  await new Promise((resolve) => listener.listen(0, host, resolve))
  const server = {
    close() {
      listener.close()
      for (const socket of open) socket.destroy()
    }
  }
  servers.add(server)
  const name = host.includes(':') ? `[${host}]` : host
  const transport = new Transport(`http://ann:s%40crt@${name}:${listener.address().port}/below/`)
  transports.add(transport)
  return { transport, seen, open, count: () => connections }
}

const ok = (body, fields = '') => `HTTP/1.1 200 OK\r\n${fields}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
const chunked = (body) => `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`
const failure = (promise) => within('the error', promise.then(() => assert.fail('the request must fail'), (error) => error))

test('kit_transport: a request has its credentials and content type', async () => {
  const { transport, seen } = await serve((socket) => socket.write(ok('{"a":1}')))
  assert.deepEqual(await transport.request('PUT', '/x?y=1', { ü: '→' }), { a: 1 })
  const [head, body] = seen[0].split('\r\n\r\n')
  assert.match(head, /^PUT \/below\/x\?y=1 HTTP\/1\.1\r\n/)
  assert.match(head, /\r\nauthorization: basic yw5uonnay3j0/i) // ann:s@crt
  assert.match(head, /\r\ncontent-type: application\/json/i)
  assert.match(head, /\r\ncontent-length: 12(\r\n|$)/i)
  assert.equal(Buffer.from(body, 'latin1').toString(), '{"ü":"→"}')
})

test('kit_transport: responses may be complete, chunked, split, empty, or follow interim ones', async () => {
  const answers = [
    ok('{"n":0}'),
    chunked('4\r\n{"n"\r\n3;x=y\r\n:1}\r\n0\r\n\r\n'),
    [...ok('{"n":"→"}')],
    `HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${ok('{"n":3}')}`,
    'HTTP/1.1 204 No Content\r\n\r\n',
    ok('{"n":5}', 'Connection: close\r\n')
  ]
  const server = await serve(async (socket, _, { request }) => {
    for (const piece of [answers[request - 1]].flat()) {
      await new Promise((resolve) => socket.write(piece, resolve))
      await new Promise(setImmediate)
    }
    if (request === answers.length) socket.end()
  })
  const got = []
  for (const _ of answers) got.push(await server.transport.request('GET', '/'))
  assert.deepEqual(got, [{ n: 0 }, { n: 1 }, { n: '→' }, { n: 3 }, undefined, { n: 5 }])
  assert.equal(server.count(), 1)
})

test('kit_transport: an error response is a DivanError, also from a gateway', async () => {
  const bodies = ['{"error":"conflict","reason":"Why."}', '<html>', 'null', '']
  const { transport } = await serve((socket, _, { request }) => {
    const body = bodies[request - 1]
    socket.write(`HTTP/1.1 409 Conflict\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  })
  for (const [i] of bodies.entries()) {
    const error = await failure(transport.request('GET', '/'))
    assert.ok(error instanceof DivanError, error)
    assert.deepEqual([error.status, error.error, error.reason], i === 0 ? [409, 'conflict', 'Why.'] : [409, 'http_error', 'HTTP status 409'])
  }
})

const BAD = {
  'the end in a head': { bytes: 'HTTP/1.1 200 OK\r\nConte', end: true, code: 'ECONNRESET' },
  'the end in a body': { bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"a"', end: true, code: 'ECONNRESET' },
  'the end in a chunk': { bytes: chunked('9\r\n{"a"'), end: true, code: 'ECONNRESET' },
  'the end between chunks': { bytes: chunked('7\r\n{"a":1}\r\n'), end: true, code: 'ECONNRESET' },
  'no answer but the end': { bytes: '', end: true, code: 'ECONNRESET' },
  'a chunk longer than it says': { bytes: chunked('3\r\n{"a":1}\r\n0\r\n\r\n'), code: /^HPE_/ },
  'a chunk of no size': { bytes: chunked('zz\r\n{"a":1}\r\n0\r\n\r\n'), code: /^HPE_/ },
  'a chunk of too great a size': { bytes: chunked('fffffffffffffffff\r\n{}'), code: /^HPE_/ },
  'two lengths': { bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ', code: /LENGTH/ },
  'an invalid length': { bytes: 'HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}', code: /^HPE_/ },
  'a length and chunks': { bytes: chunked('2\r\n{}\r\n0\r\n\r\n').replace('\r\n', '\r\nContent-Length: 2\r\n'), code: /LENGTH/ },
  'another protocol': { bytes: '220 mail.example.org ESMTP\r\n', code: /^HPE_/ },
  'a head without end': { bytes: `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}`, code: 'UND_ERR_HEADERS_OVERFLOW' },
  'an unrequested 100 Continue': { bytes: `HTTP/1.1 100 Continue\r\n\r\n${ok('{}')}`, code: 'ECONNRESET' },
  'no JSON': { bytes: ok('{"a":'), keeps: true, name: 'SyntaxError' }
}
for (const [what, { bytes, end, code, keeps, name = 'Error' }] of Object.entries(BAD)) {
  test(`kit_transport: ${what} is an error, and the next request is answered`, async () => {
    const server = await serve((socket, _, { request }) => {
      if (request > 1) return socket.write(ok('{"n":2}'))
      socket.write(bytes)
      if (end) socket.end()
    })
    const error = await failure(server.transport.request('POST', '/', {}))
    assert.ok(error instanceof Error)
    if (code instanceof RegExp) assert.match(error.code, code)
    else assert.equal(error.code, code)
    if (keeps) assert.equal(error.name, name)
    assert.deepEqual(await server.transport.request('GET', '/'), { n: 2 })
    assert.deepEqual([server.seen.length, server.count()], [2, keeps ? 1 : 2])
  })
}

test('kit_transport: bytes after a response are not the next response', async () => {
  const server = await serve((socket, _, { request }) => socket.write(ok(`{"n":${request}}`) + (request === 1 ? ok('{"n":"stray"}') : '')))
  assert.deepEqual(await server.transport.request('GET', '/'), { n: 1 })
  assert.deepEqual(await server.transport.request('GET', '/'), { n: 2 })
  assert.equal(server.count(), 2)
})

// The server responds, and closes the connection without a response when the second request arrives.
const forgetful = () =>
  serve((socket, _, { request, connection }) => {
    if (connection === 1 && request === 2) socket.resetAndDestroy()
    else socket.write(ok(`{"n":${request}}`))
  })

test('kit_transport: a repeatable request is repeated if a kept connection is lost', async () => {
  const server = await forgetful()
  await server.transport.request('GET', '/', undefined, { again: true })
  assert.deepEqual(await server.transport.request('PUT', '/', { a: 1 }, { again: true }), { n: 3 })
  assert.equal(server.seen[1], server.seen[2])
})

test('kit_transport: a request that is not repeatable is not repeated', async () => {
  const server = await forgetful()
  await server.transport.request('GET', '/')
  const error = await failure(server.transport.request('POST', '/', { a: 1 }))
  assert.deepEqual([error.code, server.seen.length], ['ECONNRESET', 2])
})

test('kit_transport: a request is repeated only once, and not if its connection was new', async () => {
  const sockets = []
  const server = await serve((socket) => (sockets.length < 3 ? sockets.push(socket) : socket.resetAndDestroy()))
  const ask = () => server.transport.request('GET', '/', undefined, { again: true })
  const kept = [ask(), ask(), ask()]
  await waitFor('all three', () => sockets.length === 3)
  for (const socket of sockets) socket.write(ok('{}'))
  await Promise.all(kept)
  // Of the three, two are lost with the first of these, the last with the second, and the third has a new one.
  for (const sent of [2, 4, 5]) {
    assert.equal((await failure(ask())).code, 'ECONNRESET')
    assert.equal(server.seen.length, 3 + sent)
  }
})

test('kit_transport: a connection that the server closed while it was idle is not used', async () => {
  const server = await serve((socket, _, { request }) => {
    socket.write(ok(`{"n":${request}}`))
    if (request === 1) socket.end()
  })
  await server.transport.request('GET', '/')
  await waitFor('the connection to be gone', () => server.open.size === 0)
  assert.deepEqual(await server.transport.request('POST', '/', {}), { n: 2 })
})

test('kit_transport: a server that does not respond times out', async () => {
  const server = await serve((socket, _, { request }) => request === 2 && socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{'))
  for (const _ of [1, 2]) {
    const error = await failure(server.transport.request('GET', '/', undefined, { timeout: 50, again: true }))
    assert.equal(error.code, 'ETIMEDOUT')
  }
  assert.equal(server.seen.length, 2)
  await waitFor('the connections to be gone', () => server.open.size === 0)
})

test('kit_transport: aborting a request closes its connection', async () => {
  const server = await serve(() => {})
  const taken = new AbortController()
  const error = failure(server.transport.request('POST', '/', {}, { poll: true, signal: taken.signal }))
  await waitFor('the request', () => server.seen.length === 1)
  taken.abort()
  assert.equal((await error).name, 'AbortError')
  await waitFor('the connection to be gone', () => server.open.size === 0)
  assert.equal((await failure(server.transport.request('GET', '/', undefined, { signal: taken.signal }))).name, 'AbortError')
  assert.equal(server.seen.length, 1)
})

test('kit_transport: eight requests at a time, and polls in addition', async () => {
  const sockets = []
  const server = await serve((socket) => sockets.push(socket))
  const calls = Array.from({ length: 9 }, () => server.transport.request('GET', '/call'))
  const polls = Array.from({ length: 9 }, () => server.transport.request('GET', '/poll', undefined, { poll: true }))
  await waitFor('all that fit', () => server.seen.length === 17)
  assert.equal(server.seen.filter((text) => text.startsWith('GET /below/call')).length, 8)
  sockets[0].write(ok('{}'))
  await waitFor('the last', () => server.seen.length === 18)
  for (const socket of sockets.slice(1)) socket.write(ok('{}'))
  await Promise.all([...calls, ...polls])
  server.transport.close()
  await waitFor('the connections to be gone', () => server.open.size === 0)
})

test('kit_transport: a request that waits for a connection that closes is sent once, over another', async () => {
  const server = await serve((socket) => socket.write(ok('{}', 'Connection: close\r\n')))
  await Promise.all(Array.from({ length: 40 }, () => server.transport.request('GET', '/')))
  assert.deepEqual([server.seen.length, server.count()], [40, 40])
})

test('kit_transport: the slot of a failed connection is freed', async () => {
  const server = await serve((socket, _, { request }) => (request <= 20 ? socket.destroy() : socket.write(ok('{}'))))
  const errors = await Promise.all(Array.from({ length: 20 }, () => failure(server.transport.request('POST', '/', {}))))
  assert.deepEqual(new Set(errors.map(({ code }) => code)), new Set(['ECONNRESET']))
  assert.deepEqual(await server.transport.request('GET', '/'), {})
})

test('kit_transport: a held response reports its first line, and the reason of its end', async () => {
  let held
  const server = await serve((socket) => (held = socket))
  const signal = new AbortController().signal
  const said = server.transport.hold('/hold', { a: 1 }, { timeout: 60_000, signal })
  await waitFor('the request', () => held)
  held.write(chunked('1\r\n\n\r\n6\r\n{"inca\r\n'))
  held.write('e\r\nrnation":"1"}\n\r\n')
  const { first, closed } = await within('the first line', said)
  assert.deepEqual(first, { incarnation: '1' })
  held.write('1\r\n\n\r\n11\r\n{"error":"halt"}\n\r\n0\r\n\r\n')
  assert.deepEqual(await within('its end', closed), { error: 'halt' })
  await waitFor('the connection to be gone', () => server.open.size === 0)
})

test('kit_transport: a held response that is cut has ended, an error response is an error', async () => {
  const answers = [(socket) => socket.resetAndDestroy(), (socket) => socket.write('HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n{}')]
  const server = await serve((socket, _, { request }) => {
    if (request > 1) return answers[request - 2](socket)
    socket.write(chunked('3\r\n{}\n\r\n'))
    setImmediate(() => socket.resetAndDestroy())
  })
  const hold = (signal = new AbortController().signal, timeout = 60_000) => server.transport.hold('/hold', {}, { timeout, signal })
  assert.deepEqual(await within('its end', (await hold()).closed), {})
  assert.equal((await failure(hold())).code, 'ECONNRESET')
  assert.equal((await failure(hold())).status, 401)
  assert.ok(await failure(hold(AbortSignal.abort())))
  assert.equal(server.seen.length, 3)
})

test('kit_transport: waiting for a held response can be aborted', async () => {
  const server = await serve(() => {})
  const stop = new AbortController()
  const error = failure(server.transport.hold('/hold', {}, { timeout: 60_000, signal: stop.signal }))
  await waitFor('the request', () => server.seen.length === 1)
  stop.abort()
  assert.ok(await error)
  assert.ok(await failure(server.transport.hold('/hold', {}, { timeout: 20, signal: new AbortController().signal })))
  await waitFor('the connections to be gone', () => server.open.size === 0)
})

test('kit_transport: IPv6', async (context) => {
  let server
  try {
    server = await within('a server', serve((socket) => socket.write(ok('{"n":6}')), { host: '::1' }), 5_000)
  } catch {
    return context.skip('no IPv6 here')
  }
  assert.deepEqual(await server.transport.request('GET', '/'), { n: 6 })
})
