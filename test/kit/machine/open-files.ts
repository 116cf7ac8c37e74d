import { existsSync, readFileSync } from 'node:fs';

/** The default of the worker. */
const usual = 65_536;

const limits = '/proc/self/limits';

/**
 * A limit on open files that engines of this machine may set. Where they may not raise their own limit, a worker with the usual setting
 * starts its first container twice, which costs a quarter of a second of CPU time.
 */
export function possibleOpenFiles(): number {
  if (!existsSync(limits)) return usual;
  const hard = /^Max open files +\d+ +(\d+)/m.exec(readFileSync(limits, 'utf8'))?.[1];
  return Math.min(usual, Number(hard ?? usual));
}
