// The description of the HTTP API (docs/openapi/). All other tests compare their requests and responses with it
// (support/openapi.mjs). openapi_routes_test.mjs compares its routes with those of the server.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import Ajv from 'ajv/dist/2020.js'
import { describe } from '../docs/openapi/build.mjs'
import { differenceOf } from './support/openapi.mjs'
import { differenceOfValue, KEYWORDS } from './support/schema.mjs'
import { testWithServer } from './support/server.mjs'

const api = describe()

// The schemas outside of the components.
function* schemas(value) {
  if (value === null || typeof value !== 'object') return
  for (const [name, one] of Object.entries(value)) {
    if (name === 'schema' || name === 'x-rows') yield one
    else yield* schemas(one)
  }
}

function* references(value) {
  if (value === null || typeof value !== 'object') return
  if (typeof value.$ref === 'string') yield value.$ref
  for (const one of Object.values(value)) yield* references(one)
}

test('the description is valid OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(api))
  assert.ok(valid, JSON.stringify(errors, null, 1))
})

// The schemas with references that ajv resolves.
const inPlace = (schema) => JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', 'schema:'))
const components = Object.entries(api.components.schemas)
const ajv = new Ajv({ allowUnionTypes: true, strictRequired: true })
for (const [name, schema] of components) ajv.addSchema({ $id: `schema:${name}`, ...inPlace(schema) })
const resolve = ({ $ref }) => $ref.split('/').slice(1).reduce((at, name) => at[name], api)

test('each schema is valid JSON Schema', () => {
  for (const [name] of components) ajv.getSchema(`schema:${name}`)
  for (const schema of schemas({ ...api.paths, ...api.components.parameters })) ajv.compile(inPlace(schema))
})

function checkKeywords(schema) {
  for (const [keyword, value] of Object.entries(schema)) {
    assert.ok(KEYWORDS.has(keyword), keyword)
    if (keyword === 'properties') for (const one of Object.values(value)) checkKeywords(one)
    if (keyword === 'anyOf') value.forEach(checkKeywords)
    if (keyword === 'items' || (keyword === 'additionalProperties' && typeof value === 'object')) checkKeywords(value)
  }
}

test('schemas have no keywords that the tests do not check', () => {
  for (const [, schema] of components) checkKeywords(schema)
  for (const schema of schemas({ ...api.paths, ...api.components.parameters })) checkKeywords(schema)
})

// A value that has a schema, with all members that it may have.
function sample(schema) {
  if (schema.$ref) return sample(resolve(schema))
  if ('const' in schema) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.anyOf) return sample(schema.anyOf[0])
  const type = [schema.type].flat()[0]
  if (type === 'object') return Object.fromEntries(Object.entries(schema.properties ?? { some: schema.additionalProperties ?? {} }).map(([name, one]) => [name, sample(one)]))
  if (type === 'array') return schema.items ? [sample(schema.items)] : []
  return { string: '1-a', integer: schema.minimum ?? 1, number: 1.5, boolean: true, null: null }[type] ?? 'any'
}

// The value with one change somewhere in it.
function* changed(value) {
  yield* [null, true, -1, 1.5, 1e9, 'x', [], {}]
  if (value === null || typeof value !== 'object') return
  if (Array.isArray(value)) {
    for (const [i, one] of value.entries()) for (const other of changed(one)) yield [...value.slice(0, i), other, ...value.slice(i + 1)]
    return
  }
  yield { ...value, unknown: 1 }
  for (const name of Object.keys(value)) {
    const { [name]: one, ...others } = value
    yield others
    for (const other of changed(one)) yield { ...others, [name]: other }
  }
}

test('the tests check values as JSON Schema has it', () => {
  const counts = { valid: 0, invalid: 0 }
  for (const [name, schema] of components) {
    const validate = ajv.getSchema(`schema:${name}`)
    const good = sample(schema)
    assert.ok(validate(good), `${name}: ${JSON.stringify(validate.errors)}`)
    for (const value of [good, ...changed(good)]) {
      const isValid = validate(value)
      ++counts[isValid ? 'valid' : 'invalid']
      assert.equal(differenceOfValue(schema, value, resolve) === undefined, isValid, `${name}: ${JSON.stringify(value)}`)
    }
  }
  assert.ok(counts.valid > 1000 && counts.invalid > 1000, JSON.stringify(counts))
})

test('each reference is to a component, and each component is used', () => {
  const used = new Set(references(api))
  for (const reference of used) {
    const found = reference.slice(2).split('/').reduce((at, name) => at?.[name], api)
    assert.ok(found, reference)
  }
  for (const kind of ['schemas', 'parameters', 'responses']) {
    for (const name of Object.keys(api.components[kind])) assert.ok(used.has(`#/components/${kind}/${name}`), `${kind}/${name} is not used`)
  }
})

