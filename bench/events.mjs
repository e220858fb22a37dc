// What an event point costs that nobody listens to.
import { figure } from './support/figures.mjs';
import { microBenchmarks } from './support/google_benchmark.mjs';

export async function run() {
  const [{ time, times }] = microBenchmarks('BM_ByHandle/subscribers:0/real_time/threads:1$', 9);
  return [figure('events: publish without a subscriber', time, 'CPU ns', { most: 3, of: times })];
}
