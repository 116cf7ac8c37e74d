import { existsSync, readFileSync } from 'node:fs';

/** The default limit of the worker. */
const defaultLimit = 65_536;

const limits = '/proc/self/limits';

/**
 * A limit on open files that engines of this machine may set. If they may not raise their own limit, a worker with the default
 * setting has to start its first container twice, which costs a quarter of a second of CPU time.
 */
export function possibleOpenFiles(): number {
  if (!existsSync(limits)) return defaultLimit;
  const hard = /^Max open files +\d+ +(\d+)/m.exec(readFileSync(limits, 'utf8'))?.[1];
  return Math.min(defaultLimit, Number(hard ?? defaultLimit));
}
