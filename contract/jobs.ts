/** Jobs: notifications between components. They carry IDs only; the store says what to do. */
import { z } from 'zod';

const backendJob = z.strictObject({ backend: z.string() });

/** To any node of a cluster: a backend waits in `scheduled`. */
export const spawnJob = { name: 'spawn', payload: backendJob };

/** To the node of a backend: its termination was asked for. */
export const terminateJob = { name: 'terminate', payload: backendJob };

/** To a node that is likely to spawn an image next: fetch it before somebody asks for it. */
export const fetchJob = { name: 'fetch', payload: z.strictObject({ image: z.string() }) };

/** The queue that all nodes of a cluster take from. */
export function clusterQueue(cluster: string): string {
  return `cluster-${cluster}`;
}

/** The queue that one node takes from. */
export function nodeQueue(node: string): string {
  return `node-${node}`;
}
