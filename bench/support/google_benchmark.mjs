// Runs those of divan_bench's benchmarks that match.
import { execFileSync } from 'node:child_process';

import { median } from './figures.mjs';

const NANOSECONDS = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };

// Google Benchmark's description of each run, with its counters, and `cpu`: CPU nanoseconds an iteration.
export function benchmarkRuns(filter, { rounds, seconds = 0.1 }) {
  const out = execFileSync(
    'build/release/divan_bench',
    [`--benchmark_filter=${filter}`, `--benchmark_repetitions=${rounds}`, `--benchmark_min_time=${seconds}`,
      '--benchmark_format=json', '--benchmark_enable_random_interleaving=true'],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 64 << 20 },
  );
  // A counter that was 0 in all rounds has no coefficient of variation, which JSON cannot express.
  return JSON.parse(out.replaceAll(': NaN', ': null'))
    .benchmarks.filter((run) => run.run_type === 'iteration' && !run.error_occurred)
    .map((run) => ({ ...run, cpu: run.cpu_time * NANOSECONDS[run.time_unit] }));
}

// {name: CPU nanoseconds an iteration}, medians.
export function microBenchmarks(filter, repetitions) {
  const runs = new Map();
  for (const { run_name, cpu } of benchmarkRuns(filter, { rounds: repetitions })) {
    if (!runs.has(run_name)) runs.set(run_name, []);
    runs.get(run_name).push(cpu);
  }
  return [...runs].map(([name, times]) => ({ name, times, time: median(times) }));
}
