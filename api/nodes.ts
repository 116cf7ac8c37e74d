/** Nodes, for administrators. */
import { endpoints } from '../contract/endpoints.ts';
import { nodeDrainChanged } from '../contract/messages.ts';
import type { NodeObject } from '../contract/nodes.ts';
import { ApiError } from '../model/api-error.ts';
import { backends } from '../model/backend.ts';
import { drained, isAlive, nodes, undrained } from '../model/node.ts';
import type { Node } from '../model/node.ts';
import { answer } from './app.ts';
import type { Api } from './dependencies.ts';

export const nodeRoutes = [
  answer(endpoints.listNodes, async (api) => {
    const now = await api.store.now();
    const all = await api.store.find(nodes, { index: 'byLease' });
    const listed = await Promise.all(all.map(async (node) => await presentNode(api, node, now)));
    return { nodes: listed.toSorted((one, other) => one.name.localeCompare(other.name)) };
  }),
  answer(endpoints.drainNode, async (api, { parameters }) => {
    const now = await api.store.now();
    await change(api, parameters.node, (node) => drained(node, now));
  }),
  answer(endpoints.undrainNode, async (api, { parameters }) => await change(api, parameters.node, undrained)),
];

/** Writes the change, then notifies the node's worker, which would otherwise notice it with its next heartbeat. */
async function change(api: Api, id: string, changed: (node: Node) => Node): Promise<void> {
  const node = await api.store.update(nodes, id, changed);
  if (!node) throw new ApiError('NodeNotFound', `There is no node "${id}"`);
  await api.bus.publish(nodeDrainChanged, { node: id });
}

async function presentNode(api: Api, node: Node, now: Date): Promise<NodeObject> {
  const running = await api.store.findIds(backends, { index: 'byNode', equals: { node: node.id, live: true } });
  return {
    name: node.id,
    cluster: node.cluster,
    alive: isAlive(node, now),
    drained_at: node.drainedAt?.toISOString() ?? null,
    running_backends: running.length,
    started_at: node.startedAt.toISOString(),
    engine_version: node.engineVersion,
  };
}
