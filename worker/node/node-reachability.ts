/** Detects nodes on other machines while this node has no advertised host. */
import { isAlive, nodes } from '../../model/node.ts';
import type { NodeGateway } from '../../model/node.ts';
import type { WorkerContext } from '../context.ts';

/** Host names by which every machine reaches itself. */
const ownNames = /^(?:localhost|127\.[\d.]+|::1|host\.docker\.internal)$/;

/** Whether other machines may reach a gateway, judged by its host name. */
function isReachable(gateway: NodeGateway | undefined): boolean {
  return gateway !== undefined && !ownNames.test(gateway.host);
}

/**
 * Logs once what to do if other machines cannot reach this node and another node is alive. It is only a warning, because the other
 * nodes may be on this machine.
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

  /** Throws if the store does not answer. */
  async check(): Promise<void> {
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
