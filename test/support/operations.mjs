// Checks that the tests have used each operation of docs/openapi/ successfully, so that none is described that does not
// exist, or differs.
//   node support/operations.mjs FILE    a file that support/openapi.mjs has written
import { readFileSync } from 'node:fs'
import { describe } from '../../docs/openapi/build.mjs'

// What only `divan restore` and browsers send, which support/client.mjs does not see.
const OTHERS = ['PUT /_restore/{restore}/{piece}', 'GET /favicon.ico']

const seen = new Set(readFileSync(process.argv[2], 'utf8').split('\n'))
const missing = []
for (const [path, item] of Object.entries(describe().paths)) {
  for (const [method, { operationId }] of Object.entries(item)) {
    const name = `${method.toUpperCase()} ${path}`
    if (operationId && !seen.has(operationId) && !OTHERS.includes(name)) missing.push(name)
  }
}
if (missing.length > 0) {
  console.error(`No test has used these operations of docs/openapi/:\n  ${missing.join('\n  ')}`)
  process.exit(1)
}
