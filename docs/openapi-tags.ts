/** The groups in which the reference page shows the operations of the OpenAPI document, in their order. */
import { endpointGroups } from '../contract/all-endpoints.ts';
import type { Endpoint } from '../contract/endpoint.ts';

interface Row {
  readonly name: string;
  readonly description: string;
  /** Matches the paths of v2 in this group. Groups of other generations have none. */
  readonly paths?: RegExp;
}

/** A path belongs to the first group that matches it. */
const rows = [
  { name: 'Connect', description: 'Connection URLs to backends', paths: /\/connect$/ },
  {
    name: 'Backends',
    description: 'Running and ended backends, their statuses and logs',
    paths: /\/backends?(?:\/|$)/,
  },
  { name: 'Images', description: 'Images of services', paths: /\/(?:images|visibility)(?:\/|$)/ },
  { name: 'Services', description: 'Services, their environments and settings', paths: /\/services?(?:\/|$)/ },
  {
    name: 'Tokens',
    description: 'Access tokens, and deployments without a stored token',
    paths: /\/(?:tokens?|trusts?|oidc-token)(?:\/|$)/,
  },
  { name: 'Nodes', description: 'The machines on which backends run', paths: /\/nodes?(?:\/|$)/ },
  { name: 'People', description: 'Users, and how they log in', paths: /^\/(?!v2\/accounts?(?:\/|$)|v2\/audit)/ },
  { name: 'Accounts', description: 'Accounts, their members and limits, and the audit', paths: /^/ },
  { name: 'v1', description: 'The API of the first version, for existing clients' },
  { name: 'Earliest form', description: 'The API without a prefix, for existing clients' },
  { name: 'Command lines', description: 'Calls of existing command lines' },
] as const satisfies readonly Row[];

const ofGeneration = { v1: 'v1', earliest: 'Earliest form', tools: 'Command lines' } as const;

/** The groups as tags of the document. */
export const openApiTags = rows.map(({ name, description }) => ({ name, description }));

/** The name of the group of an endpoint. */
export function tagOf(endpoint: Endpoint): string {
  for (const [generation, name] of Object.entries(ofGeneration)) {
    const list: readonly Endpoint[] = Object.values(endpointGroups[generation as keyof typeof ofGeneration]);
    if (list.includes(endpoint)) return name;
  }
  return rows.find((row: Row) => row.paths?.test(endpoint.path))?.name ?? '';
}
