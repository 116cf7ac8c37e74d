/** Which components a process opens, and which drivers they need to reach those of other processes. */
import { ConfigError } from '../../core/config/settings.ts';
import type { Config } from './config.ts';

const roles = ['registry', 'api', 'worker', 'proxy'] as const;

export type Role = (typeof roles)[number];

/** The roles of one process. */
export type Roles = ReadonlySet<Role>;

export const allRoles: Roles = new Set(roles);

/** Reads `registry,api`. Throws `ConfigError` for what is no role, and for none at all. */
export function parseRoles(text: string | undefined): Roles {
  if (text === undefined) return allRoles;
  const words = text.split(',').map((word) => word.trim());
  const unknown = words.filter((word) => !(roles as readonly string[]).includes(word));
  if (unknown.length > 0) {
    throw new ConfigError(`There is no role "${unknown.join('", "')}": use some of ${roles.join(', ')}`);
  }
  return new Set(words as Role[]);
}

/**
 * Throws `ConfigError` if components of this process cannot reach those of the others: they share a store, the API and the
 * worker a queue, and those two and the proxy a bus.
 */
export function assertShared(config: Config, own: Roles): void {
  const alone = (...sharing: Role[]) =>
    sharing.some((role) => own.has(role)) && !sharing.every((role) => own.has(role));
  const problems = [
    alone(...roles) && config.store === 'sqlite' && 'BERTH_STORE: One process owns an SQLite store; use mongodb',
    alone('api', 'worker') &&
      config.queue === 'process' &&
      'BERTH_QUEUE: API and worker must share a queue; use bullmq',
    alone('api', 'worker', 'proxy') &&
      config.bus === 'process' &&
      'BERTH_BUS: API, worker and proxy must share a bus; use redis',
  ].filter((problem) => problem !== false);
  if (problems.length === 0) return;
  const who = `With the roles ${[...own].join(', ')} alone, other processes do the rest:`;
  throw new ConfigError(`${who}\n  ${problems.join('\n  ')}`);
}

/**
 * What will most likely not work between this process and those of the other roles, and what to do; nothing if all is well.
 * It may work all the same: only whoever runs it knows which process is on which machine.
 */
export function doubtfulSharing(config: Config, own: Roles): string | undefined {
  if (own.has('registry') && !own.has('api') && config.bus === 'process' && config.fetchAhead)
    return 'Nobody hears of pushes to this registry, so no node fetches new images ahead: set BERTH_BUS=redis, or BERTH_FETCH_AHEAD=no';
  if (!own.has('worker') || own.has('proxy') || config.advertisedHost !== undefined) return undefined;
  return 'Only proxies on this machine can reach the backends of this node: if there are others, set BERTH_ADVERTISED_HOST to the name or address by which other machines reach this one';
}
