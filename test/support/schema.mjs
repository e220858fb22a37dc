// Checks values with the part of JSON Schema 2020-12 that docs/openapi/ uses. Unlike a compiler of schemas it costs nothing
// for schemas that a test file does not use, which are most. openapi_test.mjs compares it with such a compiler.

/** The keywords that are checked, and those without a meaning for values. */
export const KEYWORDS = new Set(
  '$ref type const enum anyOf properties required additionalProperties items minItems maxItems minimum maximum pattern description default'.split(' ')
)

const patterns = new Map()
function matches(pattern, text) {
  if (!patterns.has(pattern)) patterns.set(pattern, new RegExp(pattern, 'u'))
  return patterns.get(pattern).test(text)
}

function isOfType(type, value) {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return value !== null && typeof value === 'object' && !Array.isArray(value)
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}

/**
 * Returns the difference between a value and a schema, {at: a JSON pointer, what}, or undefined. `resolve` returns the schema
 * of a reference.
 */
export function differenceOfValue(schema, value, resolve, at = '') {
  const wrong = (what) => ({ at, what })
  const below = (inner, name, of) => differenceOfValue(inner, of, resolve, `${at}/${name}`)
  if (schema.$ref) return differenceOfValue(resolve(schema), value, resolve, at)
  if ('const' in schema && value !== schema.const) return wrong(`must be ${JSON.stringify(schema.const)}`)
  if (schema.enum && !schema.enum.includes(value)) return wrong(`must be one of ${schema.enum}`)
  if (schema.type && ![schema.type].flat().some((type) => isOfType(type, value))) return wrong(`must be ${schema.type}`)
  if (schema.anyOf) {
    let best
    for (const alternative of schema.anyOf) {
      const found = differenceOfValue(alternative, value, resolve, at)
      if (!found) return undefined
      // The deepest, since that of an alternative that was not meant is of the value itself.
      if (!best || found.at.length > best.at.length) best = found
    }
    return best
  }
  if (typeof value === 'string') return schema.pattern && !matches(schema.pattern, value) ? wrong(`must match ${schema.pattern}`) : undefined
  if (typeof value === 'number') {
    if (value < schema.minimum) return wrong(`must be at least ${schema.minimum}`)
    return value > schema.maximum ? wrong(`must be at most ${schema.maximum}`) : undefined
  }
  if (Array.isArray(value)) {
    if (value.length < schema.minItems || value.length > schema.maxItems) return wrong(`has ${value.length} elements`)
    for (let i = 0; schema.items && i < value.length; ++i) {
      const found = below(schema.items, i, value[i])
      if (found) return found
    }
    return undefined
  }
  if (value === null || typeof value !== 'object') return undefined
  for (const name of schema.required ?? []) if (!Object.hasOwn(value, name)) return wrong(`must have a member ${name}`)
  const { properties = {}, additionalProperties = true } = schema
  for (const name of Object.keys(value)) {
    const inner = Object.hasOwn(properties, name) ? properties[name] : additionalProperties
    if (inner === false) return wrong(`must not have a member ${name}`)
    const found = inner === true ? undefined : below(inner, name, value[name])
    if (found) return found
  }
  return undefined
}
