/**
 * The types of `client/contract.ts`, made from the OpenAPI document of v2, of spawn tokens and of what command lines call beyond v2: the
 * published client has no dependencies, so its types cannot refer to the schemas of the contract.
 */
import { endpointGroups } from '../contract/all-endpoints.ts';
import { serviceErrors } from '../contract/errors.ts';
import { openApiDocument } from './openapi.ts';
import type { Content, Operation, Parameter, Schema } from './openapi-document.ts';

const { createSpawnToken, tokenSpawn, revokeSpawnToken } = endpointGroups.earliest;

/** v2 has no spawn tokens. */
const described = {
  ...endpointGroups.v2,
  ...endpointGroups.tools,
  earliestCreateSpawnToken: createSpawnToken,
  earliestTokenSpawn: tokenSpawn,
  earliestRevokeSpawnToken: revokeSpawnToken,
};

/** The text of `client/contract.ts`. */
export function clientContractText(version: string): string {
  const { components, paths } = openApiDocument(version, described);
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `${comment(schema.description)}export type ${typeName(name)} = ${typeOf(schema, '')};\n`,
  );
  const table = operations.map(
    ({ path, method, operation }) =>
      `  ${operation.operationId}: { method: '${method}', path: '${path}', needsToken: ${operation.security !== undefined} },\n`,
  );
  const types = operations.map(({ operation }) => operationType(operation));
  const codes = Object.keys(serviceErrors).map((code) => `\n  | '${code}'`);
  return `/** Generated from \`contract/\` by \`npm run generate\`; do not edit. */

/** A stable code of an error that the API returns. */
export type ServiceErrorCode =${codes.join('')};

${schemas.join('\n')}
/** The endpoints: parameters of the path, the query, the body of a request, and the body of a response. */
export interface Endpoints {
${types.join('')}}

/** How each endpoint is called. */
export const endpoints = {
${table.join('')}} as const satisfies Record<keyof Endpoints, { method: string; path: string; needsToken: boolean }>;
`;
}

function operationType({ operationId, summary, parameters = [], requestBody, responses }: Operation): string {
  const found = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1];
  const fields = {
    path: fieldsOf(parameters.filter((each) => each.in === 'path')),
    query: fieldsOf(parameters.filter((each) => each.in === 'query')),
    body: contentType(requestBody?.content),
    answer: contentType(found?.content),
  };
  const lines = Object.entries(fields).map(([name, type]) => `    ${name}: ${type};\n`);
  return `${comment(summary, '  ')}  ${operationId}: {\n${lines.join('')}  };\n`;
}

function fieldsOf(parameters: readonly Parameter[]): string {
  const properties = Object.fromEntries(parameters.map(({ name, schema }) => [name, schema]));
  const required = parameters.filter((each) => each.required).map(({ name }) => name);
  return typeOf({ type: 'object', properties, required, additionalProperties: false }, '    ');
}

/** Archives are files of gigabytes, which methods of the client send and receive as streams: they have no type here. */
function contentType(content: Content = {}): string {
  const schema = content['application/json']?.schema ?? content['text/event-stream']?.schema;
  return schema ? typeOf(schema, '    ') : 'undefined';
}

function typeOf(schema: Schema, indent: string): string {
  if (schema.$ref !== undefined) return typeName(schema.$ref.replace('#/components/schemas/', ''));
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(' | ');
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.map((each) => typeOf(each, indent)).join(' | ');
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
  return types.length === 0 ? 'unknown' : types.map((type) => simpleType(type, schema, indent)).join(' | ');
}

function simpleType(type: string, schema: Schema, indent: string): string {
  switch (type) {
    case 'object':
      return objectType(schema, indent);
    case 'array': {
      const item = typeOf(schema.items ?? {}, indent);
      return item.includes(' | ') ? `(${item})[]` : `${item}[]`;
    }
    case 'integer':
      return 'number';
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return type;
    default:
      throw new Error(`The client has no type for the schema ${JSON.stringify(schema)}`);
  }
}

function objectType({ properties = {}, required = [], additionalProperties }: Schema, indent: string): string {
  const inner = `${indent}  `;
  const fields = Object.entries(properties).map(([name, schema]) => {
    const type = typeOf(schema, inner);
    const field = required.includes(name) ? `${name}: ${type}` : `${name}?: ${type} | undefined`;
    return `${comment(schema.description, inner)}${inner}${field};\n`;
  });
  if (typeof additionalProperties === 'object') {
    fields.push(`${inner}[name: string]: ${typeOf(additionalProperties, inner)};\n`);
  }
  return fields.length === 0 ? 'undefined' : `{\n${fields.join('')}${indent}}`;
}

/** The schema library names recursive schemas by a number, and `Error` is a name of JavaScript. */
function typeName(name: string): string {
  return { __schema0: 'Json', Error: 'ErrorResponse' }[name] ?? name;
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", String.raw`\'`)}'` : String(value);
}

function comment(text: string | undefined, indent = ''): string {
  return text === undefined ? '' : `${indent}/** ${text} */\n`;
}
