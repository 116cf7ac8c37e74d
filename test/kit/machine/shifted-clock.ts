/** Processes with a wrong clock, as on a node whose clock is not synchronized (libfaketime). */
import { tryCommand } from '../../../setup/command.ts';

/**
 * The environment of a process whose time of day is shifted by `bySeconds`, while its timers run as usual. `undefined` if
 * libfaketime is not installed.
 */
export async function shiftedClock(bySeconds: number): Promise<Record<string, string> | undefined> {
  const { stdout } = await tryCommand('dpkg-query', ['--listfiles', 'libfaketime']);
  const library = stdout.split('\n').find((path) => path.endsWith('/libfaketimeMT.so.1'));
  if (library === undefined) return undefined;
  const sign = bySeconds < 0 ? '' : '+';
  return { LD_PRELOAD: library, FAKETIME: `${sign}${bySeconds}s`, FAKETIME_DONT_FAKE_MONOTONIC: '1' };
}
