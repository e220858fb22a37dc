// The text cases in cases/, each in databases of its own on one server.
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { readCases, runCase } from './support/cases.mjs'
import { shareServer } from './support/server.mjs'

const it = shareServer()
const directory = fileURLToPath(new URL('./cases/', import.meta.url))
const wanted = process.env.DIVAN_CASES ?? ''

let number = 0
for (const name of readdirSync(directory).sort()) {
  if (!name.endsWith('.txt') || !name.includes(wanted)) continue
  const file = path.join('test/cases', name)
  for (const one of readCases(path.join(directory, name))) {
    const database = `case${String(++number).padStart(4, '0')}`
    it(`${name}:${one.line} ${one.title}`, async ({ client }) => {
      await client.ok('PUT', `/${database}`)
      try {
        await runCase(client, file, one, database)
      } finally {
        const range = `start_key="${database}"&end_key="${database}_zzz"`
        const names = (await client.get(`/_all_dbs?${range}`)).json
        for (const left of names) await client.delete(`/${encodeURIComponent(left)}`)
      }
    })
  }
}
