// Calls a kit for a test: reads {"call": …, "args": […], "options": {…}} in lines, and answers {"result": …}
// or {"error": …} in lines.
//   node caller.mjs URL
import { createInterface } from 'node:readline'
import { Divan } from '../../clients/js/index.mjs'

let divan = new Divan(process.argv[2])

async function make({ call, args = [], options }) {
  if (call === 'connect') return void (divan = new Divan(...args))
  const given = options ? [...args, options] : args
  if (call !== 'list') return divan[call](...given)
  const jobs = []
  for await (const job of divan.list(...given)) jobs.push(job)
  return jobs
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await make(JSON.parse(line)).then(
    (result) => ({ result }),
    (error) => ({
      error: error.error ?? error.code ?? error.name, status: error.status, added: error.added?.length,
      text: `${error.stack} ${JSON.stringify({ ...error, added: undefined })}`
    })
  )
  process.stdout.write(JSON.stringify(answer) + '\n')
}
process.exit()
