// The dashboard's built files, from its sources in web/.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const web = fileURLToPath(new URL('../../web/', import.meta.url))

// The time of the last change below a folder, or of a file.
const changedAt = (name) =>
  statSync(name).isDirectory() ? Math.max(0, ...readdirSync(name).map((entry) => changedAt(path.join(name, entry)))) : statSync(name).mtimeMs

/** The folder of the files; builds them if the sources have changed. */
export function dashboardFolder() {
  const index = path.join(web, 'dist/index.html')
  const sources = ['src', 'public', 'index.html', 'package-lock.json', 'tsconfig.json', 'vite.config.ts'].map((name) => path.join(web, name))
  if (existsSync(index) && statSync(index).mtimeMs > Math.max(...sources.map(changedAt))) return path.dirname(index)
  execFileSync('npm', ['run', 'build', '--silent'], { cwd: web, stdio: ['ignore', 'ignore', 'inherit'] })
  return path.dirname(index)
}
