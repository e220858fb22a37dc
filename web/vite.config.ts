import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { defineConfig, type Plugin } from 'vite'

// The pages are served at /_utils/. `npm run dev` passes all other requests to a server, DIVAN_URL.
const server = process.env.DIVAN_URL ?? 'http://127.0.0.1:5984'

/** Writes licenses.txt: the licences of the npm packages whose modules are in the built scripts and styles. deploy/sbom.mjs reads its headings. */
const licenses = (): Plugin => ({
  name: 'licenses',
  generateBundle() {
    // Modules of Vite itself have no files.
    const files = [...this.getModuleIds()].map((id) => id.replace(/^\0vite/, path.resolve('node_modules/vite')))
    const unknown = files.find((file) => !file.startsWith(path.resolve('.')))
    if (unknown) this.error(`The licence of the module ${unknown} is not known.`)
    const folders = new Set(files.flatMap((file) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []))
    const sections = [...folders].map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))
      const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each))
      if (!license || !file) this.error(`The npm package ${name} has no licence.`)
      // Vite's has those of its own tools, too, which are not in the bundles.
      const [text] = readFileSync(path.join(folder, file), 'utf8').split('\n# Licenses of bundled dependencies')
      return `==== ${name} ${version} (${license}) ====\n\n${text!.trim()}\n`
    })
    const source = ['The dashboard has code of these npm packages, under their licences.\n', ...sections.sort()].join('\n')
    this.emitFile({ type: 'asset', fileName: 'licenses.txt', source })
  },
})

export default defineConfig({
  base: './',
  plugins: [licenses()],
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2022',
    // The Content-Security-Policy forbids data: URLs for scripts and styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
  },
  server: { proxy: { '^/(?!(@|src/|node_modules/|index.html)).+': { target: server } } },
})
