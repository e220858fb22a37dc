// Sends letters: node example.mjs http://admin:secret@127.0.0.1:5984
import { Divan } from './index.mjs' // 'divan-jobs' where it is installed

const divan = new Divan(process.argv[2] ?? 'http://admin:secret@127.0.0.1:5984')
await divan.declare('letter', { max_attempts: 5 })

const worker = divan.worker({ role: 'post-office' })
worker.handle(
  'letter',
  async (job) => {
    await job.update({ progress: { franked: true } })
    console.log(`to ${job.data.to}: ${job.data.text}`)
    return { sentAt: Date.now() }
  },
  { concurrency: 10 }
)
worker.on('online', () => console.log('online'))
worker.on('offline', (error) => console.log(`waiting for the server: ${error.message}`))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => worker.stop({ timeout: 10_000 }))

await divan.enqueue('letter', 'welcome-ann', { to: 'Ann', text: 'Welcome!' })
await worker.run()
