// From the call that adds a job to a queue that is empty until its handler begins, in the same process; each
// system with its defaults or its `idle` configuration. All workers wait at the same time; jobs alternate
// between the systems, so that other load of the machine affects all of them.
import { figure } from '../support/figures.mjs';
import { pause } from './instance.mjs';

const SAMPLES = 300;
const AT_A_TIME = 10;

class Side {
  static async start(system, n, { name, options = {}, queue: settings, samples = SAMPLES }) {
    const side = new Side();
    side.name = `jobs: ${system.name}${system.durable ? '' : ' (not durable)'}, ${name}: add to start`;
    side.samples = samples;
    side.times = [];
    const queue = `idle${n}`;
    await system.prepare(queue, settings);
    side.adder = await system.adder(queue);
    side.worker = await system.worker(queue, async () => side.started(performance.now()), options);
    await side.one(); // warms up
    return side;
  }

  async one() {
    await pause(20 + Math.random() * 40);
    const start = new Promise((resolve) => (this.started = resolve));
    const before = performance.now();
    await this.adder.add({});
    return (await start) - before;
  }

  async some() {
    for (let n = 0; n < AT_A_TIME && this.times.length < this.samples; ++n) this.times.push(await this.one());
  }

  async stop() {
    await this.worker.stop();
    await this.adder.close();
  }

  figures() {
    const sorted = this.times.sort((a, b) => a - b);
    const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
    console.error(`  ${this.name}: median ${at(0.5).toFixed(2)} ms, p90 ${at(0.9).toFixed(2)}, p99 ${at(0.99).toFixed(2)}, most ${at(1).toFixed(2)} of ${sorted.length}`);
    return [figure(`${this.name}, median`, at(0.5), 'ms'), figure(`${this.name}, 99th percentile`, at(0.99), 'ms')];
  }
}

export async function run(systems) {
  const sides = [];
  for (const system of systems) {
    for (const [n, how] of (system.idle ?? [{ name: 'default' }]).entries()) sides.push(await Side.start(system, n, how));
  }
  for (let n = 0; n < SAMPLES; n += AT_A_TIME) {
    for (const side of sides) await side.some();
  }
  for (const side of sides) await side.stop();
  const figures = sides.map((side) => side.figures());
  // Divan's targets: faster than all except beanstalkd, and within half a millisecond of that one.
  const [divan, ...others] = figures.map(([middle]) => middle);
  const beanstalkd = others.filter(({ name }) => name.includes('beanstalkd'));
  const most = Math.min(...others.filter((one) => !beanstalkd.includes(one)).map(({ value }) => value), ...beanstalkd.map(({ value }) => value + 0.5));
  if (others.length) divan.most = most;
  return figures.flat();
}
