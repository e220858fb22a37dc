// Writes the description as Markdown: a file for each tag, and index.md.
//   node docs/openapi/reference.mjs FOLDER
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe } from './build.mjs'

const METHODS = ['get', 'put', 'post', 'delete']
// Four spaces, which Python's Markdown needs for a list in a list.
const INDENT = '    '

const fileOf = (tag) => tag.toLowerCase().replaceAll(' ', '-') + '.md'
const nameOf = ($ref) => $ref.split('/').at(-1)
// A cell of a table has no lines and no bars.
const cell = (text) => String(text ?? '').replaceAll('\n', ' ').replaceAll('|', '\\|')

/** The Markdown of a description: [file name, text] of each file. */
export function reference(api) {
  const resolve = (object) => (object?.$ref ? object.$ref.split('/').slice(1).reduce((at, name) => at[name], api) : object)

  // A type in a few words: "array of string".
  function typeOf(schema) {
    if (schema.$ref) return `[${nameOf(schema.$ref)}](schemas.md#${nameOf(schema.$ref).toLowerCase()})`
    if ('const' in schema) return `\`${JSON.stringify(schema.const)}\``
    if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(', ')
    if (schema.anyOf) return schema.anyOf.map(typeOf).join(' or ')
    const types = [schema.type].flat().filter(Boolean)
    const names = types.map((type) => {
      if (type === 'array') return `array of ${typeOf(schema.items ?? {})}`
      if (type === 'object' && typeof schema.additionalProperties === 'object') return `object of ${typeOf(schema.additionalProperties)}`
      return type
    })
    return names.length > 0 ? names.join(' or ') : 'any'
  }

  // The members of objects, as nested lists. A reference is a link, unless it is the schema itself.
  function members(schema, depth = 0) {
    const lines = []
    const inner = schema.items ?? (typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined)
    for (const alternative of schema.anyOf ?? []) {
      if (alternative.properties || alternative.items) {
        lines.push(`${INDENT.repeat(depth)}- ${typeOf(alternative)}:`, ...members(alternative, depth + 1))
      }
    }
    for (const [name, member] of Object.entries(schema.properties ?? {})) {
      const notes = [
        schema.required?.includes(name) ? undefined : 'optional',
        member.default === undefined ? undefined : `default \`${JSON.stringify(member.default)}\``
      ].filter(Boolean)
      const about = member.description ? `: ${member.description}` : ''
      lines.push(`${INDENT.repeat(depth)}- \`${name}\` ${typeOf(member)}${notes.length > 0 ? ` (${notes.join(', ')})` : ''}${about}`)
      lines.push(...members(member, depth + 1))
    }
    if (inner && !inner.$ref) lines.push(...members(inner, depth))
    return lines
  }

  function parametersOf(item, operation) {
    const all = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolve)
    if (all.length === 0) return []
    const rows = all.map((parameter) => {
      const schema = parameter.schema ?? parameter.content['application/json'].schema
      const type = parameter.content ? `${typeOf(schema)}, as JSON` : typeOf(schema)
      const fallback = schema.default === undefined ? '' : ` Default: \`${schema.default}\`.`
      const needed = parameter.required && parameter.in !== 'path' ? ' Required.' : ''
      const description = (parameter.description ?? schema.description ?? '') + fallback + needed
      return `| \`${parameter.name}\` | ${parameter.in} | ${cell(type)} | ${cell(description)} |`
    })
    return ['| parameter | in | type | |', '|---|---|---|---|', ...rows, '']
  }

  function contentOf(content) {
    return Object.entries(content).flatMap(([type, { schema }]) => {
      if (!schema) return [`- \`${type}\``]
      return [`- \`${type}\`: ${typeOf(schema)}`, ...members(schema, 1)]
    })
  }

  function responsesOf(operation) {
    return Object.entries(operation.responses)
      .filter(([status]) => status !== 'default')
      .flatMap(([status, given]) => {
        const response = resolve(given)
        const isError = Number(status) >= 400
        const fields = Object.entries(response.headers ?? {}).map(([name, { description }]) => `- \`${name}\`: ${description}`)
        return [`**${status}** ${response.description}`, '', ...(isError ? [] : [...fields, ...contentOf(response.content ?? {})]), '']
      })
  }

  function pageOf(tag) {
    const lines = [`# HTTP API: ${tag.name}`, '', tag.description, '']
    for (const [route, item] of Object.entries(api.paths)) {
      for (const method of METHODS) {
        const operation = item[method]
        if (!operation?.tags.includes(tag.name)) continue
        lines.push(`## ${operation.summary}`, '', '```', `${method.toUpperCase()} ${route}`, '```', '', operation.description, '')
        lines.push(...parametersOf(item, operation))
        if (operation.requestBody) lines.push('Body:', '', ...contentOf(operation.requestBody.content), '')
        lines.push(...responsesOf(operation))
      }
    }
    return lines.join('\n')
  }

  function schemaPage() {
    const lines = ['# HTTP API: Schemas', '']
    for (const [name, schema] of Object.entries(api.components.schemas)) {
      lines.push(`## ${name}`, '')
      if (schema.description) lines.push(schema.description, '')
      if (!schema.properties) lines.push(`${typeOf(schema)}`, '')
      lines.push(...members(schema), '')
    }
    return lines.join('\n')
  }

  function index() {
    const lines = ['# HTTP API', '', api.info.description, '', 'A program can use:', '']
    for (const { description, ...scheme } of Object.values(api.components.securitySchemes)) {
      const how = scheme.type === 'http' ? `\`Authorization: ${scheme.scheme === 'basic' ? 'Basic' : 'Bearer'}\`` : `the cookie \`${scheme.name}\``
      lines.push(`- ${how}: ${description}`)
    }
    lines.push('', '| operations | |', '|---|---|')
    for (const tag of api.tags) lines.push(`| [${tag.name}](${fileOf(tag.name)}) | ${cell(tag.description.split('\n')[0])} |`)
    lines.push('', 'Objects that several operations have are in [schemas](schemas.md).', '')
    return lines.join('\n')
  }

  return [['index.md', index()], ...api.tags.map((tag) => [fileOf(tag.name), pageOf(tag)]), ['schemas.md', schemaPage()]]
}

export function writeReference(folder) {
  mkdirSync(folder, { recursive: true })
  for (const [file, text] of reference(describe())) writeFileSync(path.join(folder, file), text)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = process.argv[2]
  if (!folder) {
    console.error('usage: node docs/openapi/reference.mjs FOLDER')
    process.exit(2)
  }
  writeReference(folder)
}
