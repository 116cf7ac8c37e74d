/** The nodes of the platform, for administrators. */
import { sendIdempotent } from './changes.ts';
import type { CallOptions } from './changes.ts';
import type { Node } from './contract.ts';
import { EndpointGroup } from './endpoint-group.ts';

export class Nodes extends EndpointGroup {
  /** All nodes, by name. */
  async list(options?: CallOptions): Promise<Node[]> {
    return (await this.transport.json('listNodes', { path: undefined }, options)).nodes;
  }

  /** Stops a node from accepting new backends. Its running backends continue. */
  async drain(node: string, options?: CallOptions): Promise<void> {
    await sendIdempotent(this.transport, 'drainNode', { path: { node } }, options);
  }

  /** Lets a node accept new backends again. */
  async undrain(node: string, options?: CallOptions): Promise<void> {
    await sendIdempotent(this.transport, 'undrainNode', { path: { node } }, options);
  }
}
