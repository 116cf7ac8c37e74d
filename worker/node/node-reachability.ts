/** Whether other nodes have come beside this one, to whose machines nobody has told the way to this one's backends. */
import { isAlive, nodes } from '../../model/node.ts';
import type { NodeGateway } from '../../model/node.ts';
import type { WorkerContext } from '../context.ts';

/** Names by which a machine calls itself, and by which no other one can call it. */
const ownNames = /^(?:localhost|127\.[\d.]+|::1|host\.docker\.internal)$/;

/** Whether processes on other machines can reach what runs behind a gateway, as far as its name tells. */
export function isReachable(gateway: NodeGateway | undefined): boolean {
  return gateway !== undefined && !ownNames.test(gateway.host);
}

/**
 * Says what to do, once, when this node cannot be reached from other machines and another node lives. Each of the others may be
 * on this machine, too, so it is no more than a warning.
 */
export class NodeReachability {
  readonly #worker: Pick<WorkerContext, 'store' | 'log' | 'settings'>;
  readonly #gateway: NodeGateway | undefined;
  #isDone: boolean;

  constructor(worker: Pick<WorkerContext, 'store' | 'log' | 'settings'>, gateway: NodeGateway | undefined) {
    this.#worker = worker;
    this.#gateway = gateway;
    this.#isDone = isReachable(gateway);
  }

  /** Throws when the store does not answer. */
  async look(): Promise<void> {
    if (this.#isDone) return;
    const { store, log, settings } = this.#worker;
    const now = await store.now();
    const others = (await store.find(nodes, { index: 'byCluster' })).filter(
      (node) => node.id !== settings.node && isAlive(node, now),
    );
    if (others.length === 0) return;
    this.#isDone = true;
    log.warn(
      { nodes: others.map(({ id }) => id), advertisedHost: this.#gateway?.host },
      'There are other nodes, and proxies on other machines cannot reach the backends of this one: set BERTH_ADVERTISED_HOST to the name or address by which other machines reach this one',
    );
  }
}
