/** The OpenAPI document of the service API, made from the endpoints and schemas of the contract. */
import { createDocument } from 'zod-openapi';
import type { ZodOpenApiOperationObject, ZodOpenApiPathsObject, ZodOpenApiRequestBodyObject } from 'zod-openapi';
import { z } from 'zod';
import { endpoints } from '../contract/endpoints.ts';
import type { Endpoint } from '../contract/endpoint.ts';
import { errorBody, serviceErrors } from '../contract/errors.ts';
import type { ServiceErrorCode } from '../contract/errors.ts';

/** What any endpoint may answer, whatever it does. */
const everywhere: readonly ServiceErrorCode[] = ['InternalError', 'Unavailable'];
const withToken: readonly ServiceErrorCode[] = ['Unauthorized', 'Forbidden'];
const withBody: readonly ServiceErrorCode[] = ['BadRequest', 'PayloadTooLarge', 'UnsupportedMediaType'];

/** The document, as text. */
export function openApiText(version: string): string {
  const paths: ZodOpenApiPathsObject = {};
  for (const [name, endpoint] of Object.entries(endpoints)) {
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method.toLowerCase()]: operation(name, endpoint) };
  }
  const document = createDocument({
    openapi: '3.1.0',
    info: { title: 'Berth service API', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    components: { securitySchemes: { accessToken: { type: 'http', scheme: 'bearer' } } },
    paths,
  });
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function operation(name: string, endpoint: Endpoint): ZodOpenApiOperationObject {
  const isPost = endpoint.method === 'POST';
  const type = answerType(endpoint);
  return {
    operationId: name,
    summary: endpoint.summary,
    ...(endpoint.access !== 'none' && {
      security: [{ accessToken: [] }],
      description: `Needs an access token with the scope \`${endpoint.access}\`.`,
    }),
    requestParams: { path: pathSchema(endpoint.path), query: endpoint.query as z.ZodObject },
    ...(isPost && { requestBody: requestBody(endpoint) }),
    responses: {
      [endpoint.status]: { description: 'Done', content: { [type]: { schema: endpoint.answer } } },
      ...refusals(endpoint),
    },
  };
}

function answerType({ stream, archive }: Endpoint): string {
  if (archive === 'answer') return 'application/x-tar';
  return stream ? 'text/event-stream' : 'application/json';
}

/** An archive comes as a file of a form, or as the body itself. Of a form, what may stand in the query may be a field. */
function requestBody({ archive, body, query }: Endpoint): ZodOpenApiRequestBodyObject {
  if (archive !== 'request') return { required: false, content: { 'application/json': { schema: body } } };
  const file = z
    .string()
    .meta({ format: 'binary', description: 'The archive: a tar, which may be compressed with gzip or zstd' });
  return {
    required: true,
    content: {
      'multipart/form-data': { schema: z.object({ archive: file, ...(query as z.ZodObject).shape }) },
      'application/x-tar': {},
      'application/gzip': {},
      'application/zstd': {},
    },
  };
}

function pathSchema(path: string): z.ZodObject {
  return z.object(Object.fromEntries(Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => [name, z.string()])));
}

function refusals(endpoint: Endpoint) {
  const codes = new Set<ServiceErrorCode>([
    ...endpoint.errors,
    ...(endpoint.access === 'none' ? [] : withToken),
    ...(endpoint.method === 'POST' ? withBody : []),
    ...everywhere,
  ]);
  const byStatus = Object.groupBy(codes, (code) => serviceErrors[code].status);
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, group = []]) => [
      status,
      {
        description: group.map((code) => `\`${code}\`: ${serviceErrors[code].when}`).join('. '),
        content: { 'application/json': { schema: errorBody } },
      },
    ]),
  );
}
