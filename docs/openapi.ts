/** Generates the OpenAPI document of the service API from the endpoints and schemas of the contract. */
import { createDocument } from 'zod-openapi';
import type { ZodOpenApiOperationObject, ZodOpenApiPathsObject, ZodOpenApiRequestBodyObject } from 'zod-openapi';
import { z } from 'zod';
import { allEndpoints } from '../contract/all-endpoints.ts';
import { needsToken } from '../contract/endpoint.ts';
import type { Endpoint } from '../contract/endpoint.ts';
import { errorBody, serviceErrors } from '../contract/errors.ts';
import type { ServiceErrorCode } from '../contract/errors.ts';
import { scopes } from '../contract/scopes.ts';
import { sessionCookieName } from '../contract/people.ts';
import { openApiTags, tagOf } from './openapi-tags.ts';
import type { OpenApiDocument } from './openapi-document.ts';
import { addExamples } from './openapi-examples.ts';

/** Errors of every endpoint. An unknown query parameter is a bad request everywhere. */
const everywhere: readonly ServiceErrorCode[] = ['BadRequest', 'InternalError', 'Unavailable'];
const withToken: readonly ServiceErrorCode[] = ['Unauthorized', 'Forbidden', 'TooManyRequests'];
const withBody: readonly ServiceErrorCode[] = ['PayloadTooLarge', 'UnsupportedMediaType'];

/** The document, as text. */
export function openApiText(version: string): string {
  return `${JSON.stringify(openApiDocument(version), undefined, 2)}\n`;
}

/** The document, of all endpoints or of some. */
export function openApiDocument(
  version: string,
  described: Readonly<Record<string, Endpoint>> = allEndpoints,
): OpenApiDocument {
  const paths: ZodOpenApiPathsObject = {};
  for (const [name, endpoint] of Object.entries(described)) {
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method.toLowerCase()]: operation(name, endpoint) };
  }
  const document = createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Berth service API',
      version,
      description: introduction,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    tags: openApiTags,
    components: { securitySchemes },
    paths,
  }) as unknown as OpenApiDocument;
  addExamples(document);
  return document;
}

const introduction = `Berth runs a container for each session of an application, and stops it when it is idle.

To try a request on this page, press **Authorize** and enter an access token. \`POST /v2/account/{account}/token\` creates one, and the first
start writes one to the file \`token\` of the data folder. If you are [logged in](/login), the page sends the cookie of your
session instead. A refused request is answered with \`{"error":{"code","message","status","id"}}\`: the code is stable, and the ID is in
the server's log.`;

const securitySchemes = {
  accessToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'An access token, or the token of the log-in of a command line',
  },
  sessionCookie: {
    type: 'apiKey',
    in: 'cookie',
    name: sessionCookieName,
    description:
      "The cookie of a log-in at `/login`, which browsers send by themselves. A request that changes something must come from the API's own pages.",
  },
} as const;

const accessTexts: Readonly<Record<string, string>> = {
  any: 'Needs a valid access token.',
  login: 'Needs the log-in of a user, with a browser or a command line.',
  ...Object.fromEntries(scopes.map((scope) => [scope, `Needs an access token with the scope \`${scope}\`.`])),
  owner: 'Needs an access token of an owner of the account, with the scope `manage`.',
  admin: 'Needs the log-in of an administrator of the platform.',
};

function operation(name: string, endpoint: Endpoint): ZodOpenApiOperationObject {
  const isPost = endpoint.method === 'POST';
  const type = answerType(endpoint);
  return {
    operationId: name,
    tags: [tagOf(endpoint)],
    summary: endpoint.summary,
    ...(needsAccessToken(endpoint) && {
      security: [{ accessToken: [] }, { sessionCookie: [] }],
      description: accessTexts[endpoint.access],
    }),
    requestParams: { path: pathSchema(endpoint.path), query: endpoint.query as z.ZodObject },
    ...(isPost && { requestBody: requestBody(endpoint) }),
    responses: {
      [endpoint.status]: { description: 'Done', content: { [type]: { schema: endpoint.answer } } },
      ...(endpoint.endsWith204 && {
        204: { description: 'The client has received every event, by its `Last-Event-ID`' },
      }),
      ...(endpoint.page && pageResponses),
      ...errorResponses(endpoint),
    },
  };
}

/** The responses of a readiness page, except 200. */
const pageResponses = {
  303: { description: 'The backend is ready: a redirect to its URL' },
  404: { description: 'A page for a backend that does not exist', content: { 'text/html': {} } },
  410: { description: 'A page with the reason why the backend has ended', content: { 'text/html': {} } },
};

function needsAccessToken({ access }: Endpoint): boolean {
  return needsToken(access);
}

function answerType({ stream, page, archive }: Endpoint): string {
  if (page) return 'text/html';
  if (archive === 'answer') return 'application/x-tar';
  return stream ? 'text/event-stream' : 'application/json';
}

/** An archive is a file in a form, or the body itself. A form may also contain the query parameters as fields. */
function requestBody({ archive, body, query }: Endpoint): ZodOpenApiRequestBodyObject {
  if (archive !== 'request') {
    return { required: !body.safeParse({}).success, content: { 'application/json': { schema: body } } };
  }
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

function errorResponses(endpoint: Endpoint) {
  const codes = new Set<ServiceErrorCode>([
    ...endpoint.errors,
    ...(needsAccessToken(endpoint) ? withToken : []),
    ...(endpoint.mustAcceptStream ? (['NotAcceptable'] as const) : []),
    ...(endpoint.method === 'POST' ? withBody : []),
    ...everywhere,
  ]);
  const byStatus = Object.groupBy(codes, (code) => serviceErrors[code].status);
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, group = []]) => [
      status,
      {
        description: group.map((code) => `\`${code}\`: ${serviceErrors[code].when}`).join('. '),
        content: { 'application/json': { schema: errorBody, examples: errorExamples(group) } },
      },
    ]),
  );
}

function errorExamples(codes: readonly ServiceErrorCode[]) {
  const id = 'f3b1a6de-5a0f-4c1c-9a53-0d9f2f6c1b7e';
  const exampleOf = (code: ServiceErrorCode) => {
    const { status, when: message } = serviceErrors[code];
    return [code, { value: { error: { code, message, status, id } } }] as const;
  };
  return Object.fromEntries(codes.map(exampleOf));
}
