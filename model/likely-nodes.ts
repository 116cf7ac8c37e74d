/** Which nodes shall have a new image before somebody asks for it. */
import type { Backend } from './backend.ts';
import type { Environment } from './service.ts';

/** How many of a service's last spawns are looked at: so many nodes, at most, fetch an image. */
export const recentSpawns = 50;

/** A service that nobody has used since last week can wait for its image once more. */
const recentMs = 7 * 24 * 60 * 60 * 1000;

/**
 * The nodes that an environment was last spawned on, of this week or still running. Any node of a cluster may take the next
 * spawn, so these are no better guess than others, but they are as many as the service is used on: a busy one has its image
 * everywhere, and one that nobody uses nowhere. They have most of a new version's layers, too.
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
