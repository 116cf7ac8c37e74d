import type { ChildProcess } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Freezes a process (SIGSTOP), as if its machine hung, until the returned function is called. Resolves when all its threads are
 * stopped: the signal reaches one thread first, and on a busy machine the others keep answering for a while.
 */
export async function freeze(child: ChildProcess): Promise<() => void> {
  child.kill('SIGSTOP');
  while (!(await isStopped(child.pid ?? 0))) await delay(1);
  return () => void child.kill('SIGCONT');
}

/** Whether all threads of a process are stopped (man 5 proc, stat). */
async function isStopped(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`);
  const texts = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8')));
  // The name, in parentheses, may contain any characters.
  return texts.every((text) => text.slice(text.lastIndexOf(')')).startsWith(') T'));
}
