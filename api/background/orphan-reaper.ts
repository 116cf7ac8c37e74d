/**
 * Ends backends that have no worker: those that no node claimed in time, and those whose node is dead. All API processes may do
 * this at the same time, because statuses only move forward.
 */
import { PeriodicTask } from '../../core/async/periodic-task.ts';
import { backends, becomeTerminated, becomeLost } from '../../model/backend.ts';
import type { Backend, Termination } from '../../model/backend.ts';
import { holdsKey, keyId, keys } from '../../model/key.ts';
import { isAlive, nodeLeaseMs, nodes } from '../../model/node.ts';
import type { Node } from '../../model/node.ts';
import { endBackend } from '../stop.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { SeenUnchanged } from '../seen-unchanged.ts';

/** A dead node is detected at most this long after the end of its lease. */
const passEveryMs = 5_000;

/** A node is dead if its lease was unchanged for as long as a lease lasts. */
const readsOfDeadNode = nodeLeaseMs / passEveryMs;

type OrphanReaperDependencies = Pick<ApiDependencies, 'store' | 'bus' | 'clock' | 'log' | 'rules' | 'ownNode'>;

/** Starts the passes. Disposing waits for a pass in progress. */
export function startOrphanReaper(deps: OrphanReaperDependencies): AsyncDisposable {
  const { clock, log } = deps;
  const reaper = new OrphanReaper(deps);
  const onError = (error: unknown) => log.warn({ err: error }, 'Pass over orphaned backends failed');
  return new PeriodicTask(clock, passEveryMs, async () => await reaper.pass().catch(onError));
}

/**
 * Counts only its own passes, so that after a freeze or restart of this process, or a change of the clock, nodes have the full time to
 * renew their leases and to claim waiting backends.
 */
export class OrphanReaper {
  readonly #deps: OrphanReaperDependencies;
  readonly #nodes = new SeenUnchanged();
  readonly #waiting = new SeenUnchanged();

  constructor(deps: OrphanReaperDependencies) {
    this.#deps = deps;
  }

  /** Runs one pass over the backends without a worker. */
  async pass(): Promise<void> {
    try {
      await this.#endUnclaimed();
      await this.#endLost();
    } catch (error) {
      // If the store failed here, nodes may have failed to renew, too.
      this.#nodes.reset();
      throw error;
    }
  }

  async #endUnclaimed(): Promise<void> {
    const { store, rules } = this.#deps;
    const now = await store.now();
    const timeoutMs = rules.schedulingTimeoutSeconds * 1000;
    const oldest = new Date(now.getTime() - timeoutMs);
    const ending: Termination = {
      kind: 'hard',
      reason: 'startuptimeout',
      exitCode: null,
      failure: 'No node had capacity for it in time',
    };
    const waiting = await store.findIds(backends, { index: 'waiting', equals: { live: true, node: null } });
    this.#waiting.countRead(waiting.map((id) => ({ id, state: 0 })));
    for (const id of waiting) {
      if (this.#waiting.unchangedReads(id) * passEveryMs < timeoutMs) continue;
      const change = (current: Backend) =>
        current.node === undefined && current.createdAt <= oldest ? becomeTerminated(current, ending, now) : current;
      await endBackend(this.#deps, id, { endedBy: 'orphan-reaper', change });
    }
  }

  async #endLost(): Promise<void> {
    const { store, ownNode } = this.#deps;
    const found = await store.find(nodes, { index: 'byCluster' });
    this.#nodes.countRead(found.map(({ id, leaseUntil }) => ({ id, state: leaseUntil.getTime() })));
    for (const node of found) {
      if (node.id === ownNode?.() || this.#nodes.unchangedReads(node.id) < readsOfDeadNode) continue;
      if (!isAlive(node, await store.now())) await this.#endBackendsOf(node);
    }
  }

  async #endBackendsOf(node: Node): Promise<void> {
    const { store } = this.#deps;
    for (const backend of await store.find(backends, { index: 'byNode', equals: { node: node.id, live: true } })) {
      // Read before each write, because this process may have been frozen in between, and the node may have renewed.
      const latest = await store.get(nodes, node.id);
      if (latest?.leaseUntil.getTime() !== node.leaseUntil.getTime()) return;
      const now = await store.now();
      // The node renews each key separately. A key's lease may end after the node's own, and its holder may act until then.
      if (await this.#holdsKey(backend, now)) continue;
      const change = (current: Backend) => becomeLost(current, now);
      await endBackend(this.#deps, backend.id, { endedBy: 'orphan-reaper', change });
    }
  }

  async #holdsKey({ account, service, key, fencingToken }: Backend, now: Date): Promise<boolean> {
    if (key === undefined || fencingToken === undefined) return false;
    return holdsKey(await this.#deps.store.get(keys, keyId(account, service, key)), fencingToken, now);
  }
}
