// fsync and fdatasync of a server and all its processes, counted by the kernel's tracepoints (perf, as root):
// without cost for the server. Undefined where that is not allowed.
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const EVENTS = ['fdatasync', 'fsync', 'sync_file_range', 'msync'].map((name) => `syscalls:sys_enter_${name}`).join(',');

const allowed = spawnSync('perf', ['stat', '-x,', '-e', EVENTS, 'true']).status === 0;

// The process, its threads and its children.
function family(pid) {
  const parents = new Map();
  for (const name of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(Number(name), Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // it has ended meanwhile
    }
  }
  return [pid, ...[...parents].filter(([, parent]) => parent === pid).map(([child]) => child)];
}

// Returns a function that ends the count and returns it.
export async function countSyncs(pid) {
  if (!allowed) return async () => undefined;
  const perf = spawn('perf', ['stat', '-x,', '-e', EVENTS, '-p', family(pid).join(',')], { stdio: ['ignore', 'ignore', 'pipe'] });
  let text = '';
  perf.stderr.on('data', (data) => (text += data));
  const ended = new Promise((resolve) => perf.once('close', resolve));
  await new Promise((resolve) => setTimeout(resolve, 300)); // until it has attached
  return async () => {
    perf.kill('SIGINT');
    await ended;
    const counts = text.split('\n').filter((line) => line.includes('sys_enter'));
    if (counts.length === 0) throw new Error(`perf: ${text}`);
    return counts.reduce((sum, line) => sum + Number(line.split(',')[0]), 0);
  };
}