test('operations have distinct names', () => {
  const names = Object.values(api.paths).flatMap((item) => Object.values(item).map((one) => one.operationId).filter(Boolean))
  assert.deepEqual(names.filter((name, i) => names.indexOf(name) !== i), [])
  assert.ok(names.length > 100)
})

const exchange = (more) => ({
  method: 'GET',
  target: '/shop/_revs_limit',
  requestHeaders: {},
  status: 200,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  text: '1000\n',
  ...more
})

test('what differs from the description is found', () => {
  const same = [
    {},
    { method: 'HEAD', text: '' },
    { target: '/shop/_revs_limit?nonsense=1' },
    { method: 'PUT', requestHeaders: { 'Content-Type': 'text/plain' }, body: '5', text: '{"ok":true}' },
    { status: 404, text: '{"error":"not_found","reason":"missing"}' },
    { method: 'PUT', body: '"?"', status: 400, text: '{"error":"bad_request","reason":"..."}' },
    { target: '/shop/_changes?feed=continuous', text: '{"seq":"1","id":"a","changes":[{"rev":"1-a"}]}\n\n{"last_seq":"1","pending":0}\n' },
    { target: '/shop/_design/d/_show/f/a/b?x=1', headers: { 'content-type': 'text/html' }, status: 418, text: '<p>' },
    { target: '/shop/_local%2Fa', text: '{"_id":"_local/a","_rev":"0-1"}' },
    { method: 'DELETE', target: '/shop/a/b/c', text: '{"ok":true,"id":"a","rev":"2-a"}' },
    { method: 'COPY', target: '/shop/a', requestHeaders: { Destination: 'b' }, status: 201, text: '{"ok":true,"id":"b","rev":"1-a"}' }
  ]
  for (const more of same) assert.equal(differenceOf(exchange(more)).wrong, undefined, JSON.stringify(more))
  const different = [
    [{ target: '/_unknown' }, /the path is not described/],
    [{ target: '/shop/_unknown' }, /the path is not described/],
    [{ method: 'DELETE' }, /the method is not described/],
    [{ status: 202 }, /the status is not described/],
    [{ text: '"1000"' }, /must be integer/],
    [{ text: '{' }, /not JSON/],
    [{ headers: { 'content-type': 'text/plain' } }, /text\/plain is not described/],
    [{ headers: {} }, /undefined is not described/],
    [{ target: '/shop/_revs_limit?x=1' }, /the parameter x is not described/],
    [{ target: '/shop/_all_docs?limit=x', text: '{"rows":[]}' }, /the parameter limit: .*must be integer/],
    [{ target: '/shop/_all_docs?key=x', text: '{"rows":[]}' }, /the parameter key: /],
    [{ target: '/shop/_all_docs', text: '{"rows":[{"id":"a","key":"a","value":1,"more":1}]}' }, /\/rows\/0 must not have a member more/],
    [{ target: '/_search_analyze?text=a', text: '{"tokens":[]}' }, /the parameter analyzer is required/],
    [{ method: 'PUT', body: '{}', text: '{"ok":true}' }, /must be integer/],
    [{ method: 'PUT', text: '{"ok":true}' }, /the body is required/],
    [{ status: 404, text: '{"error":"not_found"}' }, /must have a member reason/],
    [{ status: 404, text: '{"error":"not_found","reason":"missing","more":1}' }, /must not have a member more/],
    [{ target: '/shop/_changes?feed=continuous', text: '{"seq":"1","id":"a"}\n' }, /must have a member changes/]
  ]
  for (const [more, wrong] of different) assert.match(differenceOf(exchange(more)).wrong ?? '', wrong, JSON.stringify(more))
})

test('the rows of streams are compared', () => {
  const stream = { target: '/shop/_changes?feed=eventsource', headers: { 'content-type': 'text/event-stream' }, text: undefined }
  const { wrong, differenceOfRow } = differenceOf(exchange(stream))
  assert.equal(wrong, undefined)
  const row = { seq: '1', id: 'a', changes: [{ rev: '1-a' }] }
  assert.equal(differenceOfRow(row), undefined)
  assert.match(differenceOfRow({ ...row, changes: 1 }), /\/changes must be array/)
})

testWithServer('the server sends the description', {}, async (server) => {
  const { json, headers } = await server.client.get('/_openapi')
  assert.deepEqual(json, api)
  assert.match(headers['content-type'], /^application\/json/)
  // Without a user, and compressed.
  const response = await fetch(`${server.url}/_openapi`)
  assert.equal(response.headers.get('content-encoding'), 'gzip')
  assert.deepEqual(await response.json(), api)
  const again = await fetch(`${server.url}/_openapi`, { headers: { 'If-None-Match': response.headers.get('etag') } })
  assert.equal(again.status, 304)
})
