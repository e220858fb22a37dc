// How soon an index finds what was written, while another index of the same server is built.
import { figure, percentile } from './figures.mjs';

const WRITES = 50;
// `write(n)` writes document n; `find(n)` returns true if the index finds it, and does not wait for the index.
export async function freshness(name, write, find) {
  const times = [];
  for (let n = 0; n < WRITES; n++) {
    await write(n);
    const written = performance.now();
    while (!(await find(n))) await new Promise((resolve) => setTimeout(resolve, 2));
    times.push(performance.now() - written);
  }
  return [
    figure(`${name}: found after its write, median`, percentile(times, 0.5), 'ms', { most: 100 }),
    figure(`${name}: found after its write, 99 %`, percentile(times, 0.99), 'ms', { most: 100 }),
  ];
}
