/** Selects the nodes that prefetch a new image. */
import type { Backend } from './backend.ts';
import type { Environment } from './service.ts';

/** How many of a service's last spawns are considered: at most as many nodes prefetch an image. */
export const recentSpawns = 50;

/** The first spawn of a service that was unused for a week may wait for its image. */
const recentMs = 7 * 24 * 60 * 60 * 1000;

/**
 * The nodes of an environment's last spawns, of this week or still running. Any node of a cluster may claim the next spawn, so these
 * are no better guess than others, but their number follows the use of the service: the image of a busy service is prefetched
 * everywhere, that of an unused one nowhere. They also have most layers of a new version.
 *
 * @param recent - the last spawns of the service
 */
export function likelyNodes(environment: Environment, recent: readonly Backend[], now: Date): string[] {
  const since = now.getTime() - recentMs;
  const nodes = recent
    .filter((backend) => backend.environment === environment.name && backend.cluster === environment.cluster)
    .filter(({ live, createdAt }) => live || createdAt.getTime() >= since)
    .map(({ node }) => node);
  return [...new Set(nodes.filter((node) => node !== undefined))];
}
