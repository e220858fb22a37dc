// docs/tutorial.md: every command and program in its order, in one shell. What they print must be what the text says.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { freePort } from './support/cluster.mjs'
import { run } from './support/program.mjs'
import { binary } from './support/server.mjs'

const PRINTED = 'printed by block'

test('tutorial: the commands print what the text says', async () => {
  const address = `127.0.0.1:${await freePort()}`
  const text = readFileSync(new URL('../docs/tutorial.md', import.meta.url), 'utf8').replaceAll('127.0.0.1:5984', address)
  const blocks = [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language, source]) => ({ language, source }))

  // One script, which prints a line before each block of commands.
  const [script, expected] = [[], []]
  for (const [n, { language, source }] of blocks.entries()) {
    if (language === 'js') script.push(`cat > worker.mjs <<'EOF'\n${source}EOF`)
    if (language !== 'sh') continue
    script.push(`echo '${PRINTED} ${n}'`, source)
    if (source.includes('divan serve')) script.push(`until curl -s ${address}/ > up; do sleep 0.1; done`)
    expected.push({ n, output: blocks[n + 1]?.language === 'text' ? blocks[n + 1].source : '' })
  }
  const env = { PATH: `${path.dirname(binary)}:${process.env.PATH}`, DIVAN_CHTTPD_PORT: address.split(':')[1], DIVAN_URL: `http://${address}` }
  const program = run({ language: 'sh', source: script.join('\n'), env }, { url: 'http://127.0.0.1:5984' })
  try {
    const parts = (await program.output(300_000)).split(new RegExp(`^${PRINTED} \\d+\n`, 'm')).slice(1)
    assert.equal(parts.length, expected.length)
    for (const [i, { n, output }] of expected.entries()) {
      const pattern = output.split('…').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('.*')
      assert.match(parts[i], new RegExp(`^${pattern}$`), `block ${n}: ${blocks[n].source}${program.stderr}`)
    }
  } catch (error) {
    error.message += `\n--- printed:\n${program.stdout}${program.stderr}`
    throw error
  } finally {
    await program.end()
  }
})
