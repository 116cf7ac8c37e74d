import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';

/** How many ticks make a second, in which the kernel counts the time of processes. */
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** The seconds that a process has worked so far, with all its threads (man 5 proc, stat). Linux only. */
export async function cpuSeconds(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name, in parentheses, may hold anything.
  const [, rest = ''] = /^.*\) (.*)$/s.exec(text) ?? [];
  const fields = rest.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}
