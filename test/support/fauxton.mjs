// Fauxton's released files, from its npm package. The package's dependencies are those of its build, hundreds of packages, so
// it is not installed: only its archive is fetched, once.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const VERSION = '1.2.6'
const SHA512 = '5ZwPKqstwmQclSHifWBmbyzlBOLoBB3gssGaiEFLPcIzHO0Zxz+uPr/D/Fs6DGH7Hfohw7s6zqcjwU9CRcshfw=='

/** The folder of the files. */
export function fauxtonFolder() {
  const modules = fileURLToPath(new URL('../node_modules/', import.meta.url))
  const folder = path.join(modules, `.fauxton-${VERSION}`)
  const files = path.join(folder, 'package/dist/release')
  if (existsSync(files)) return files
  const incomplete = `${folder}.${process.pid}`
  mkdirSync(incomplete, { recursive: true })
  try {
    execFileSync('npm', ['pack', `fauxton@${VERSION}`, '--silent', '--pack-destination', incomplete], { stdio: ['ignore', 'ignore', 'inherit'] })
    const archive = path.join(incomplete, `fauxton-${VERSION}.tgz`)
    const digest = createHash('sha512').update(readFileSync(archive)).digest('base64')
    if (digest !== SHA512) throw new Error(`fauxton ${VERSION} has another digest: ${digest}`)
    execFileSync('tar', ['-xzf', archive, '-C', incomplete, 'package/dist/release'])
    rmSync(folder, { recursive: true, force: true })
    renameSync(incomplete, folder)
  } finally {
    rmSync(incomplete, { recursive: true, force: true })
  }
  return files
}
