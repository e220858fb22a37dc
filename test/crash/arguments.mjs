// Arguments of both runs: BUILD_DIR [--kills N] [--seed S]
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

/** The arguments, and a new directory for data and log, which is removed only if the run succeeds. */
export function run_arguments(defaultKills) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { kills: { type: 'string' }, seed: { type: 'string' } },
  });
  const buildDir = path.resolve(positionals[0]);
  return {
    buildDir,
    kills: Number(values.kills ?? defaultKills),
    seed: values.seed ?? String(Date.now() % 1_000_000),
    directory: fs.mkdtempSync(path.join(buildDir, 'crash-')),
  };
}
