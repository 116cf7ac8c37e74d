/** Generates docs/api.md, the list of all endpoints of the service API. */
import { endpointGroups } from '../contract/all-endpoints.ts';
import type { Endpoint, EndpointAccess } from '../contract/endpoint.ts';
import { generations } from '../contract/generations.ts';
import type { GenerationName } from '../contract/generations.ts';

const titles: Readonly<Record<keyof typeof endpointGroups, string>> = {
  v2: 'v2, the current API',
  v1: 'v1',
  earliest: 'The earliest form, without a prefix',
  tools: 'Calls of existing command lines',
};

const meanings: Readonly<Record<GenerationName, string>> = { v2: 'v2', v1: 'v1', earliest: 'earliest form' };

/** The page, in Markdown. */
export function apiText(): string {
  const groups = Object.entries(endpointGroups).map(([group, list]) => {
    const rows = Object.values<Endpoint>(list).map(row);
    return `## ${titles[group as keyof typeof endpointGroups]}

| method | path | access token | answer | what it does |
|---|---|---|---|---|
${rows.join('\n')}
`;
  });
  return `# The service API

This page lists every endpoint. \`docs/openapi.json\`, which the API serves at \`/openapi.json\` and shows at \`/docs\`, describes the fields of
requests and responses, [errors.md](errors.md) the errors. The column "access token" contains the scope that the token needs. Pages of every
origin can read endpoints that need no token (CORS).

${groups.join('\n')}
## Corresponding words of the generations

A backend that is spawned through one generation is visible through all of them.

${wordTable()}

| generation | variables that the platform sets in a backend | a request that sets one of them |
|---|---|---|
${variableRows().join('\n')}
`;
}

function row({ method, path, access, summary, ...endpoint }: Endpoint): string {
  return `| ${method} | \`${path}\` | ${accessText(access)} | ${answerText(endpoint)} | ${summary} |`;
}

function accessText(access: EndpointAccess): string {
  if (access === 'none') return 'none';
  if (access === 'spawn-token') return 'none: the path has a spawn token';
  if (access === 'proof') return 'none: the body proves who the caller is';
  return access === 'any' ? 'any' : `\`${access}\``;
}

function answerText({ stream, page, archive }: Pick<Endpoint, 'stream' | 'page' | 'archive'>): string {
  if (stream) return 'events';
  if (page) return 'page';
  return archive === 'answer' ? 'archive' : 'JSON';
}

function wordTable(): string {
  const names = Object.keys(generations) as GenerationName[];
  const words = Object.keys(generations.v2.words) as (keyof (typeof generations)['v2']['words'])[];
  const rows = words.map((word) => `| ${names.map((name) => `\`${generations[name].words[word]}\``).join(' | ')} |`);
  return `| ${names.map((name) => meanings[name]).join(' | ')} |\n|${names.map(() => '---').join('|')}|\n${rows.join('\n')}`;
}

function variableRows(): string[] {
  return Object.entries(generations).map(([name, { reservedVariables, onReservedVariable }]) => {
    const variables = reservedVariables.map((variable) => `\`${variable}\``).join(', ');
    const result = onReservedVariable === 'refuse' ? 'is refused (400)' : "has no effect: the platform's value wins";
    return `| ${meanings[name as GenerationName]} | ${variables} | ${result} |`;
  });
}
