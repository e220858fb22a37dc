// Keeps the demo's server busy until it ends: documents change, a trigger turns these changes into jobs, and two workers do them.
// node demo/live.mjs URL NAME:PASSWORD
import { setTimeout as pause } from 'node:timers/promises'
import { Divan } from '../clients/js/index.mjs'

const [url, user] = process.argv.slice(2)
const authorization = `Basic ${Buffer.from(user).toString('base64')}`
const base = new URL(url)
const [username, password] = user.split(':')
Object.assign(base, { username, password })

async function send(method, path, body) {
  const response = await fetch(`${url}/${path}`, {
    method, headers: { authorization, 'content-type': 'application/json' }, body: body && JSON.stringify(body)
  })
  return response.json()
}

const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopping.abort())
const random = (most) => Math.floor(Math.random() * most)

const divan = new Divan(base.href)
await divan.declare('review', { max_attempts: 3, backoff_min: 2000, retention: 600_000 })
await send('PUT', 'packages/_design/live', {
  triggers: { reviews: { selector: { checked_at: { $exists: true } }, job: { type: 'review', id: 'review-{_id}', data: { package: '{_id}' } } } }
})

const workers = ['ann', 'bob'].map((id) => {
  const worker = divan.worker({ role: 'reviewers', id })
  worker.handle('review', async (job) => {
    await pause(200 + random(1500), undefined, { signal: job.signal })
    if (random(12) === 0) throw new Error('The review has failed.')
    return { accepted: true }
  }, { concurrency: 2 })
  return worker
})

async function changeDocuments() {
  const { total_rows: total } = await send('GET', 'packages/_all_docs?limit=0')
  while (!stopping.signal.aborted) {
    const { rows } = await send('GET', `packages/_all_docs?include_docs=true&limit=1&skip=${random(Math.min(total, 10_000))}`)
    const { doc } = rows[0]
    if (!doc._id.startsWith('_')) await send('PUT', `packages/${encodeURIComponent(doc._id)}`, { ...doc, checked_at: new Date().toISOString() })
    await pause(300 + random(900), undefined, { signal: stopping.signal })
  }
}

stopping.signal.addEventListener('abort', () => workers.forEach((worker) => worker.stop({ timeout: 1000 })))
await Promise.all([...workers.map((worker) => worker.run()), changeDocuments().catch((error) => stopping.signal.aborted || Promise.reject(error))])
