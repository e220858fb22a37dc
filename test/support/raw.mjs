// Bytes on a socket: requests that no HTTP client would send.
import http from 'node:http'
import net from 'node:net'
import { within } from './wait.mjs'

/** Authorization for a raw request. */
export const authorization = (server) =>
  `Authorization: Basic ${Buffer.from(server.credentials).toString('base64')}\r\n`

/** Sends bytes and returns the response up to the end of the connection: {status, text, json}. */
export function sendRaw(server, bytes, { end = false } = {}) {
  const answer = new Promise((resolve, reject) => {
    const socket = net.connect(server.client.port, server.client.hostname)
    let text = ''
    socket.setEncoding('latin1').on('data', (piece) => (text += piece))
    socket.on('close', () => resolve(text))
    socket.on('error', (error) => (text ? resolve(text) : reject(error)))
    socket.write(bytes)
    if (end) socket.end()
  })
  return within('the server to answer and close', answer).then((text) => {
    const [head, body = ''] = text.split('\r\n\r\n')
    return {
      status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]),
      text,
      get json() {
        return JSON.parse(body)
      }
    }
  })
}

/** Sends the head of a request with a body: {request, response}; response() waits for {status, headers, text}. */
export function beginRequest(server, method, target, length, auth = server.credentials) {
  const headers = { 'Content-Type': 'application/json', Connection: 'keep-alive', ...(length !== undefined && { 'Content-Length': length }) }
  const request = http.request(server.url + target, { method, ...(auth && { auth }), headers })
  request.flushHeaders()
  const response = new Promise((resolve, reject) => {
    request.on('error', reject)
    request.on('response', (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (piece) => (text += piece))
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text }))
    })
  })
  response.catch(() => {})
  return { request, response: () => within('an answer', response) }
}
