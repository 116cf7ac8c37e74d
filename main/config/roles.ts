/** The components that a process opens, and the drivers that they must share with other processes. */
import { ConfigError } from '../../core/config/settings.ts';
import type { Config } from './config.ts';

const roles = ['registry', 'api', 'worker', 'proxy'] as const;

export type Role = (typeof roles)[number];

/** The roles of one process. */
export type Roles = ReadonlySet<Role>;

export const allRoles: Roles = new Set(roles);

/** Parses a list such as `registry,api`. Throws `ConfigError` for an unknown role and for an empty list. */
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
 * Throws `ConfigError` if components of this process cannot reach the components of other processes. All components share a store,
 * API and worker share a queue, and API, worker and proxy share a bus.
 */
export function assertShared(config: Config, own: Roles): void {
  const alone = (...sharing: Role[]) =>
    sharing.some((role) => own.has(role)) && !sharing.every((role) => own.has(role));
  const problems = [
    alone(...roles) &&
      config.store === 'sqlite' &&
      'BERTH_STORE: Only one process can use an SQLite store; use mongodb',
    alone('api', 'worker') &&
      config.queue === 'process' &&
      'BERTH_QUEUE: API and worker must share a queue; use bullmq',
    alone('api', 'worker', 'proxy') &&
      config.bus === 'process' &&
      'BERTH_BUS: API, worker and proxy must share a bus; use redis',
  ].filter((problem) => problem !== false);
  if (problems.length === 0) return;
  const reason = `This process has only the roles ${[...own].join(', ')}, so it must share drivers with the processes of the other roles:`;
  throw new ConfigError(`${reason}\n  ${problems.join('\n  ')}`);
}

/**
 * A warning about settings with which this process probably cannot work with processes of other roles. It is not an error, because
 * only the operator knows which process runs on which machine.
 */
export function sharingWarning(config: Config, own: Roles): string | undefined {
  if (own.has('registry') && !own.has('api') && config.bus === 'process' && config.prefetch)
    return 'No API is notified of pushes to this registry, so no node prefetches new images: set BERTH_BUS=redis, or BERTH_PREFETCH=no';
  if (!own.has('worker') || own.has('proxy') || config.advertisedHost !== undefined) return undefined;
  return 'Only proxies on this machine can reach the backends of this node: if proxies run on other machines, set BERTH_ADVERTISED_HOST to the host name or address of this machine';
}
