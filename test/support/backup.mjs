// Backups, and servers that are restored from them.
import assert from 'node:assert/strict'
import path from 'node:path'
import { runDivan, Server, temporaryDirectory } from './server.mjs'

/** Runs a command on the server: {code, stdout, stderr}. */
export function run(server, args, url = server.url) {
  return runDivan([...args, '--quiet', '--url', url, '--user', server.credentials])
}

/** Takes a backup and returns its file. */
export async function backUp(server) {
  const file = path.join(temporaryDirectory(), 'backup')
  const { code, stderr } = await run(server, ['backup', file])
  assert.equal(code, 0, stderr)
  return file
}

/** Restores databases of a backup into a running server. */
export async function restoreInto(server, file, ...args) {
  const { code, stderr } = await run(server, ['restore', file, ...args])
  assert.equal(code, 0, stderr)
}

/** Restores a backup into a new data directory, and runs `body` on a server there. */
export async function withRestored(file, body) {
  const dataDir = path.join(temporaryDirectory(), 'new')
  const { code, stderr } = await runDivan(['restore', file, '--quiet', '--data-dir', dataDir])
  assert.equal(code, 0, stderr)
  const server = await Server.start({ dataDir, env: { DIVAN_DIVAN_STORE: 'embedded' } })
  try {
    await body(server)
  } finally {
    await server.stop()
  }
}
