// The description of the HTTP API (docs/openapi/). All other tests compare their requests and responses with it
// (support/openapi.mjs).
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import Ajv from 'ajv/dist/2020.js'
import { describe } from '../docs/openapi/build.mjs'
import { differenceOf } from './support/openapi.mjs'

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

test('each schema is valid JSON Schema, and has only keywords that are checked', () => {
  const ajv = new Ajv({ allowUnionTypes: true, strictRequired: true })
  const inPlace = (schema) => JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', 'schema:'))
  for (const [name, schema] of Object.entries(api.components.schemas)) ajv.addSchema({ $id: `schema:${name}`, ...inPlace(schema) })
  for (const name of Object.keys(api.components.schemas)) ajv.getSchema(`schema:${name}`)
  for (const schema of schemas({ ...api.paths, ...api.components.parameters })) ajv.compile(inPlace(schema))
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

test("the server's routes are described, and no others", () => {
  const source = readFileSync(new URL('../divan/api/routes.cc', import.meta.url), 'utf8')
  const table = (name) => {
    const body = new RegExp(`${name}\\(\\) \\{(.*?)\\n\\}\\n`, 's').exec(source)[1]
    return [...body.matchAll(/^ {6}\{(?:"(\w+)"|kFavicon), /gm)].map(([, route]) => route ?? 'favicon.ico')
  }
  const paths = Object.keys(api.paths).map((path) => path.split('/').slice(1))
  const described = (begin) => {
    const matching = paths.filter((path) => begin.every((segment, i) => path[i] === segment))
    return [...new Set(matching.map((path) => path[begin.length]))].filter((name) => name && !name.startsWith('{')).sort()
  }
  assert.deepEqual(described([]), [...new Set([...table('server_routes'), '_openapi'])].sort())
  const others = ['_bulk_docs', '_design', '_local', '_partition']
  assert.deepEqual(described(['{db}']), [...table('database_routes'), ...others].sort())
  const designs = /design_route\(.*?\n\}\n/s.exec(source)[0]
  const inDesigns = [...designs.matchAll(/path\[3\] == "(\w+)"/g)].map(([, route]) => route)
  assert.deepEqual(described(['{db}', '_design', '{ddoc}']), [...new Set(['_view', ...inDesigns])].sort())
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
    [{ target: '/shop/_all_docs', text: '{"rows":[{"id":"a","key":"a","value":1,"more":1}]}' }, /\/rows\/0 must NOT have additional properties/],
    [{ target: '/_search_analyze?text=a', text: '{"tokens":[]}' }, /the parameter analyzer is required/],
    [{ method: 'PUT', body: '{}', text: '{"ok":true}' }, /must be integer/],
    [{ method: 'PUT', text: '{"ok":true}' }, /the body is required/],
    [{ status: 404, text: '{"error":"not_found"}' }, /must have required property 'reason'/],
    [{ status: 404, text: '{"error":"not_found","reason":"missing","more":1}' }, /additional properties/],
    [{ target: '/shop/_changes?feed=continuous', text: '{"seq":"1","id":"a"}\n' }, /must have required property 'changes'/]
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
