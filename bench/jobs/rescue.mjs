// A worker that holds a job is killed (SIGKILL) or frozen (SIGSTOP), while another one waits for work: the
// time until that one's handler begins. The frozen one then continues (SIGCONT) and finishes while the other
// one still runs the job: is the finish accepted, and what is the response?
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import { figure } from '../support/figures.mjs';
import { endWithUs, pause } from './instance.mjs';

// The longest wait: BullMQ's defaults take a minute.
const LONGEST = Number(process.env.DIVAN_BENCH_RESCUE_SECONDS ?? 75);
const SHORT = 5; // seconds for an immediate response

class Child {
  constructor(system, queue, options) {
    const args = [system.address, queue, options].map((one) => JSON.stringify(one));
    this.process = spawn('node', ['bench/jobs/worker.mjs', system.module, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    endWithUs(this.process);
    this.ended = new Promise((resolve) => this.process.once('exit', resolve));
    this.lines = [];
    createInterface({ input: this.process.stdout }).on('line', (line) => {
      this.lines.push({ line, at: performance.now() });
      this.wake?.();
    });
  }

  // The first line that begins so, or undefined after so many seconds.
  async said(what, seconds) {
    const deadline = performance.now() + seconds * 1000;
    for (;;) {
      const found = this.lines.find(({ line }) => line.startsWith(what));
      const left = deadline - performance.now();
      if (found || left <= 0) return found;
      let timer;
      await new Promise((resolve) => {
        this.wake = resolve;
        timer = setTimeout(resolve, left);
      });
      clearTimeout(timer);
    }
  }

  // Ends the handler that runs.
  finish() {
    this.process.stdin.write('\n');
  }

  end() {
    this.process.kill('SIGKILL');
    return this.ended;
  }
}

async function must(promise, what) {
  return (await promise) ?? Promise.reject(new Error(`the worker did not report "${what}"`));
}

// The worker that has started the job, and the other one.
async function takenBy([one, other]) {
  const has = ({ lines }) => lines.some(({ line }) => line === 'started');
  for (const deadline = performance.now() + 30_000; performance.now() < deadline; await pause(10)) {
    if (has(one)) return [one, other];
    if (has(other)) return [other, one];
  }
}

// {seconds, stale}: seconds is undefined if the job was not started again in time.
async function one(system, how, signal, queue) {
  await system.prepare(queue, how.queue);
  const workers = [new Child(system, queue, how.options), new Child(system, queue, how.options)];
  for (const worker of workers) await must(worker.said('ready', 30), 'ready');
  await pause(500);
  const adder = await system.adder(queue, how.job);
  await adder.add({});
  const [first, second] = await must(takenBy(workers), 'started');
  await adder.close();

  const at = performance.now();
  first.process.kill(signal);
  let started = await second.said('started', LONGEST);
  const seconds = started && (started.at - at) / 1000;
  if (!started && signal === 'SIGSTOP' && system.age) {
    await system.age();
    started = await second.said('started', LONGEST);
  }
  let stale;
  if (started && signal === 'SIGSTOP') {
    first.finish();
    first.process.kill('SIGCONT');
    const outcome = await first.said('outcome', SHORT);
    await pause(300);
    stale = { taken: await system.hasEnded(queue), result: outcome?.line.replace('outcome ', '') ?? 'nothing' };
  }
  await first.end();
  await second.end();
  return { seconds, stale };
}

export async function run(systems) {
  const cases = systems.filter((system) => system.durable).flatMap((system) =>
    (system.rescues ?? []).flatMap((how) => ['SIGKILL', 'SIGSTOP'].map((signal) => ({ system, how, signal }))),
  );
  const results = await Promise.allSettled(cases.map(async ({ system, how, signal }, n) => {
    // One after the other, so that starting the workers does not slow what is measured; long waits overlap.
    await pause(n * 3000);
    return one(system, how, signal, `rescue${n}`);
  }));
  const figures = [];
  cases.forEach(({ system, how, signal }, n) => {
    const { value, reason } = results[n];
    const name = `jobs: ${system.name}, ${how.name}, ${signal}`;
    if (reason) return console.error(`  ${name}: FAILED: ${reason.message}`);
    const { seconds, stale } = value;
    const time = seconds === undefined ? `not within ${LONGEST} s` : `${seconds.toFixed(2)} s`;
    const end = stale ? `; the stale worker's finish is ${stale.taken ? 'TAKEN' : 'refused'}, its result: ${stale.result}` : '';
    console.error(`  ${name}: ${time}${end}`);
    figures.push(figure(`${name}: started again after`, seconds ?? Infinity, 's', { most: how.most?.[signal] }));
    if (stale) figures.push(figure(`${name}: a stale finish is taken`, stale.taken ? 1 : 0, 'of 1', how.most && { most: 0 }));
  });
  return figures;
}
