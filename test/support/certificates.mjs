// Certificates of a test's own, made with the program openssl.
import { execFileSync, spawnSync } from 'node:child_process'
import path from 'node:path'
import { temporaryDirectory } from './server.mjs'

/** Why tests that need certificates are skipped, or false. */
export const noOpenssl = spawnSync('openssl', ['version']).status === 0 ? false : 'there is no program openssl to make certificates with'

const openssl = (...args) => execFileSync('openssl', args, { stdio: 'pipe' })
const newKey = (file) => ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', file]

/** A certificate authority. `file` is its certificate, with which others verify those that it has issued. */
export class Authority {
  #directory = temporaryDirectory()
  file = this.#path('ca.pem')

  constructor() {
    openssl('req', '-x509', ...newKey(this.#path('ca.key')), '-out', this.file, '-days', '2', '-subj', '/CN=ca')
  }

  /** Issues a certificate and a key, for a program that trusts this authority: the paths {certificate, key, ca}. */
  give(name) {
    const [request, key, certificate] = ['csr', 'key', 'pem'].map((kind) => this.#path(`${name}.${kind}`))
    openssl('req', ...newKey(key), '-out', request, '-subj', `/CN=${name}`)
    const by = ['-CA', this.file, '-CAkey', this.#path('ca.key'), '-CAcreateserial']
    openssl('x509', '-req', '-in', request, ...by, '-days', '2', '-out', certificate)
    return { certificate, key, ca: this.file }
  }

  /** The path of a copy of this key, encrypted. */
  encrypted(key, password) {
    openssl('pkcs8', '-topk8', '-in', key, '-out', `${key}.encrypted`, '-passout', `pass:${password}`)
    return `${key}.encrypted`
  }

  #path(name) {
    return path.join(this.#directory, name)
  }
}
