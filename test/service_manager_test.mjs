// What a server tells the service manager that started it (systemd). docs/administration.md
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import path from 'node:path'
import { test } from 'node:test'
import { runDivan, Server, temporaryDirectory } from './support/server.mjs'
import { waitFor } from './support/wait.mjs'

const script = path.join(import.meta.dirname ?? '.', 'support/notify_socket.py')

/** A manager's socket: {path, messages}, which grow, and close(). */
async function manager() {
  const socket = path.join(temporaryDirectory(), 'notify')
  const child = spawn('python3', [script, socket], { stdio: ['ignore', 'pipe', 'inherit'] })
  const found = { path: socket, text: '', close: () => child.kill('SIGKILL') }
  Object.defineProperty(found, 'messages', { get: () => found.text.split('\n').slice(1, -1) })
  child.stdout.setEncoding('utf8').on('data', (piece) => (found.text += piece))
  await waitFor('the socket', () => found.text.startsWith('bound\n'))
  return found
}

test('a service reports that it is ready, that it is alive, that it restarts and that it stops', async () => {
  const systemd = await manager()
  try {
    const server = await Server.start({ env: { NOTIFY_SOCKET: systemd.path, WATCHDOG_USEC: '300000' } })
    await waitFor('readiness', () => systemd.messages.length > 0)
    assert.equal(systemd.messages[0], `READY=1,STATUS=Listening on ${server.url}`)
    await waitFor('watchdog messages', () => systemd.messages.filter((message) => message === 'WATCHDOG=1').length > 3)
    // A process that does not run says nothing. What it sent before has arrived when it is frozen.
    await server.freeze()
    const before = systemd.messages.length
    server.thaw()
    await waitFor('more watchdog messages', () => systemd.messages.length > before)
    await server.client.ok('POST', '/_node/_local/_restart', {})
    await waitFor('the restart', () => systemd.messages.some((message) => /^RELOADING=1,MONOTONIC_USEC=\d+,STATUS=Restarting$/.test(message)))
    await waitFor('readiness after it', () => systemd.messages.filter((message) => message.startsWith('READY=1')).length === 2)
    assert.equal(systemd.messages.some((message) => message.startsWith('STOPPING')), false)
    await server.stop()
    await waitFor('the end', () => systemd.messages.at(-1) === 'STOPPING=1,STATUS=Stopping')
  } finally {
    systemd.close()
  }
})

test('without a watchdog, and for another process, no watchdog messages are sent', async () => {
  for (const env of [{}, { WATCHDOG_USEC: '1000', WATCHDOG_PID: '1' }, { WATCHDOG_USEC: '-5' }, { WATCHDOG_USEC: 'x' }]) {
    const systemd = await manager()
    try {
      const server = await Server.start({ env: { NOTIFY_SOCKET: systemd.path, ...env } })
      await server.stop()
      await waitFor('the end', () => systemd.messages.at(-1) === 'STOPPING=1,STATUS=Stopping')
      assert.deepEqual(systemd.messages.filter((message) => message.startsWith('WATCHDOG')), [])
    } finally {
      systemd.close()
    }
  }
})

test('a server runs although its manager does not listen', async () => {
  for (const socket of ['/nowhere/notify', `/tmp/${'x'.repeat(200)}`, '@divan-test-without-listener']) {
    const server = await Server.start({ env: { NOTIFY_SOCKET: socket } })
    await waitFor('the warning', () => server.log.includes('Cannot notify the service manager'))
    await server.stop()
  }
  const { code } = await runDivan(['--version'], { env: { NOTIFY_SOCKET: '/nowhere/notify' } })
  assert.equal(code, 0)
})
