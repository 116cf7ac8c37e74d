/** Ensures that the node's name is unique: a worker on another machine with the same name would treat this node's backends as lost. */
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import type { Store } from '../../core/store/store.ts';
import { isAlive, nodeHeartbeatMs, nodes } from '../../model/node.ts';
import type { WorkerSettings } from '../settings.ts';

/** Another worker runs under the name of this node. The message says what to do. */
export class NodeNameError extends Error {
  override readonly name = 'NodeNameError';

  constructor(node: string) {
    super(`Another worker runs under the name "${node}": set BERTH_NODE to a name that no other node has`);
  }
}

/** A live worker writes a heartbeat within this time, even if one attempt fails. */
export const heardWithinMs = nodeHeartbeatMs + 5_000;

export interface NameDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: Pick<WorkerSettings, 'node' | 'machine'>;
  /** Ends the wait for a heartbeat. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Throws a `NodeNameError` if a worker on another machine uses this node's name. Returns at once if the last worker of that name was
 * on this machine or has been dead for long. Otherwise waits for a heartbeat, since the node may just have moved to this machine;
 * rejects with the signal's reason when it aborts.
 */
export async function assertOwnName({ store, clock, log, settings, signal }: NameDeps): Promise<void> {
  const { node, machine } = settings;
  const found = await store.get(nodes, node);
  if (!found || found.machine === undefined || found.machine === machine) return;
  if (!isAlive(found, await store.now())) return;
  log.warn({ node }, 'The node was on another machine a moment ago, waiting for a heartbeat from there');
  await clock.sleep(heardWithinMs, signal);
  const again = await store.get(nodes, node);
  if (again?.machine === found.machine && again.leaseUntil > found.leaseUntil) throw new NodeNameError(node);
}
