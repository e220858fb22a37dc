// The Debian package of this build: its files and its metadata. test/package/install.sh installs it. docs/installation.md
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { brokenLinks } from './support/links.mjs'
import { binary, hasSanitizers, temporaryDirectory } from './support/server.mjs'

const buildDir = path.dirname(binary)
const output = (command, ...args) => execFileSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28 })

function build() {
  const directory = temporaryDirectory()
  output('cmake', '--build', buildDir, '--target', 'package_files')
  execFileSync('cpack', ['-G', 'DEB', '-B', directory], { cwd: buildDir, env: { ...process.env, SOURCE_DATE_EPOCH: '1795852800' }, stdio: 'pipe' })
  const [name] = readdirSync(directory).filter((each) => each.endsWith('.deb'))
  return path.join(directory, name)
}

test('the package has the programs, a service, pages, completions and settings, and no passwords', () => {
  const file = build()
  assert.match(path.basename(file), /^divan_\d+\.\d+\.\d+_\w+\.deb$/)
  const field = (name) => output('dpkg-deb', '--field', file, name).trim()
  assert.equal(field('Package'), 'divan')
  for (const name of ['libc6', 'librocksdb', 'systemd']) assert.match(field('Depends'), new RegExp(`\\b${name}`))
  const listed = output('dpkg-deb', '--contents', file).trim().split('\n').map((line) => line.split(/\s+/))
  const files = new Map(listed.map(([mode, owner, , , , name]) => [name.slice(1), { mode, owner }]))
  for (const name of ['/usr/bin/divan', '/usr/bin/divan-js']) assert.equal(files.get(name)?.mode, '-rwxr-xr-x', name)
  for (const name of ['/etc/divan/divan.ini', '/usr/lib/systemd/system/divan.service', '/usr/lib/sysusers.d/divan.conf', '/usr/lib/tmpfiles.d/divan.conf', '/usr/share/man/man1/divan.1.gz', '/usr/share/man/man1/divan-jobs-watch.1.gz', '/usr/share/man/man5/divan.ini.5.gz',
    '/usr/share/bash-completion/completions/divan', '/usr/share/zsh/vendor-completions/_divan', '/usr/share/fish/vendor_completions.d/divan.fish', '/usr/share/doc/divan/copyright', '/usr/share/doc/divan/third-party-licenses.txt.gz', '/usr/share/doc/divan/CHANGELOG.md',
    '/usr/share/doc/divan/docs/operations.md', '/usr/share/doc/divan/docs/api/index.md', '/usr/share/doc/divan/docs/decisions/README.md', '/usr/share/doc/divan/deploy/grafana/divan.json', '/usr/share/doc/divan/deploy/prometheus/rules.yml']) assert.equal(files.get(name)?.mode, '-rw-r--r--', name)
  for (const [name, { owner }] of files) assert.equal(owner, 'root/root', name)
  // Nothing of what programs that link the library need.
  assert.deepEqual([...files.keys()].filter((name) => !name.startsWith('/usr/share/doc/') && /\.(h|a|cmake)$|include/.test(name)), [])
  const control = temporaryDirectory()
  output('dpkg-deb', '--control', file, control)
  assert.deepEqual(readdirSync(control).sort(), ['conffiles', 'control', 'md5sums', 'postinst', 'postrm', 'preinst', 'prerm'])
  assert.equal(readFileSync(path.join(control, 'conffiles'), 'utf8'), '/etc/divan/divan.ini\n')
  for (const script of ['preinst', 'postinst', 'prerm', 'postrm']) {
    assert.equal(statSync(path.join(control, script)).mode & 0o777, 0o755)
    output('sh', '-n', path.join(control, script))
  }
  assert.match(readFileSync(path.join(control, 'preinst'), 'utf8'), new RegExp(`^new=${field('Version')}$`, 'm'))
  const root = temporaryDirectory()
  output('dpkg-deb', '--extract', file, root)
  const documentation = path.join(root, 'usr/share/doc/divan')
  assert.deepEqual(brokenLinks(documentation, readdirSync(documentation, { recursive: true }).filter((name) => name.endsWith('.md'))), [])
  const { metadata, components } = JSON.parse(readFileSync(path.join(root, 'usr/share/doc/divan/sbom.cdx.json'), 'utf8'))
  assert.equal(metadata.component.version, field('Version'))
  // Each package that it depends on for a library, with a version, and what the dashboard is made of.
  const depends = field('Depends').split(', ').map((each) => each.split(' ')[0]).filter((name) => name.startsWith('lib') && !name.startsWith('libgcc'))
  const versions = new Map(components.map(({ name, version }) => [name, version]))
  // Without those that are only another name of a package.
  const isPackage = (name) => spawnSync('dpkg-query', ['-W', '-f', '${Version}', name], { encoding: 'utf8' }).stdout !== ''
  for (const name of depends.filter(isPackage)) assert.ok(versions.get(name), `${name} is missing`)
  // What the programs contain, with a version and a licence: the dashboard's npm packages, and Debian's packages of templates and inline functions.
  const licences = gunzipSync(readFileSync(path.join(root, 'usr/share/doc/divan/third-party-licenses.txt.gz'))).toString()
  const licence = new Map(licences.split(/^(?===== \S+ \S+ \(.*\) ====$)/m).slice(1).map((text) => [text.split(' ')[1], text.slice(text.indexOf('\n'))]))
  const { packages } = JSON.parse(readFileSync(new URL('../web/package-lock.json', import.meta.url), 'utf8'))
  const npm = Object.keys(packages).filter((name) => name && !packages[name].dev && !packages[name].optional).map((name) => name.replace(/^.*node_modules\//, ''))
  assert.ok(npm.includes('preact') && npm.includes('@codemirror/state'))
  // Vite has a function that loads parts of the scripts.
  const headers = ['libabsl-dev', /^libboost[\d.]+-dev$/, 'libcli11-dev', 'libfmt-dev', 'libgeographiclib-dev', 'libicu-dev', /^libmozjs-\d+-dev$/, 'libre2-dev', 'librocksdb-dev', 'libsimdjson-dev', 'libspdlog-dev', 'prometheus-cpp-dev']
  const expected = [...npm, 'vite', ...headers.map((name) => (typeof name === 'string' ? name : [...versions.keys()].find((each) => name.test(each))))]
  assert.deepEqual([...licence.keys()].sort(), expected.sort())
  for (const [name, text] of licence) {
    assert.ok(versions.get(name), `${name} has no version`)
    assert.match(text, /copyright/i, name)
  }
  // Nothing depends on where it was built, except for the reports of sanitizers. The documentation may have that name by chance.
  const folder = path.resolve(buildDir, '../..')
  const isMade = (name) => statSync(path.join(root, name)).isFile() && (!name.startsWith('usr/share/doc/') || name.endsWith('/sbom.cdx.json'))
  for (const name of hasSanitizers() ? [] : readdirSync(root, { recursive: true }).filter(isMade)) {
    assert.ok(!readFileSync(path.join(root, name)).includes(folder), `${name} has the name of ${folder}`)
  }
  // The same build gives the same package.
  assert.deepEqual(readFileSync(build()), readFileSync(file))
})
