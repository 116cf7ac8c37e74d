/**
 * Ends backends that have no worker: those that no node claimed in time, and those whose node is dead. Every API
 * process may do this at the same time; statuses only move forward.
 */
import { backends, end, endAsLost } from '../model/backend.ts';
import type { Backend, Ending } from '../model/backend.ts';
import { holdsKey, keyId, keys } from '../model/key.ts';
import { isAlive, nodeLeaseMs, nodes } from '../model/node.ts';
import type { Node } from '../model/node.ts';
import { endBackend } from './stop.ts';
import type { ApiDependencies } from './room.ts';
import { SeenUnchanged } from './seen-unchanged.ts';

/** A node's death is noticed this much after its lease ended, at most. */
const passEveryMs = 5_000;

/** A node that is dead has been seen with the same lease for as long as a lease lasts. */
const looksAtDeadNode = nodeLeaseMs / passEveryMs;

type OrphanReaperDependencies = Pick<ApiDependencies, 'store' | 'bus' | 'clock' | 'log' | 'rules' | 'ownNode'>;

/** Starts the passes. Disposing waits for the one that runs. */
export function startOrphanReaper(deps: OrphanReaperDependencies): AsyncDisposable {
  const reaper = new OrphanReaper(deps);
  let pass: Promise<void> | undefined;
  const timer = deps.clock.every(passEveryMs, () => {
    pass ??= reaper
      .pass()
      .catch((error: unknown) => deps.log.warn({ err: error }, 'Pass over orphaned backends failed'))
      .finally(() => (pass = undefined));
  });
  return {
    [Symbol.asyncDispose]: async () => {
      timer[Symbol.dispose]();
      await pass;
    },
  };
}

/**
 * Judges by what it has seen itself, pass by pass: after a freeze of this process, a restart or a step of a clock, the nodes have
 * as much time to renew, and to take what waits, as at any other moment.
 */
export class OrphanReaper {
  readonly #deps: OrphanReaperDependencies;
  readonly #nodes = new SeenUnchanged();
  readonly #waiting = new SeenUnchanged();

  constructor(deps: OrphanReaperDependencies) {
    this.#deps = deps;
  }

  /** One pass over the backends that no worker looks after. */
  async pass(): Promise<void> {
    try {
      await this.#endUnplaced();
      await this.#endLost();
    } catch (error) {
      // A store that failed here may have kept nodes from renewing, too.
      this.#nodes.forget();
      throw error;
    }
  }

  async #endUnplaced(): Promise<void> {
    const { store, rules } = this.#deps;
    const now = await store.now();
    const timeoutMs = rules.schedulingTimeoutSeconds * 1000;
    const oldest = new Date(now.getTime() - timeoutMs);
    const ending: Ending = {
      kind: 'hard',
      reason: 'startuptimeout',
      exitCode: null,
      failure: 'No node had room for it in time',
    };
    const waiting = await store.find(backends, { index: 'waiting', equals: { live: true, node: null } });
    this.#waiting.look(waiting.map(({ id }) => ({ id, state: 0 })));
    for (const backend of waiting) {
      if (backend.createdAt > oldest || this.#waiting.looksAt(backend.id) * passEveryMs < timeoutMs) continue;
      const change = (current: Backend) => (current.node === undefined ? end(current, ending, now) : current);
      await endBackend(this.#deps, backend.id, { endedBy: 'orphan-reaper', change });
    }
  }

  async #endLost(): Promise<void> {
    const { store, ownNode } = this.#deps;
    const found = await store.find(nodes, { index: 'byCluster' });
    this.#nodes.look(found.map(({ id, leaseUntil }) => ({ id, state: leaseUntil.getTime() })));
    for (const node of found) {
      if (node.id === ownNode?.() || this.#nodes.looksAt(node.id) < looksAtDeadNode) continue;
      if (!isAlive(node, await store.now())) await this.#endBackendsOf(node);
    }
  }

  async #endBackendsOf(node: Node): Promise<void> {
    const { store } = this.#deps;
    for (const backend of await store.find(backends, { index: 'byNode', equals: { node: node.id, live: true } })) {
      // Read again before each write: in between, this process may have stood still, and the node renewed.
      const again = await store.get(nodes, node.id);
      if (again?.leaseUntil.getTime() !== node.leaseUntil.getTime()) return;
      const now = await store.now();
      // The node renews each key by itself: one may outlive the node's own lease, and until then its holder may still act.
      if (await this.#holdsKey(backend, now)) continue;
      const change = (current: Backend) => endAsLost(current, now);
      await endBackend(this.#deps, backend.id, { endedBy: 'orphan-reaper', change });
    }
  }

  async #holdsKey({ account, service, key, fencingToken }: Backend, now: Date): Promise<boolean> {
    if (key === undefined || fencingToken === undefined) return false;
    return holdsKey(await this.#deps.store.get(keys, keyId(account, service, key)), fencingToken, now);
  }
}
