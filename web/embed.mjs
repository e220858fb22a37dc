// Writes the built files as C++: node embed.mjs FOLDER OUTPUT.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { gzipSync } from 'node:zlib'

const [folder, output] = process.argv.slice(2)

// A string literal; octal escapes have at most three digits, so that a digit may follow them.
const literal = (bytes) => `"${[...bytes].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('').replace(/.{480}/g, '$&"\n"')}"`

// Early releases of Node.js 18 ignore `recursive`.
const filesBelow = (at) => readdirSync(at, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? filesBelow(path.join(at, entry.name)) : [path.relative(folder, path.join(at, entry.name))]))
const rows = filesBelow(folder)
  .sort()
  .map((name) => {
    const gzip = gzipSync(readFileSync(path.join(folder, name)), { level: 9 })
    return `    {${JSON.stringify(name)}, {${literal(gzip)}, ${gzip.length}}},\n`
  })
writeFileSync(output, `// Generated from web/ by embed.mjs.
#include "divan/app/dashboard.h"

namespace divan::app {

std::span<const api::EmbeddedFile> dashboard_files() {
  static constexpr api::EmbeddedFile kFiles[] = {
${rows.join('')}  };
  return kFiles;
}

}  // namespace divan::app
`)
