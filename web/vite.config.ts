import { defineConfig } from 'vite'

// The pages are served at /_utils/. `npm run dev` passes all other requests to a server, DIVAN_URL.
const server = process.env.DIVAN_URL ?? 'http://127.0.0.1:5984'

export default defineConfig({
  base: './',
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
