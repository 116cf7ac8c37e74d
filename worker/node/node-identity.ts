/** A node's name is its own: a worker on another machine with the same one would take this node's backends for lost. */
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import type { Store } from '../../core/store/store.ts';
import { isAlive, nodeHeartbeatMs, nodes } from '../../model/node.ts';
import type { WorkerSettings } from '../settings.ts';

/** Somebody else runs a worker under the name of this node. The message says what to do. */
export class NodeNameError extends Error {
  override readonly name = 'NodeNameError';

  constructor(node: string) {
    super(`Another machine runs a worker under the name "${node}": set BERTH_NODE to a name that no other node has`);
  }
}

/** Whoever lives tells so once in this time, also when one attempt has failed. */
export const heardWithinMs = nodeHeartbeatMs + 5_000;

export interface NameDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: Pick<WorkerSettings, 'node' | 'machine'>;
}

/**
 * Throws a `NodeNameError` if a worker on another machine lives under this node's name. Takes no time where the last one was on
 * this machine, or is long gone; else it waits for a heartbeat, since that machine may just have become this one.
 */
export async function assertOwnName({ store, clock, log, settings }: NameDeps): Promise<void> {
  const { node, machine } = settings;
  const found = await store.get(nodes, node);
  if (!found || found.machine === undefined || found.machine === machine) return;
  if (!isAlive(found, await store.now())) return;
  log.warn({ node }, 'The node was on another machine a moment ago, waiting for a sign of life from there');
  await clock.sleep(heardWithinMs);
  const again = await store.get(nodes, node);
  if (again?.machine === found.machine && again.leaseUntil > found.leaseUntil) throw new NodeNameError(node);
}
