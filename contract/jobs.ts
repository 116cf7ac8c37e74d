/** Jobs: notifications between components. They carry IDs only; the store says what to do. */
import { z } from 'zod';

const backendJob = z.strictObject({ backend: z.string() });

/** For any node of a cluster: a backend waits in `scheduled`. */
export const spawnJob = { name: 'spawn', payload: backendJob };

/** For the node of a backend: a stop was requested. */
export const stopJob = { name: 'stop', payload: backendJob };

/** For a node that is likely to spawn an image next: pull it before the first backend needs it. */
export const prefetchJob = { name: 'prefetch', payload: z.strictObject({ image: z.string() }) };

/** The queue that all nodes of a cluster consume. */
export function clusterQueue(cluster: string): string {
  return `cluster-${cluster}`;
}

/** The queue that only one node consumes. */
export function nodeQueue(node: string): string {
  return `node-${node}`;
}
