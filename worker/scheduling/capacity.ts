/** What this node has room for: so many backends, and so much memory that they may come to need together. */
import type { BackendLimits } from '../../model/backend.ts';
import type { WorkerContext } from '../context.ts';
import { memoryLimitOf } from '../lifecycle/container-spec.ts';

type Node = Pick<WorkerContext, 'engine' | 'runs' | 'settings' | 'claiming'>;

/**
 * The limits of all backends may add up to so many times the memory of the machine. A limit says what a backend takes at worst:
 * few come near it, and hardly ever at the same time.
 */
const memoryShare = 2;

/** Memory that this node offers to its backends, all together; infinite where that is not limited. */
export function offeredMemory({ engine, settings }: Pick<Node, 'engine' | 'settings'>): number {
  return settings.offeredMemoryBytes ?? (engine.memoryBytes * memoryShare || Infinity);
}

/** Memory that the backends of this node may take, all together. */
export function promisedMemory({ runs, claiming, settings }: Omit<Node, 'engine'>): number {
  const all = [...Array.from(runs.values(), ({ backend }) => backend), ...claiming.values()];
  return all.reduce((bytes, { limits }) => bytes + memoryLimitOf(limits, settings), 0);
}

/** Whether there is room for anything. */
export function hasCapacity(node: Node): boolean {
  return isBelowMaxBackends(node) && promisedMemory(node) < offeredMemory(node);
}

/** Whether there is room for a backend with these limits. */
export function hasCapacityFor(node: Node, limits: BackendLimits): boolean {
  return isBelowMaxBackends(node) && promisedMemory(node) + memoryLimitOf(limits, node.settings) <= offeredMemory(node);
}

function isBelowMaxBackends({ runs, claiming, settings }: Node): boolean {
  return runs.size + claiming.size < (settings.maxBackends ?? Infinity);
}
