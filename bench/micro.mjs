// The rest of divan_bench, briefly: for a look at what has become dearer, without aims. A benchmark's own
// counters are shown by build/release/divan_bench itself.
import { figure } from './support/figures.mjs';
import { microBenchmarks } from './support/google_benchmark.mjs';

export async function run() {
  // Those with threads of their own and whole servers are left out; kv.mjs has the store's.
  return microBenchmarks('-(threads:2|BM_Answer|BM_Idle|BM_Js|Churn|BM_Signal|^Commits|^ConflictCheck|^Transaction|^Reads|^AtRest)', 3).map(({ name, time, times }) =>
    figure(`micro: ${name.replace('/real_time/threads:1', '')}`, time, 'CPU ns', { of: times }),
  );
}
