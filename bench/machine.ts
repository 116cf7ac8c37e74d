/** The machine during a measurement: CPU time of processes, their cores, and the disk. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import { runCommand } from '../setup/command.ts';

/** Ticks per second, the unit in which the kernel counts CPU time. */
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** The CPU time of a process and its threads so far, in seconds. Linux only. */
export async function cpuSeconds(pid: number): Promise<number> {
  return await secondsIn(`/proc/${pid}/stat`);
}

/** The CPU time of each thread of a process whose name matches, in seconds. */
export async function threadCpuSeconds(pid: number, name: RegExp): Promise<number[]> {
  return await Promise.all(
    (await threadsOf(pid, name)).map(async (id) => await secondsIn(`/proc/${pid}/task/${id}/stat`)),
  );
}

/** How long the threads of a process whose name matches have waited for a core, in seconds (man 5 proc, schedstat). */
export async function threadWaitSeconds(pid: number, name: RegExp): Promise<number> {
  const texts = (await threadsOf(pid, name)).map(
    async (id) => await readFile(`/proc/${pid}/task/${id}/schedstat`, 'utf8'),
  );
  return (await Promise.all(texts)).reduce((sum, text) => sum + Number(text.split(' ')[1]) / 1e9, 0);
}

/** man 5 proc, stat. */
async function secondsIn(file: string): Promise<number> {
  const text = await readFile(file, 'utf8');
  // The name, in parentheses, may contain any characters.
  const [, rest = ''] = /^.*\) (.*)$/s.exec(text) ?? [];
  const fields = rest.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

async function threadsOf(pid: number, name: RegExp): Promise<string[]> {
  const ids = await readdir(`/proc/${pid}/task`);
  const names = await Promise.all(ids.map(async (id) => await readFile(`/proc/${pid}/task/${id}/comm`, 'utf8')));
  return ids.filter((_id, i) => name.test(names[i]?.trim() ?? ''));
}

/** Pins a process with all its threads to one core, by `taskset` of util-linux. Returns whether that succeeded. */
export function pin(pid: number, core: number): boolean {
  return spawnSync('taskset', ['-a', '-c', '-p', String(core), String(pid)], { stdio: 'ignore' }).status === 0;
}

/** Pins the threads of a process whose name matches to some cores, such as `0,1`. */
export async function pinThreads(pid: number, name: RegExp, cores: string): Promise<void> {
  for (const id of await threadsOf(pid, name)) await runCommand('taskset', ['-c', '-p', cores, id]);
}

/** Flushes pending writes to the disk, so that the kernel does not write data of one side while the other side is measured. */
export async function settleDisk(): Promise<void> {
  await runCommand('sync', []);
}
