// What the parts of the description are written with: JSON schemas, and operations of OpenAPI 3.1.

export const string = { type: 'string' }
export const integer = { type: 'integer' }
export const count = { type: 'integer', minimum: 0 }
export const number = { type: 'number' }
export const boolean = { type: 'boolean' }
/** Any JSON value. */
export const any = {}
/** A JSON object with any members. */
export const anyObject = { type: 'object' }

/** One of these strings. */
export const oneOf = (...values) => ({ type: 'string', enum: values })
/** This value only. */
export const exactly = (value) => ({ const: value })
/** The schema, or null. */
export const nullable = (schema) =>
  schema.type && !schema.enum ? { ...schema, type: [schema.type, 'null'] } : either(schema, { type: 'null' })
/** One of several schemas. */
export const either = (...schemas) => ({ anyOf: schemas })
export const array = (items) => ({ type: 'array', items })
/** An object whose members all have this schema; their names are data. */
export const map = (values) => ({ type: 'object', additionalProperties: values })
export const ref = (name) => ({ $ref: `#/components/schemas/${name}` })
/** The schema with a description and, optionally, a default value. */
export const is = (schema, description, fallback) => ({
  ...schema,
  description,
  ...(fallback !== undefined && { default: fallback })
})

/** An object with these members and no others. A name that ends with ? is that of an optional member. */
export function object(members, more = {}) {
  const properties = {}
  const required = []
  for (const [name, schema] of Object.entries(members)) {
    const optional = name.endsWith('?')
    properties[optional ? name.slice(0, -1) : name] = schema
    if (!optional) required.push(name)
  }
  return { type: 'object', properties, ...(required.length > 0 && { required }), additionalProperties: false, ...more }
}
/** An object with these members, and possibly others. */
export const open = (members) => object(members, { additionalProperties: true })

export const ok = ref('Ok')

/** Who may use an operation: the sentence, and the security requirement. */
export const ACCESS = {
  everyone: ['Everyone, also without a name.', [{}]],
  member: ['Members and admins of the database, and server administrators.', []],
  'database admin': ['Admins of the database, and server administrators.', []],
  jobs: ['Server administrators and users with the role `jobs`.', ['jobs']],
  events: ['Server administrators and users with the role `events`.', ['events']],
  metrics: ['Server administrators and users with the role `_metrics`.', ['_metrics']],
  administrator: ['Server administrators.', ['_admin']]
}
const SCHEMES = ['basic', 'cookie', 'bearer']

function parameters(place, given = {}) {
  return Object.entries(given).map(([key, value]) => {
    const name = key.replace(/[!]$/, '')
    const { json, slashes, description, example, ...schema } = value
    return {
      name,
      in: place,
      ...(description && { description }),
      ...(key.endsWith('!') && { required: true }),
      ...(json ? { content: { 'application/json': { schema } } } : { schema })
    }
  })
}
/** A parameter of the query that is JSON, as `key=["a",1]`. */
export const asJson = (schema, description) => ({ ...schema, json: true, ...(description && { description }) })

const isContent = (value) => value !== undefined && Object.keys(value).some((name) => name.includes('/'))
const content = (value) => (isContent(value) ? value : { 'application/json': { schema: value } })

/**
 * An operation.
 * `ok`: {status: [description, schema or {media type: {schema}}, {header: description}]}
 * `errors`: {status: description}, besides those that every operation has.
 * `body`: a schema, or {media type: {schema}}; `needsBody` if it is required.
 */
export function operation(summary, { text, access, query, headers, body, needsBody, ok: good, errors = {}, rest = {} }) {
  const [who, roles] = ACCESS[access]
  const responses = {}
  for (const [status, [description, schema, fields]] of Object.entries(good)) {
    responses[status] = {
      description,
      ...(fields && {
        headers: Object.fromEntries(Object.entries(fields).map(([name, about]) => [name, { description: about, schema: string }]))
      }),
      ...(schema && { content: content(schema) })
    }
  }
  for (const [status, description] of Object.entries(errors))
    responses[status] = { description, content: content(ref('Error')) }
  responses.default = { $ref: '#/components/responses/Error' }
  const all = [...parameters('query', query), ...parameters('header', headers)]
  return {
    summary,
    description: [text, `*Who:* ${who}`].filter(Boolean).join('\n\n'),
    ...(all.length > 0 && { parameters: all }),
    ...(body && { requestBody: { ...(needsBody && { required: true }), content: content(body) } }),
    responses,
    security: access === 'everyone' ? roles : SCHEMES.map((name) => ({ [name]: roles })),
    ...rest
  }
}
