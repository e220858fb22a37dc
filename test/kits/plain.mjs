// A worker in plain HTTP that a test controls: it registers, sends heartbeats, and accepts one job.
//   node plain.mjs URL '{"type": …, "id": …, "how": "hold" | "beat", "timeout": …, "db": …}'
// "end" on stdin makes it send all kinds of reports for its job, the finish last.
import http from 'node:http'
import { createInterface } from 'node:readline'

const [url, options] = process.argv.slice(2)
const { type, id, how, timeout, db } = JSON.parse(options)
const { hostname, port, username, password } = new URL(url)
const say = (...words) => process.stdout.write(words.join(' ') + '\n')

// `onLine` gets the lines of a response that stays open.
function send(method, path, body, onLine) {
  const headers = { 'Content-Type': 'application/json' }
  const settings = { hostname, port, method, path, headers, auth: `${username}:${password}`, agent: onLine ? false : undefined }
  return new Promise((resolve, reject) => {
    const request = http.request(settings, (response) => {
      let text = ''
      if (onLine) createInterface({ input: response }).on('line', onLine)
      else response.setEncoding('utf8').on('data', (piece) => (text += piece))
      response.on('error', () => {})
      response.on('end', () => !onLine && resolve({ status: response.statusCode, json: JSON.parse(text) }))
    })
    request.on('error', reject)
    request.end(JSON.stringify(body))
  })
}

const path = `/_workers/${type}/${id}`
function hold() {
  return new Promise((resolve) =>
    send('POST', `${path}/_hold`, { timeout }, (line) => {
      if (!line) return
      const said = JSON.parse(line)
      if (said.error) say('received', said.error)
      else resolve(said)
    })
  )
}

const { incarnation } = how === 'hold' ? await hold() : (await send('PUT', path, { timeout })).json
setInterval(async () => {
  const { status, json } = await send('POST', `${path}/_heartbeat`, { incarnation })
  if (status !== 200) say('heartbeat', status, json.error)
}, timeout / 10)
say('online')

const { json } = await send('POST', `/_jobs/${type}/_accept`, { timeout: 60_000, worker: { role: type, id, incarnation } })
const [job] = json.jobs
say('ran', job.id, job.lock)

createInterface({ input: process.stdin }).on('line', async () => {
  const { lock } = job
  const act = async (action, body) => {
    const { status, json } = await send('POST', `/_jobs/${type}/${job.id}/_${action}`, { lock, ...body })
    say(action, status, json.error)
  }
  await act('update', { progress: { by: id } })
  const changes = { docs: { [db]: [{ _id: id }] }, jobs: { finish: [{ type, id: job.id, lock, data: { by: id } }] } }
  const transact = await send('POST', '/_transact', changes)
  say('transact', transact.status, transact.json.error)
  await act('fail', { error: 'from the grave' })
  await act('release')
  await act('finish', { data: { by: id } })
})
