// Lists what the programs consist of, as CycloneDX 1.5 (https://cyclonedx.org): the Debian packages of the libraries that they
// load, and the npm packages of the dashboard.
//   node deploy/sbom.mjs VERSION PROGRAM...
import { execFileSync } from 'node:child_process'
import { readFileSync, realpathSync } from 'node:fs'

const [version, ...programs] = process.argv.slice(2)
const output = (command, ...args) => execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

// The files of libraries, with those that they load themselves.
const libraries = new Set(programs.flatMap((program) => [...output('ldd', program).matchAll(/=> (\/\S+)/g)].map(([, file]) => file)))
// Packages name some files without /usr, of which the folders without it are links.
const owner = (file) => {
  const real = realpathSync(file)
  try {
    return output('dpkg-query', '-S', real).split(':')[0]
  } catch {
    return output('dpkg-query', '-S', real.replace(/^\/usr/, '')).split(':')[0]
  }
}
const names = [...new Set([...libraries].map(owner))].sort()
const debian = output('dpkg-query', '-W', '-f', '${Package} ${Version} ${Architecture}\\n', ...names).trim().split('\n').map((line) => {
  const [name, version, architecture] = line.split(' ')
  return { type: 'library', name, version, purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}` }
})

const lock = JSON.parse(readFileSync(new URL('../web/package-lock.json', import.meta.url), 'utf8'))
const npm = Object.entries(lock.packages).filter(([path, { dev, optional }]) => path && !dev && !optional).map(([path, { version, license }]) => {
  const name = path.replace(/^.*node_modules\//, '')
  return { type: 'library', name, version, purl: `pkg:npm/${name.replace('@', '%40')}@${version}`, ...(license && { licenses: [{ expression: license }] }) }
})

const main = { type: 'application', name: 'divan', version, licenses: [{ expression: 'Apache-2.0' }] }
console.log(JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, metadata: { component: main }, components: [...debian, ...npm] }, null, 1))
