// Joins the parts of this folder into the OpenAPI 3.1 description of the HTTP API.
//   node docs/openapi/build.mjs [FILE]    writes it as JSON to FILE, or to the standard output
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as common from './common.mjs'
import * as attachments from './attachments.mjs'
import * as databases from './databases.mjs'
import * as designs from './designs.mjs'
import * as documents from './documents.mjs'
import * as feeds from './feeds.mjs'
import * as find from './find.mjs'
import * as jobs from './jobs.mjs'
import * as node from './node.mjs'
import * as replication from './replication.mjs'
import * as search from './search.mjs'
import * as server from './server.mjs'
import * as views from './views.mjs'
import * as workers from './workers.mjs'

const PARTS = [
  server, databases, documents, attachments, views, find, search, designs, feeds, replication, jobs, workers, node
]

// The segments of a path that begin with a letter or an underscore, for the name of an operation.
function operationId(method, path) {
  const words = path.match(/[A-Za-z]+/g) ?? ['root']
  return method + words.map((word) => word[0].toUpperCase() + word.slice(1)).join('')
}

// The parameters in a path: those of common.mjs.
function pathParameters(path) {
  return [...path.matchAll(/\{([a-z]+)\}/g)].map(([, name]) => {
    if (!common.parameters[name]) throw new Error(`${path}: unknown parameter ${name}`)
    return { $ref: `#/components/parameters/${name}` }
  })
}

// Makes a component of each parameter that several operations have.
function shareParameters(paths, components) {
  const uses = new Map()
  const operations = Object.values(paths).flatMap((item) => Object.values(item).filter((value) => value.responses))
  for (const { parameters = [] } of operations) {
    for (const parameter of parameters) {
      const text = JSON.stringify(parameter)
      uses.set(text, (uses.get(text) ?? 0) + 1)
    }
  }
  const names = new Map()
  for (const [text, count] of uses) {
    if (count === 1) continue
    const parameter = JSON.parse(text)
    let name = parameter.name
    for (let i = 2; components[name]; ++i) name = `${parameter.name}-${i}`
    components[name] = parameter
    names.set(text, name)
  }
  const share = (parameter) => {
    const name = names.get(JSON.stringify(parameter))
    return name ? { $ref: `#/components/parameters/${name}` } : parameter
  }
  for (const operation of operations) {
    if (operation.parameters) operation.parameters = operation.parameters.map(share)
  }
}

// The version of Divan.
function version() {
  const project = readFileSync(new URL('../../CMakeLists.txt', import.meta.url), 'utf8')
  return /project\(divan VERSION ([0-9.]+)/.exec(project)[1]
}

export function describe() {
  const paths = {}
  const schemas = { ...common.schemas }
  for (const part of PARTS) {
    Object.assign(schemas, part.schemas)
    for (const [path, operations] of Object.entries(part.paths)) {
      if (paths[path]) throw new Error(`${path} is described twice`)
      const inPath = pathParameters(path)
      paths[path] = inPath.length > 0 ? { parameters: inPath } : {}
      for (const [method, operation] of Object.entries(operations))
        paths[path][method] = { tags: [part.tag.name], operationId: operationId(method, path), ...operation }
    }
  }
  const parameters = { ...common.parameters }
  shareParameters(paths, parameters)
  return {
    openapi: '3.1.0',
    info: { ...common.info, version: version() },
    servers: [{ url: '/' }],
    tags: PARTS.map((part) => part.tag),
    security: [{ basic: [] }, { cookie: [] }, { bearer: [] }],
    paths,
    components: {
      schemas,
      parameters,
      responses: common.responses,
      securitySchemes: common.securitySchemes
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const json = JSON.stringify(describe(), null, process.argv[2] ? 0 : 2) + '\n'
  if (process.argv[2]) writeFileSync(process.argv[2], json)
  else process.stdout.write(json)
}
