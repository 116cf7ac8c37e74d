/** The capacity of this node: a number of backends, and an upper bound on the sum of their memory limits. */
import type { BackendLimits } from '../../model/backend.ts';
import type { WorkerContext } from '../context.ts';
import { memoryLimitOf } from '../lifecycle/container-spec.ts';

type Node = Pick<WorkerContext, 'engine' | 'runs' | 'settings' | 'claiming'>;

/**
 * The limits of all backends may add up to this multiple of the machine's memory. A limit is the worst case: few backends come near
 * their limit, and rarely at the same time.
 */
const memoryShare = 2;

/** The memory in bytes that this node offers to all its backends together; infinite if it is not limited. */
export function offeredMemory({ engine, settings }: Pick<Node, 'engine' | 'settings'>): number {
  return settings.offeredMemoryBytes ?? (engine.memoryBytes * memoryShare || Infinity);
}

/** The sum of the memory limits of this node's backends, in bytes. */
export function promisedMemory({ runs, claiming, settings }: Omit<Node, 'engine'>): number {
  const all = [...Array.from(runs.values(), ({ backend }) => backend), ...claiming.values()];
  return all.reduce((bytes, { limits }) => bytes + memoryLimitOf(limits, settings), 0);
}

/** Whether this node has any capacity left. */
export function hasCapacity(node: Node): boolean {
  return isBelowMaxBackends(node) && promisedMemory(node) < offeredMemory(node);
}

/** Whether this node has capacity for a backend with these limits. */
export function hasCapacityFor(node: Node, limits: BackendLimits): boolean {
  return isBelowMaxBackends(node) && promisedMemory(node) + memoryLimitOf(limits, node.settings) <= offeredMemory(node);
}

function isBelowMaxBackends({ runs, claiming, settings }: Node): boolean {
  return runs.size + claiming.size < (settings.maxBackends ?? Infinity);
}
