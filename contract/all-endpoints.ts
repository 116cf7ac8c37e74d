/** Every endpoint of the service API, in all its generations. */
import type { Endpoint } from './endpoint.ts';
import { endpoints } from './endpoints.ts';
import { toolEndpoints } from './tool-endpoints.ts';
import { earliestEndpoints, v1Endpoints } from './v1-endpoints.ts';

/** By group, then by name. */
export const endpointGroups = {
  v2: endpoints,
  v1: v1Endpoints,
  earliest: earliestEndpoints,
  tools: toolEndpoints,
} as const satisfies Readonly<Record<string, Readonly<Record<string, Endpoint>>>>;

/** All endpoints by a name that is unique: those of v1 and of the earliest form begin with their group. */
export const allEndpoints: Readonly<Record<string, Endpoint>> = Object.fromEntries(
  Object.entries(endpointGroups).flatMap(([group, list]) =>
    Object.entries<Endpoint>(list).map(([name, endpoint]) => [
      group === 'v2' || group === 'tools' ? name : joined(group, name),
      endpoint,
    ]),
  ),
);

function joined(group: string, name: string): string {
  return `${group}${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}
