// Compares requests and responses with the OpenAPI description of the HTTP API (docs/openapi/).
import { appendFileSync } from 'node:fs'
import { describe } from '../../docs/openapi/build.mjs'
import { differenceOfValue } from './schema.mjs'

// Bodies that are larger are not parsed again.
const MAX_BODY = 1_000_000
export const METHODS = ['get', 'put', 'post', 'delete']

const description = describe()

// Returns why a value does not have a schema, or undefined.
function wrongValue(schema, value) {
  const found = differenceOfValue(schema, value, resolve)
  return found && `${found.at || 'the value'} ${found.what}; in ${JSON.stringify(value).slice(0, 500)}`
}

const resolve = (object) => {
  if (!object?.$ref) return object
  return object.$ref.split('/').slice(1).reduce((at, name) => at[name], description)
}

// The paths as a tree: {literals: Map of trees, parameter: {name, pattern, slashes, tree}, item, path}.
const newTree = () => ({ literals: new Map(), parameters: [], item: undefined, path: undefined })
const root = newTree()
for (const [path, item] of Object.entries(description.paths)) {
  let tree = root
  for (const segment of path.split('/').filter(Boolean)) {
    if (!segment.startsWith('{')) {
      if (!tree.literals.has(segment)) tree.literals.set(segment, newTree())
      tree = tree.literals.get(segment)
      continue
    }
    const name = segment.slice(1, -1)
    let parameter = tree.parameters.find((one) => one.name === name)
    if (!parameter) {
      const { schema, 'x-slashes': slashes } = description.components.parameters[name]
      parameter = { name, slashes, pattern: schema.pattern && new RegExp(schema.pattern), tree: newTree() }
      tree.parameters.push(parameter)
    }
    tree = parameter.tree
  }
  Object.assign(tree, { item, path })
}

// The tree at the end of these segments. Names that are written out come before parameters.
function find(tree, segments) {
  if (segments.length === 0) return tree.item && tree
  const [first, ...rest] = segments
  const literal = tree.literals.get(first)
  const found = literal && find(literal, rest)
  if (found) return found
  for (const { slashes, pattern, tree: below } of tree.parameters) {
    for (let taken = 1; taken <= (slashes ? segments.length : 1); ++taken) {
      if (pattern && !pattern.test(segments.slice(0, taken).join('/'))) continue
      const end = find(below, segments.slice(taken))
      if (end) return end
    }
  }
  return undefined
}

// As the server has it: empty segments do not count, and `_design%2Fx` is `_design/x`.
function segmentsOf(path) {
  const segments = []
  for (const [i, segment] of path.split('/').filter(Boolean).map(decodeURIComponent).entries()) {
    const split = /^(_design|_local)\/(.+)$/s.exec(segment)
    if (split && i > 0) segments.push(split[1], split[2])
    else segments.push(segment)
  }
  return segments
}

/** The operations of the described path that a request's path, which has no malformed escapes, is one of; undefined if there is none. */
export const itemOf = (pathname) => find(root, segmentsOf(pathname))?.item

// The operation of a request: {method, path, operation}. Methods that are not in the description are undefined.
function operationOf(method, pathname) {
  let segments
  try {
    segments = segmentsOf(pathname)
  } catch {
    return undefined // malformed: the server answers 400
  }
  const found = find(root, segments)
  const name = { HEAD: 'get', COPY: 'post' }[method] ?? method.toLowerCase()
  return found && { path: found.path, operation: METHODS.includes(name) ? found.item[name] : undefined }
}

// Values of a query as they are meant: numbers and Booleans are text there.
function valueOf(schema, text) {
  const types = [schema.type].flat()
  if ((types.includes('integer') || types.includes('number')) && text !== '' && !Number.isNaN(Number(text))) return Number(text)
  if (types.includes('boolean') && /^(true|false)$/i.test(text)) return text.toLowerCase() === 'true'
  // A string may be in quotation marks.
  if (types.includes('string') && /^".*"$/s.test(text)) return JSON.parse(text)
  return text
}

// A parameter by which tests show that others are ignored.
const UNKNOWN = 'nonsense'

function checkQuery(operation, query) {
  if (operation['x-any-response']) return undefined // a function reads it
  const known = new Map((operation.parameters ?? []).map(resolve).filter((one) => one.in === 'query').map((one) => [one.name, one]))
  const given = new URLSearchParams(query)
  for (const [name, text] of given) {
    const parameter = known.get(name)
    if (!parameter && (operation['x-other-parameters'] || name === UNKNOWN)) continue
    if (!parameter) return `the parameter ${name} is not described`
    let wrong
    if (parameter.content) {
      try {
        wrong = wrongValue(parameter.content['application/json'].schema, JSON.parse(text))
      } catch (error) {
        wrong = error.message
      }
    } else {
      wrong = wrongValue(parameter.schema, valueOf(parameter.schema, text))
    }
    if (wrong) return `the parameter ${name}: ${wrong}`
  }
  for (const { name, required } of known.values()) if (required && !given.has(name)) return `the parameter ${name} is required`
  return undefined
}

const mediaType = (headers) => headers['content-type']?.split(';')[0].trim().toLowerCase()
const contentOf = (content, type) => content[type] ?? content['*/*']

