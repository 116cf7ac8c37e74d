/** Answers the requests of the API: endpoints, and pages. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Express, NextFunction, Request, RequestHandler, Response } from 'express';
import type { Endpoint } from '../contract/endpoint.ts';
import { normalizeTarget } from '../core/http/absolute-form.ts';
import { sendJson } from '../core/http/json.ts';
import { PathTable } from '../core/http/path-table.ts';
import { requestId, requestIdHeader } from '../core/http/request-id.ts';
import { ApiError } from '../model/api-error.ts';
import { audited } from './audit.ts';
import { parseCall } from './call.ts';
import type { Call, EndpointRequest } from './call.ts';
import { answerError } from './errors.ts';
import { requestRecorder } from './metrics.ts';
import type { Api } from './dependencies.ts';
import { hostCheck } from './session-url.ts';

/**
 * Handles a call. The result is sent as JSON, or `ok` if there is none; the handler of a stream, page or archive writes the response itself
 * and returns nothing.
 */
export type Handler<Path extends string, Body, Query> = (api: Api, call: Call<Path, Body, Query>) => Promise<unknown>;

/** The answer of an endpoint whose handler returns nothing: `ok` of the contract. */
const okAnswer = { status: 'ok' };

/** An endpoint with its handler. */
export interface MountedEndpoint {
  readonly endpoint: Pick<Endpoint, 'method' | 'path' | 'access' | 'page'>;
  readonly run: (api: Api, request: EndpointRequest) => Promise<void>;
}

/** Pages for browsers, which Express answers. */
export interface MountedPages {
  readonly mount: (app: Express, api: Api) => void;
}

export type Mounted = MountedEndpoint | MountedPages;

/** Binds a handler to its endpoint. */
export function answer<Path extends string, Body, Query>(
  endpoint: Endpoint<Path, Body, Query>,
  handler: Handler<Path, Body, Query>,
): MountedEndpoint {
  const isOpen = isForEveryOrigin(endpoint);
  const isJson = !endpoint.stream && !endpoint.page && endpoint.archive !== 'answer';
  return {
    endpoint,
    run: async (api, request) => {
      // `sendJson` sends the ID with the other headers, which costs less.
      if (!isJson) requestId(request.request, request.response);
      if (isOpen) for (const [name, value] of Object.entries(everyOrigin)) request.response.setHeader(name, value);
      const call = await parseCall(api, endpoint, request);
      const result = await audited(api, endpoint, call, handler);
      if (isJson)
        sendJson(call.response, endpoint.status, result ?? okAnswer, { [requestIdHeader]: requestId(call.request) });
    },
  };
}

/** Creates the request handler of a listener. Only this function decides the order of the steps of a request. */
export function newApp(
  api: Api,
  mounted: readonly Mounted[],
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const endpoints = endpointTable(mounted);
  let pages: Promise<Express> | undefined;
  const record = requestRecorder(api.log, api.metrics);
  const assertHost = hostCheck(api.urls.sessions);
  return async (request, response) => {
    const recorded = record(request, response);
    try {
      if (!normalizeTarget(request))
        throw new ApiError('BadRequest', 'Send the path of an endpoint, or its URL without a user');
      assertHost(request);
      const { path, query } = splitTarget(request.url ?? '');
      const found = endpoints.find(request.method ?? '', path);
      if (!found) {
        requestId(request, response);
        (await (pages ??= newPages(api, mounted, endpoints)))(request, response);
        return;
      }
      const { label, run } = found.value;
      recorded.endpoint = label;
      await run(api, { request, response, parameters: found.parameters, query });
    } catch (error) {
      await answerError(api, { request, response }, error);
    }
  };
}

interface Row extends Pick<MountedEndpoint, 'run'> {
  /** The path in metrics and logs, in the notation of Express, because they have paths of pages, too. */
  readonly label: string;
}

/** The endpoints, and preflight requests to the endpoints that every origin may call. */
function endpointTable(mounted: readonly Mounted[]): PathTable<Row> {
  const table = new PathTable<Row>();
  for (const each of mounted) {
    if (!('endpoint' in each)) continue;
    const { endpoint, run } = each;
    const label = endpoint.path.replaceAll(/\{(\w+)\}/g, ':$1');
    table.add(endpoint.method, endpoint.path, { label, run });
    if (isForEveryOrigin(endpoint)) table.add('OPTIONS', endpoint.path, { label, run: answerPreflight });
  }
  return table;
}

/** Creates the Express app for pages and unknown paths. Express is loaded for the first such request: most processes get none. */
export async function newPages(
  api: Api,
  mounted: readonly Mounted[],
  endpoints: Pick<PathTable<unknown>, 'methods'>,
): Promise<Express> {
  const { default: express } = await import('express');
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', 'simple').set('strict routing', false);
  for (const each of mounted) if ('mount' in each) each.mount(app, api);
  app.use(rejectUnknown(endpoints));
  // Express recognises an error handler by its four parameters.
  app.use(async (error: unknown, request: Request, response: Response, _next: NextFunction) => {
    await answerError(api, { request, response }, error);
  });
  return app;
}

/** Rejects requests that no endpoint handles: with 405 if the path exists with another method. */
function rejectUnknown(endpoints: Pick<PathTable<unknown>, 'methods'>): RequestHandler {
  return ({ method, path }, response) => {
    const methods = endpoints.methods(path);
    if (methods.length === 0) throw new ApiError('NotFound', `There is no ${method} ${path}`);
    response.setHeader('allow', methods.join(', '));
    throw new ApiError('MethodNotAllowed', `This path does not support ${method}, only ${methods.join(', ')}`);
  };
}

function splitTarget(target: string): { readonly path: string; readonly query: string } {
  const at = target.indexOf('?');
  return at < 0 ? { path: target, query: '' } : { path: target.slice(0, at), query: target.slice(at + 1) };
}

function isForEveryOrigin({ access, page }: Pick<Endpoint, 'access' | 'page'>): boolean {
  return (access === 'none' || access === 'spawn-token') && !page;
}

const everyOrigin = { 'access-control-allow-origin': '*', 'access-control-allow-headers': '*' };

async function answerPreflight(_api: Api, { request, response }: EndpointRequest): Promise<void> {
  requestId(request, response);
  response.writeHead(204, everyOrigin).end();
}
