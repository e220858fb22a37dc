// The routes of the server, compared with those that docs/openapi/ describes: their paths, their methods, and who may read them.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { describe } from '../docs/openapi/build.mjs'
import { ACCESS } from '../docs/openapi/schema.mjs'
import { Client } from './support/client.mjs'
import { itemOf, METHODS } from './support/openapi.mjs'
import { ADMIN, testWithServer } from './support/server.mjs'

const api = describe()
const resolve = (object) => (object.$ref ? object.$ref.split('/').slice(1).reduce((at, name) => at[name], api) : object)

// What requests have in place of parameters in paths.
const SAMPLES = { db: 'db', docid: 'p:1', document: 'p:1', partition: 'p', ddoc: 'd', otherddoc: 'd', node: '_local', replicator: '_replicator' }
const OTHERS = '1'
const sampleOf = (path) => path.replace(/\{(\w+)\}/g, (_, name) => SAMPLES[name] ?? OTHERS)
const described = new Map(Object.entries(api.paths).map(([path, item]) => [sampleOf(path), item]))

async function addSamples(client) {
  await client.ok('PUT', '/db?partitioned=true')
  await client.ok('PUT', '/db/p:1', { n: 1 })
  await client.ok('PUT', '/db/_design/d', {
    views: { [OTHERS]: { map: 'function (doc) { emit(doc.n); }' } },
    shows: { [OTHERS]: 'function () { return ""; }' },
    lists: { [OTHERS]: 'function () { return ""; }' },
    updates: { [OTHERS]: 'function () { return [null, ""]; }' },
    rewrites: [{ from: '*', to: '../../p:1' }],
    indexes: { [OTHERS]: { index: 'function (doc) { index("n", doc.n); }' } }
  })
}

// As in Allow. A `post` that is described with X-HTTP-Method-Override is a COPY.
function methodsOf(item) {
  const isCopy = item.post?.parameters?.some((parameter) => resolve(parameter).name === 'X-HTTP-Method-Override')
  const names = METHODS.filter((method) => item[method]).map((method) => (method === 'post' && isCopy ? 'COPY' : method.toUpperCase()))
  return names.includes('GET') ? [...names, 'HEAD'] : names
}
// Show functions and rewrites.
const takesAll = (item) => item.delete?.['x-any-response'] === true

// All names that a route can have: names in the source that look like one, and those of the description.
function namesOfRoutes() {
  const folder = new URL('../divan/api/', import.meta.url)
  const files = readdirSync(folder).filter((name) => /\.(cc|h)$/.test(name) && !name.endsWith('_test.cc'))
  const source = files.map((name) => readFileSync(new URL(name, folder), 'utf8')).join('\n')
  const inSource = [...source.matchAll(/"(_[a-z_]+|[a-z]+\.[a-z]+)"|== "([a-z]+)"/g)].map(([, name, compared]) => name ?? compared)
  const inDescription = Object.keys(api.paths).flatMap((path) => path.split('/')).filter((segment) => /^[a-z]/.test(segment))
  return [...new Set([...inSource, ...inDescription])]
}

// The paths, as samples, below which each of these names may be a route: not where every name is part of a parameter with slashes.
function placesOfRoutes() {
  const places = new Set()
  const excluded = new Set()
  for (const path of Object.keys(api.paths)) {
    const segments = path.split('/').filter(Boolean)
    for (let i = 0; i <= segments.length; ++i) {
      const place = sampleOf(segments.slice(0, i).map((segment) => `/${segment}`).join(''))
      const [, name] = /^\{(\w+)\}$/.exec(segments[i]) ?? []
      places.add(place)
      if (!api.components.parameters[name]?.['x-slashes']) continue
      excluded.add(place)
      break
    }
  }
  // Below an action of jobs, its name is that of a type or a job.
  return [...places].filter((place) => !excluded.has(place) && !/^\/_jobs\/(1\/)?_/.test(place))
}

/** Calls `fn` for each value, several at once. */
async function forEach(values, fn) {
  const rest = values[Symbol.iterator]()
  const work = async () => {
    for (const value of rest) await fn(value)
  }
  await Promise.all(Array.from({ length: 32 }, work))
}

// These are the same below a partition as without it, and are not described there.
const OF_EACH_PARTITION = /^\/db\/_partition\/p(?=\/(_index\/|_design\/d\/_(info|show|update|rewrite|search_info|search_disk_size|geo|geo_info|trigger)(\/|$)))/

