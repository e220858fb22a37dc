// Libraries as peers: small programs in bench/peers, compiled when they are needed.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

// Runs a program of bench/peers; returns the lines that it prints.
export function runPeer(name, args, libraries = []) {
  mkdirSync('build/bench/peers', { recursive: true });
  const program = `build/bench/peers/${name}`;
  execFileSync('c++', ['-std=c++20', '-O2', `bench/peers/${name}.cc`, '-o', program, ...libraries.map((one) => `-l${one}`)], { stdio: 'inherit' });
  return execFileSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 30 }).trim().split('\n');
}
