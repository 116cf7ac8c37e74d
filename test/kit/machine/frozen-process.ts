import type { ChildProcess } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Stops a process in the middle of what it does, as if its machine hung (SIGSTOP), and resolves when it stands still: a signal
 * reaches one thread, and on a busy machine the others answer for a while. It goes on when the returned function is called.
 */
export async function freeze(child: ChildProcess): Promise<() => void> {
  child.kill('SIGSTOP');
  while (!(await standsStill(child.pid ?? 0))) await delay(1);
  return () => void child.kill('SIGCONT');
}

/** Whether all threads of a process are stopped (man 5 proc, stat). */
async function standsStill(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`);
  const texts = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8')));
  // The name, in parentheses, may hold anything.
  return texts.every((text) => text.slice(text.lastIndexOf(')')).startsWith(') T'));
}
