/** The HTTP application of the API: middleware in order, then every endpoint. */
import express from 'express';
import type { Express, Request, RequestHandler, Response } from 'express';
import { needsToken } from '../contract/endpoint.ts';
import type { Endpoint, PathParameters } from '../contract/endpoint.ts';
import { sendJson } from '../core/http/json.ts';
import { requestId } from '../core/http/request-id.ts';
import { ApiError } from '../model/api-error.ts';
import { anonymous, authenticate } from './access.ts';
import { assertSameOrigin } from './accounts/session-cookie.ts';
import type { Caller } from './access.ts';
import { audited } from './audit.ts';
import { answerErrors } from './errors.ts';
import { measureRequests } from './metrics.ts';
import type { Api } from './dependencies.ts';
import { refuseSessionHosts } from './session-url.ts';
import { authenticateSpawnToken } from './connect/spawn-tokens.ts';
import { assertWellFormed } from './well-formed.ts';

/** A parsed request to an endpoint. */
export interface Call<Path extends string, Body, Query> {
  readonly parameters: PathParameters<Path>;
  readonly body: Body;
  readonly query: Query;
  /** The caller; a placeholder if the endpoint needs no access token. */
  readonly caller: Caller;
  readonly request: Request;
  readonly response: Response;
  /** Aborts when the client disconnects or the API closes. Its reason is a `ApiError`. */
  readonly signal: AbortSignal;
}

/** Handles a call. The result is sent as JSON; the handler of a stream writes the response itself and returns nothing. */
export type Handler<Path extends string, Body, Query> = (api: Api, call: Call<Path, Body, Query>) => Promise<unknown>;

/** An endpoint with its handler, or pages. */
export interface Mounted {
  readonly endpoint?: Pick<Endpoint, 'method' | 'path'>;
  readonly mount: (app: Express, api: Api) => void;
}

/** The largest body, far above that of any request. */
const maxBodyBytes = 1024 * 1024;

/** The largest body of a request that needs none, or that has no access token. */
const maxSmallBodyBytes = 1024;

/** The largest body that proves who the caller is: an ID token has about 1.5 KB. */
const maxProofBytes = 16 * 1024;

const methods = { GET: 'get', POST: 'post', DELETE: 'delete' } as const;

/** The media type of event streams. */
const streamType = 'text/event-stream';

/** A constant, as `clientGone`. */
const tokenEnded = new ApiError('Unauthorized', 'This access token was revoked, has expired or was changed');

/** Binds a handler to its endpoint. */
export function answer<Path extends string, Body, Query>(
  endpoint: Endpoint<Path, Body, Query>,
  handler: Handler<Path, Body, Query>,
): Mounted {
  return {
    endpoint,
    mount: (app, api) => {
      const path = endpoint.path.replaceAll(/\{(\w+)\}/g, ':$1');
      const isOpen = isForEveryOrigin(endpoint);
      if (isOpen) app.options(path, allowEveryOrigin, (_request, response) => void response.sendStatus(204));
      const run: RequestHandler = async (request, response) => {
        const call = await parseCall(api, endpoint, request, response);
        const result = await audited(api, endpoint, call, async () => await handler(api, call));
        if (isJsonAnswered(endpoint)) sendJson(response, endpoint.status, result);
      };
      const before = isOpen ? [allowEveryOrigin] : [];
      app[methods[endpoint.method]](path, ...before, run);
    },
  };
}

/** Creates the application. Only this function decides the order of the middleware. */
export function newApp(api: Api, mounted: readonly Mounted[]): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', 'simple').set('strict routing', false);
  app.use(measureRequests(api.log, api.metrics));
  if (api.urls.sessions !== undefined) app.use(refuseSessionHosts(api.urls.sessions));
  for (const each of mounted) each.mount(app, api);
  app.use(refuseUnknown(mounted));
  app.use(answerErrors(api));
  return app;
}

