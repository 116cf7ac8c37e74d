import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Ends a process with a signal, and kills it if it still runs after a time. Returns its exit code, or null if a signal ended it. */
export async function endProcess(
  child: ChildProcess,
  signal: NodeJS.Signals,
  killAfterMs?: number,
): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exited = once(child, 'exit') as Promise<[number | null]>;
  child.kill(signal);
  const late = killAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  const [code] = await exited;
  clearTimeout(late);
  return code;
}

/**
 * The command of a program that the kernel ends when this process is killed. `setpriv` is the path of that tool, which Linux has.
 * Only `KILL` ends a frozen process.
 */
export function endedWithParent(
  program: string,
  setpriv: string | undefined,
  signal: 'TERM' | 'KILL' = 'TERM',
): [string, ...string[]] {
  return setpriv ? [setpriv, '--pdeathsig', signal, program] : [program];
}
