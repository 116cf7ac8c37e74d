/** Pinning to a core, so that "on one core" means it: by `taskset` of util-linux, where there is one. */
import { spawnSync } from 'node:child_process';

/** Moves a process, with all its threads, to one core. Returns whether that was done. */
export function pin(pid: number, core: number): boolean {
  return spawnSync('taskset', ['-a', '-c', '-p', String(core), String(pid)], { stdio: 'ignore' }).status === 0;
}
