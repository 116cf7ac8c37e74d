/** Whether this node is drained: it then accepts no new backends, and its running backends continue. */
import { nodeDrainChanged } from '../../contract/messages.ts';
import { nodes } from '../../model/node.ts';
import type { Node } from '../../model/node.ts';
import type { WorkerContext } from '../context.ts';

/** The drain state in the node's document when this worker last read or wrote it. */
export class NodeDrain {
  #isDrained = false;
  readonly #listeners: (() => void)[] = [];

  get isDrained(): boolean {
    return this.#isDrained;
  }

  /** Calls the listener after each change. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  update({ drainedAt }: Pick<Node, 'drainedAt'>): void {
    const isDrained = drainedAt !== undefined;
    if (isDrained === this.#isDrained) return;
    this.#isDrained = isDrained;
    for (const listener of this.#listeners) listener();
  }
}

/** Reads the node's document when the API reports a change. Without the message, the next heartbeat notices it. */
export async function followDrain(worker: WorkerContext): Promise<AsyncDisposable> {
  const { bus, store, settings, drain, log } = worker;
  return await bus.subscribe(nodeDrainChanged, ({ node }) => {
    if (node !== settings.node) return;
    void store
      .get(nodes, node)
      .then((document) => document && drain.update(document))
      .catch((error: unknown) =>
        log.warn({ err: error }, 'Cannot read whether the node is drained, the next heartbeat does'),
      );
  });
}
