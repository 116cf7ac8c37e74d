/** The machine during a measurement: CPU time of processes, their cores, and the disk. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { runCommand } from '../setup/command.ts';

/** Ticks per second, the unit in which the kernel counts CPU time. */
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** The CPU time of a process and its threads so far, in seconds (man 5 proc, stat). Linux only. */
export async function cpuSeconds(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name, in parentheses, may contain anything.
  const [, rest = ''] = /^.*\) (.*)$/s.exec(text) ?? [];
  const fields = rest.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Pins a process with all its threads to one core, by `taskset` of util-linux. Returns whether that succeeded. */
export function pin(pid: number, core: number): boolean {
  return spawnSync('taskset', ['-a', '-c', '-p', String(core), String(pid)], { stdio: 'ignore' }).status === 0;
}

/** Flushes pending writes to the disk, so that the system does not write those of one side while the other is measured. */
export async function settleDisk(): Promise<void> {
  await runCommand('sync', []);
}
