// Processor time of processes, from /proc: more meaningful than elapsed time on a busy machine.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const TICKS = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

// Fields of /proc/PID/stat from the third on: the second, a name, may contain anything.
function stat(pid) {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function seconds(fields, first) {
  return (Number(fields[first]) + Number(fields[first + 1])) / TICKS;
}

// Seconds that the process itself has used, all of its threads.
export function ownSeconds(pid) {
  return seconds(stat(pid), 11);
}

function children(pid) {
  try {
    return execFileSync('pgrep', ['-P', String(pid), '.'], { encoding: 'utf8' }).trim().split('\n');
  } catch (error) {
    if (error.status !== 1) throw error; // 1: there are none
    return [];
  }
}

// Seconds of its children, those that have ended and those that run.
function childSeconds(pid) {
  let sum = 0;
  for (const child of children(pid)) {
    try {
      sum += ownSeconds(child);
    } catch (error) {
      if (error.code !== 'ENOENT') throw error; // it has ended just now, and counts below
    }
  }
  return sum + seconds(stat(pid), 13);
}

export function cpu(pid) {
  const own = ownSeconds(pid);
  const children = childSeconds(pid);
  return { own, children, all: own + children };
}

// Seconds of all threads that the process has now, to the nanosecond, where ownSeconds() counts hundredths.
// Excludes threads that have ended.
export function threadSeconds(pid) {
  let sum = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    sum += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
  }
  return sum / 1e9;
}

// Bytes that the process has in memory, if wanted with its children.
export function residentBytes(pid, withChildren = false) {
  const all = withChildren ? [pid, ...children(pid)] : [pid];
  return all.reduce((sum, one) => sum + Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${one}/status`, 'utf8'))[1]) * 1024, 0);
}

// The most bytes that the process has had in memory.
export function peakBytes(pid) {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;
}

export function threads(pid) {
  return readdirSync(`/proc/${pid}/task`).length;
}

// Context switches of all threads that the process has now.
export function contextSwitches(pid) {
  let sum = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8');
    for (const [, count] of status.matchAll(/ctxt_switches:\s+(\d+)/g)) sum += Number(count);
  }
  return sum;
}
