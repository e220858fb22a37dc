// Runs those of divan_bench's benchmarks that match, and answers {name: CPU nanoseconds an iteration}, medians.
import { execFileSync } from 'node:child_process';

import { median } from './figures.mjs';

const NANOSECONDS = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };

export function microBenchmarks(filter, repetitions) {
  const out = execFileSync(
    'build/release/divan_bench',
    [`--benchmark_filter=${filter}`, `--benchmark_repetitions=${repetitions}`, '--benchmark_min_time=0.1',
      '--benchmark_format=json', '--benchmark_enable_random_interleaving=true'],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 64 << 20 },
  );
  const runs = new Map();
  for (const run of JSON.parse(out).benchmarks) {
    if (run.run_type !== 'iteration' || run.error_occurred) continue;
    if (!runs.has(run.run_name)) runs.set(run.run_name, []);
    runs.get(run.run_name).push(run.cpu_time * NANOSECONDS[run.time_unit]);
  }
  return [...runs].map(([name, times]) => ({ name, times, time: median(times) }));
}
