/** How a container says whose it is. An image's labels cannot override these. */
export const nodeLabel = 'berth.node';
export const backendLabel = 'berth.backend';

/** Containers are found by their backend, too. */
export function containerName(backend: string): string {
  return `berth-${backend}`;
}