// A JSON body. Undefined: it is not JSON, or too large.
function parse(text) {
  if (text === undefined || text.length > MAX_BODY) return undefined
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

function checkRequestBody(operation, headers, body) {
  const { requestBody } = operation
  if (operation['x-any-response'] || headers['content-encoding']) return undefined
  if (!requestBody) return undefined // the server does not look at it
  if (!body) return requestBody.required ? 'the body is required' : undefined
  const type = mediaType(headers)
  // The server does not look at the type of a PUT.
  const content = contentOf(requestBody.content, type) ?? requestBody.content['application/json']
  if (!content) return `a body in ${type} is not described`
  if (!content.schema || type === 'application/x-www-form-urlencoded' || type?.startsWith('multipart/')) return undefined
  const json = parse(String(body))
  if (!json) return body.length > MAX_BODY ? undefined : `the body is not JSON: ${String(body).slice(0, 200)}`
  return wrongValue(content.schema, json.value)
}

function checkResponse(operation, status, headers, text, feed) {
  const isGood = status < 400
  if (operation['x-any-response']) return undefined // a function makes it
  const response = resolve(operation.responses[status] ?? (isGood ? undefined : operation.responses.default))
  if (!response) return `the status is not described`
  if (text === '') return undefined
  if (!response.content) return text === undefined ? undefined : 'the response has a body'
  const type = mediaType(headers)
  const content = type && contentOf(response.content, type)
  if (!content) return `a response in ${type} is not described`
  if (!content.schema || type !== 'application/json' || text === undefined || text.length > MAX_BODY) return undefined
  if (content['x-rows'] && CONTINUOUS.has(feed)) return checkLines(content['x-rows'], text)
  const json = parse(text)
  return json ? wrongValue(content.schema, json.value) : `the body is not JSON: ${text.slice(0, 200)}`
}

const CONTINUOUS = new Set(['continuous', 'live'])

// The form of the response: the parameter `feed`, its default, or lines without end.
function feedOf(operation, query) {
  const parameter = (operation.parameters ?? []).map(resolve).find((one) => one.name === 'feed')
  return new URLSearchParams(query).get('feed') ?? parameter?.schema.default ?? 'continuous'
}

function checkLines(schema, text) {
  for (const line of text.split('\n')) {
    const json = line.trim() === '' ? undefined : parse(line)
    const wrong = json && wrongValue(schema, json.value)
    if (wrong) return wrong
  }
  return undefined
}

const lowerCase = (headers) => Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]))

/**
 * Compares a request and its response with the description. Requests that the server refuses may be wrong: only the
 * response is compared then. `text` is undefined if it is not known, as that of a stream.
 * Returns {operation: its name, wrong: what differs, differenceOfRow: a function for the rows of a stream}; each is
 * undefined, or returns undefined, if there is none.
 */
export function differenceOf({ method, target, requestHeaders, body, status, headers, text }) {
  const sent = lowerCase(requestHeaders)
  if (method === 'POST' && sent['x-http-method-override']) method = sent['x-http-method-override']
  const [pathname, query = ''] = target.split(/\?(.*)/s)
  const found = operationOf(method, pathname)
  if (method === 'OPTIONS' || status === 405 || status === 501) return {}
  if (!found?.operation) return { wrong: status < 400 ? `the ${found ? 'method' : 'path'} is not described` : undefined }
  const { path, operation } = found
  const isServed = status < 400 && status !== 304
  const wrong =
    checkResponse(operation, status, headers, method === 'HEAD' ? '' : text, feedOf(operation, query)) ||
    (isServed ? checkQuery(operation, query) || checkRequestBody(operation, sent, body) : undefined)
  const rows = resolve(operation.responses[status])?.content?.[mediaType(headers)]?.['x-rows']
  return {
    operation: isServed ? operation.operationId : undefined,
    wrong: wrong && `${path}: ${wrong}`,
    differenceOfRow: (row) => rows && wrongValue(rows, row)
  }
}

const differences = []
const seen = new Set()
process.on('exit', () => {
  // run.sh reads it after all tests.
  if (process.env.DIVAN_OPERATIONS) appendFileSync(process.env.DIVAN_OPERATIONS, [...seen, ''].join('\n'))
  if (differences.length === 0) return
  console.error(`Requests and responses that differ from docs/openapi/:\n${differences.slice(0, 20).join('\n')}`)
  process.exitCode ||= 1
})

function fail(exchange, wrong) {
  // The file also fails if the test expects an error, or repeats the request.
  differences.push(`${exchange.method} ${exchange.target} ${exchange.status}: ${wrong}`)
  throw new Error(`docs/openapi/: ${differences.at(-1)}`)
}

/** Throws if a request or its response differs from the description. Returns a function that does so for a row of a stream. */
export function checkExchange(exchange) {
  const { operation, wrong, differenceOfRow } = differenceOf(exchange)
  if (operation) seen.add(operation)
  if (wrong) fail(exchange, wrong)
  return (row) => {
    const wrong = differenceOfRow?.(row)
    if (wrong) fail(exchange, `a row: ${wrong}`)
  }
}