/** Refuses what no endpoint handles: with 405 if the path exists with another method. */
function refuseUnknown(mounted: readonly Mounted[]): RequestHandler {
  const endpoints = mounted.flatMap(({ endpoint }) => endpoint ?? []);
  const patterns = endpoints.map(({ method, path }) => ({ method, pattern: patternOf(path) }));
  return ({ method, path }, response) => {
    const allowed = patterns.flatMap((each) => (each.pattern.test(path) ? each.method : []));
    if (allowed.length === 0) throw new ApiError('NotFound', `There is no ${method} ${path}`);
    const methods = [...new Set(allowed)].join(', ');
    response.setHeader('allow', methods);
    throw new ApiError('MethodNotAllowed', `This path does not support ${method}, send ${methods}`);
  };
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', String.raw`\.`).replaceAll(/\{\w+\}/g, '[^/]+')}/?$`);
}

/** Parses a request. The body is read only after the caller is authenticated. */
async function parseCall<Path extends string, Body, Query>(
  api: Api,
  endpoint: Endpoint<Path, Body, Query>,
  request: Request,
  response: Response,
): Promise<Call<Path, Body, Query>> {
  requestId(request, response);
  const caller = await identify(api, endpoint, request);
  if (endpoint.mustAcceptStream && !request.headers.accept?.includes(streamType)) {
    throw new ApiError('NotAcceptable', `Send the header "Accept: ${streamType}"`);
  }
  const signal = api.openRequests.signalOf(response);
  const { permissions } = caller;
  const limits = { maxBytes: maxBytesOf(endpoint), account: permissions.account ?? permissions.user ?? '' };
  // The handler of an uploaded archive reads the body itself.
  const body = endpoint.archive === 'request' ? {} : await api.bodies.read(request, limits);
  for (const each of [request.params, body, request.query]) assertWellFormed(each);
  return {
    parameters: request.params as PathParameters<Path>,
    body: endpoint.body.parse(body),
    query: endpoint.query.parse(request.query),
    caller,
    request,
    response,
    signal: needsTokenUntilEnd(endpoint) ? untilTokenEnds(api, caller, { response, signal }) : signal,
  };
}

async function identify(api: Api, { access }: Pick<Endpoint, 'access'>, request: Request): Promise<Caller> {
  if (access === 'proof') assertSameOrigin(request, api.urls.api);
  if (access === 'none' || access === 'proof') return anonymous;
  if (access === 'spawn-token') return await authenticateSpawnToken(api, request);
  const { account } = request.params as { account?: string };
  return await authenticate(api, request, access, account);
}

/** Streams and archives end when their token does. */
function needsTokenUntilEnd({ access, stream, archive }: Endpoint): boolean {
  return needsToken(access) && (stream || archive !== 'none');
}

function untilTokenEnds(
  { tokens }: Api,
  { permissions }: Caller,
  { response, signal }: Pick<Call<string, unknown, unknown>, 'response' | 'signal'>,
): AbortSignal {
  const watch = tokens.watch(permissions, { reason: () => tokenEnded });
  response.once('close', () => watch[Symbol.dispose]());
  return AbortSignal.any([signal, watch.signal]);
}

function maxBytesOf({ method, access }: Pick<Endpoint, 'method' | 'access'>): number {
  if (method !== 'POST' || access === 'none') return maxSmallBodyBytes;
  return access === 'proof' ? maxProofBytes : maxBodyBytes;
}

function isForEveryOrigin({ access, page }: Pick<Endpoint, 'access' | 'page'>): boolean {
  return (access === 'none' || access === 'spawn-token') && !page;
}

function isJsonAnswered({ stream, page, archive }: Pick<Endpoint, 'stream' | 'page' | 'archive'>): boolean {
  return !stream && !page && archive !== 'answer';
}

const allowEveryOrigin: RequestHandler = (_request, response, next) => {
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('access-control-allow-headers', '*');
  next();
};