testWithServer('the routes of the server and their methods are described, and no others', {}, async (server) => {
  await addSamples(server.client)
  const client = new Client(server.url, ADMIN)
  const send = async (method, target) => {
    const { status, headers, text } = await client.request(method, target)
    return { status, methods: headers.allow?.split(',').sort() ?? [], text }
  }
  // A method that no route has.
  const probe = (target) => send('PATCH', target)
  // Those of the methods that are served: whose answer is not `usual`, that there is no such route, or that it is not implemented.
  const served = async (methods, target, usual = {}) => {
    const found = []
    for (const method of methods.filter((method) => method !== 'HEAD')) {
      const { status, text } = await send(method, target)
      if (status !== 501 && text !== usual[method] && !/"reason":"(missing|Invalid path\.?)"/.test(text)) found.push(method)
    }
    return found
  }

  const wrong = []
  await forEach(described, async ([target, item]) => {
    if (takesAll(item)) return
    const { methods } = await probe(target)
    const expected = methodsOf(item)
    const others = await served(methods.filter((method) => !expected.includes(method)), target)
    for (const method of expected) if (!methods.includes(method)) wrong.push(`${method} ${target} is described, but not served`)
    for (const method of others) wrong.push(`${method} ${target} is served, but not described`)
  })
  assert.deepEqual(wrong, [])

  const hasMethods = (item, methods) => item !== undefined && (takesAll(item) || methodsOf(item).sort().join() === methods.join())
  const names = namesOfRoutes()
  assert.ok(names.length > 100, names)
  for (const place of placesOfRoutes()) {
    // A route can have more segments.
    for (const more of ['', `/${OTHERS}`, `/${OTHERS}/${OTHERS}`]) {
      const targetOf = (name) => `${place}/${name}${more}`
      // What is answered to names that no route has.
      const usual = new Map()
      for (const name of ['nonsense', '_nonsense']) {
        const { status, methods } = await probe(targetOf(name))
        const answers = {}
        for (const method of ['GET', 'POST'].filter((method) => methods.includes(method))) answers[method] = (await send(method, targetOf(name))).text
        usual.set(name[0] === '_', { name, status, allowed: methods.join(), answers })
      }
      await forEach(names, async (name) => {
        const target = targetOf(name)
        if (described.has(target)) return
        const { status, methods } = await probe(target)
        if (hasMethods(itemOf(target), methods)) return
        const withoutPartition = target.replace(OF_EACH_PARTITION, '/db')
        if (withoutPartition !== target && hasMethods(itemOf(withoutPartition), methods)) return
        const other = usual.get(name[0] === '_')
        const isUsual = status === other.status && methods.join() === other.allowed
        if (methods.length === 0 && (isUsual || (status >= 400 && status < 500))) return
        const answers = isUsual ? Object.fromEntries(Object.entries(other.answers).map(([method, text]) => [method, text.replaceAll(other.name, name)])) : {}
        const tried = isUsual ? Object.keys(answers) : methods
        if (methods.length > 0 && (await served(tried, target, answers)).length === 0) return
        wrong.push(`${methods} ${target} is served, but not described: ${status}`)
      })
    }
  }
  assert.deepEqual(wrong, [])
})

const accessOf = (operation) => Object.keys(ACCESS).find((name) => operation.description.endsWith(ACCESS[name][0]))

test('openapi_routes: docs/permissions.md lists what everyone may use', () => {
  const text = readFileSync(new URL('../docs/permissions.md', import.meta.url), 'utf8')
  const [, list] = /anonymous clients, may use (.*?) and the\s+databases/s.exec(text)
  const open = Object.entries(api.paths).filter(([, { get }]) => get && accessOf(get) === 'everyone')
  const routes = new Set(open.map(([path]) => `/${path.split('/')[1]}`))
  routes.delete('/favicon.ico')
  assert.deepEqual([...list.matchAll(/`(\S+)`/g)].map(([, route]) => route).sort(), [...routes].sort())
})

// The users, and what they may read: names of ACCESS. Those with a role have no access to the database.
const USERS = {
  nobody: { may: ['everyone'] },
  member: { may: ['everyone', 'member'] },
  owner: { may: ['everyone', 'member', 'database admin'] },
  worker: { roles: ['jobs'], may: ['everyone', 'jobs'] },
  listener: { roles: ['events'], may: ['everyone', 'events'] },
  meter: { roles: ['_metrics'], may: ['everyone', 'metrics'] },
  administrator: { may: Object.keys(ACCESS) }
}

testWithServer('each GET is for those whom its description names', { env: { DIVAN_CHTTPD_AUTH_ITERATIONS: '10' } }, async (server) => {
  await addSamples(server.client)
  const clients = { nobody: server.as(undefined), administrator: server.client }
  for (const name of Object.keys(USERS).filter((name) => !clients[name])) {
    await server.client.ok('PUT', `/_users/org.couchdb.user:${name}`, { name, type: 'user', password: 'p', roles: USERS[name].roles ?? [] })
    clients[name] = server.as(`${name}:p`)
  }
  await server.client.ok('PUT', '/db/_security', { admins: { names: ['owner'] }, members: { names: ['member'] } })

  const wrong = []
  const seen = new Set()
  for (const [path, { get }] of Object.entries(api.paths)) {
    if (!get) continue
    const access = accessOf(get)
    assert.ok(access, path)
    seen.add(access)
    for (const [name, { may }] of Object.entries(USERS)) {
      // Only the head: some responses have no end.
      const response = await clients[name].open(sampleOf(path))
      response.close()
      const isRefused = response.status === 401 || response.status === 403
      if (isRefused === may.includes(access)) wrong.push(`${response.status} for ${name}: ${path}`)
    }
  }
  assert.deepEqual(wrong, [])
  assert.ok(seen.size > 5, [...seen])
})
