// The rest of divan_bench with short runs, to detect regressions; without targets. build/release/divan_bench
// itself shows a benchmark's own counters.
import { figure } from './support/figures.mjs';
import { microBenchmarks } from './support/google_benchmark.mjs';

export async function run() {
  // Excludes those with their own threads and servers; kv.mjs has the store's.
  return microBenchmarks('-(threads:2|BM_Respond|BM_Idle|BM_Js|Churn|BM_Signal|^Commits|^ConflictCheck|^Transaction|^Reads|^AtRest)', 3).map(({ name, time, times }) =>
    figure(`micro: ${name.replace('/real_time/threads:1', '')}`, time, 'CPU ns', { of: times }),
  );
}
