// The baseline of a view build. Arguments: a file of JSON lines, a JSON array of map functions. Prints how
// many lines a second are parsed, mapped, and their rows written as JSON.
import { readFileSync } from 'node:fs';

const lines = readFileSync(process.argv[2], 'utf8').split('\n');

let rows;
globalThis.emit = (key, value) => rows.push([key, value]);
const functions = JSON.parse(process.argv[3]).map((source) => (0, eval)(`(${source}\n)`));

let bytes = 0;
const start = performance.now();
for (const line of lines) {
  const doc = JSON.parse(line);
  for (const map of functions) {
    rows = [];
    map(doc);
    bytes += JSON.stringify(rows).length;
  }
}
const seconds = (performance.now() - start) / 1000;
console.log(JSON.stringify({ rate: lines.length / seconds, bytes }));
