// A worker in a process of its own: node worker.mjs SYSTEM ADDRESS QUEUE OPTIONS (the last three as JSON, by
// the system's module). Prints `ready`, `started` when a handler begins and `outcome WHAT` for the response
// to its finish; a handler ends when it reads a line from its input.
import { createInterface } from 'node:readline';

const [, , name, address, queue, options] = process.argv;
const { startWorker } = await import(`./systems/${name}.mjs`);
const say = (line) => process.stdout.write(`${line}\n`);

const lines = createInterface({ input: process.stdin });
lines.on('close', () => process.exit());

const line = () => new Promise((resolve) => lines.once('line', resolve));
const onOutcome = (outcome) => say(`outcome ${outcome}`);
const handler = async () => {
  say('started');
  await line();
};
await startWorker(JSON.parse(address), JSON.parse(queue), handler, { ...JSON.parse(options), onOutcome });
say('ready');
