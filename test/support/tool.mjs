// The command line of the job queue with a test's server, and workers.
import assert from 'node:assert/strict'
import { runDivan, startDivan } from './server.mjs'
import { within } from './wait.mjs'

export const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/

const environment = (server) => ({ DIVAN_URL: server.url, DIVAN_USER: server.credentials })
export const run = (server, args, options) => runDivan(args, { ...options, env: environment(server) })
export const start = (server, args, options) => startDivan(args, { ...options, env: environment(server) })

// Returns a tool's output. Throws if it fails.
export async function tool(server, args, options) {
  const { code, stdout, stderr } = await run(server, args, options)
  assert.equal(code, 0, stderr)
  return stdout
}
export const json = async (server, args) => JSON.parse(await tool(server, [...args, '--json']))

// Runs a tool that must fail with one line that matches.
export async function refused(server, args, words, options) {
  const { code, stdout, stderr } = await run(server, args, options)
  assert.deepEqual([code, stdout], [1, ''], stderr)
  assert.match(stderr, /^divan: .*\n$/) // `.` is no line end
  assert.match(stderr, words)
}

// The rows of a table as objects.
export function table(text) {
  const [head, ...rows] = text.trimEnd().split('\n').map((line) => line.split(/\s{2,}/))
  return rows.map((row) => Object.fromEntries(head.map((name, i) => [name, row[i]])))
}

let types = 0
export async function newType(server, settings = {}) {
  const type = `type${++types}`
  await server.client.ok('PUT', `/_jobs/${type}`, settings)
  return type
}

export const add = (server, type, id, body = {}) => server.client.ok('PUT', `/_jobs/${type}/${encodeURIComponent(id)}`, body)
export const get = (server, type, id) => server.client.ok('GET', `/_jobs/${type}/${encodeURIComponent(id)}`)
export const accept = async (server, type, options = {}) =>
  (await server.client.ok('POST', `/_jobs/${type}/_accept`, { timeout: 60_000, ...options })).jobs
export async function fail(server, type, error) {
  const [{ id, lock }] = await accept(server, type)
  await server.client.ok('POST', `/_jobs/${type}/${encodeURIComponent(id)}/_fail`, { lock, error })
}
export async function finish(server, type) {
  const [{ id, lock }] = await accept(server, type)
  await server.client.ok('POST', `/_jobs/${type}/${encodeURIComponent(id)}/_finish`, { lock })
}

export async function interrupt(process_) {
  process_.child.kill('SIGINT')
  await within('the end after SIGINT', process_.exit)
}
export const lines = (process_) => process_.stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line))
