/** Processes whose clock shows another time of day than the machine's, as on a node whose clock nobody corrects (libfaketime). */
import { tryCommand } from '../../../setup/command.ts';

/**
 * The environment of such a process: its time of day is shifted by so many seconds, and its timers run as usual. `undefined`
 * where libfaketime is not installed.
 */
export async function shiftedClock(bySeconds: number): Promise<Record<string, string> | undefined> {
  const { stdout } = await tryCommand('dpkg-query', ['--listfiles', 'libfaketime']);
  const library = stdout.split('\n').find((path) => path.endsWith('/libfaketimeMT.so.1'));
  if (library === undefined) return undefined;
  const sign = bySeconds < 0 ? '' : '+';
  return { LD_PRELOAD: library, FAKETIME: `${sign}${bySeconds}s`, FAKETIME_DONT_FAKE_MONOTONIC: '1' };
}
