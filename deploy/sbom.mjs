// Lists what the programs of a build consist of, in the folder `package` of the build:
//   sbom.cdx.json              as CycloneDX 1.5 (https://cyclonedx.org): the Debian packages of the libraries that they load, those of
//                              which they contain code, and the npm packages of which the dashboard has modules
//   third-party-licenses.txt   the licences of the code that they contain
//   node deploy/sbom.mjs VERSION BUILD_DIR
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const [version, build] = process.argv.slice(2)
const programs = ['divan', 'divan-js']
const output = (command, ...args) => execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28 })
const unique = (values) => [...new Set(values)].sort()

// Packages whose headers have only declarations in C, with macros and functions of few lines, for a shared library; and those of the
// compiler, whose licence has an exception for what it compiles.
const HAS_NO_CODE = /^(libc6|linux-libc|libgcc-\d+|libstdc\+\+-\d+|libcurl4-openssl|libgeos|libseccomp|libssl|libstemmer|libxxhash|zlib1g)-dev$/

// The packages that files are from. Some name files without /usr, of which the folders without it are links.
function owners(files) {
  const paths = unique(files.map((file) => realpathSync(file).replace(/^\/usr/, '')))
  const { stdout } = spawnSync('dpkg-query', ['-S', ...paths, ...paths.map((file) => `/usr${file}`)], { encoding: 'utf8', maxBuffer: 1 << 28 })
  const found = new Map([...stdout.matchAll(/^(?<name>[a-z\d.+-]+)(?:[:,].*)?: (?:\/usr)?(?<file>\/.*)$/gm)].map(({ groups: { name, file } }) => [file, name]))
  return unique(paths.map((file) => found.get(file) ?? assert.fail(`${file} is from no Debian package.`)))
}

// The libraries that the programs load, with those that these load.
const loaded = owners(programs.flatMap((program) => [...output('ldd', path.join(build, program)).matchAll(/=> (\/\S+)/g)].map(([, file]) => file)))

// The headers that the compiler has read for the programs, and static libraries. With -n, ninja writes nothing.
const inputs = output('ninja', '-n', '-C', build, '-t', 'inputs', ...programs).split('\n')
const headers = output('ninja', '-n', '-C', build, '-t', 'deps', ...inputs.filter((file) => /\.(o|gch|pch)$/.test(file))).match(/(?<=^ +)\/usr\/.*$/gm)
const compiled = owners([...headers, ...inputs.filter((file) => /^\/.*\.a$/.test(file))]).filter((name) => !HAS_NO_CODE.test(name))

// Without those for other processors.
const native = ['all', output('dpkg', '--print-architecture').trim()]
const debian = (names) => output('dpkg-query', '-W', '-f', '${Package} ${Version} ${Architecture} ${source:Package}=${source:Version}\\n', ...names)
  .trim().split('\n').map((line) => line.split(' ')).filter(([, , architecture]) => native.includes(architecture))
const licenses = path.join(build, 'web/licenses.txt') // of web/vite.config.ts
const dashboard = existsSync(licenses) ? readFileSync(licenses, 'utf8') : ''

const [, vendor] = /^ID="?(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8'))

const components = [
  ...debian(unique([...loaded, ...compiled])).map(([name, version, architecture]) =>
    ({ type: 'library', name, version, purl: `pkg:deb/${vendor}/${name}@${encodeURIComponent(version)}?arch=${architecture}` })),
  ...[...dashboard.matchAll(/^==== (\S+) (\S+) \((.*)\) ====$/gm)].map(([, name, version, license]) =>
    ({ type: 'library', name, version, purl: `pkg:npm/${name.replace('@', '%40')}@${version}`, licenses: [{ expression: license }] }))
]
const main = { type: 'application', name: 'divan', version, licenses: [{ expression: 'Apache-2.0' }] }
const sbom = { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, metadata: { component: main }, components }
writeFileSync(path.join(build, 'package/sbom.cdx.json'), `${JSON.stringify(sbom, null, 1)}\n`)

const sections = debian(compiled).map(([name, version, , source]) =>
  `==== ${name} ${version} (apt-get source ${source}) ====\n\n${readFileSync(`/usr/share/doc/${name}/copyright`, 'utf8').trim()}\n`)
writeFileSync(path.join(build, 'package/third-party-licenses.txt'), [
  dashboard,
  'The programs have code of the headers of these Debian packages, under the licences of their sources. Texts in\n/usr/share/common-licenses are part of each Debian system.\n',
  ...sections].join('\n'))
