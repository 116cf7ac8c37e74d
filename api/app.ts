/** The HTTP application of this room: middleware in order, then every endpoint. */
import express from 'express';
import type { Express, Request, RequestHandler, Response } from 'express';
import type { Endpoint, PathParameters } from '../contract/endpoint.ts';
import { wellFormed } from '../contract/well-formed.ts';
import { sendJson } from '../core/http/json.ts';
import { requestId } from '../core/http/request-id.ts';
import { ApiError } from '../model/api-error.ts';
import { authenticate } from './authenticate.ts';
import type { Caller } from './authenticate.ts';
import { answerErrors } from './errors.ts';
import { observeRequests } from './observe.ts';
import type { Api } from './room.ts';

/** One request to an endpoint, parsed. */
export interface Call<Path extends string, Body, Query> {
  readonly parameters: PathParameters<Path>;
  readonly body: Body;
  readonly query: Query;
  /** Whose access token it is. Never read where the endpoint needs none. */
  readonly caller: Caller;
  readonly request: Request;
  readonly response: Response;
  /** Aborts when the client leaves, or the room closes. Its reason is an `ApiError`. */
  readonly signal: AbortSignal;
}

/** Answers a call: what it returns is sent as JSON; a stream's handler writes the response itself and returns nothing. */
export type Handler<Path extends string, Body, Query> = (api: Api, call: Call<Path, Body, Query>) => Promise<unknown>;

/** An endpoint and what answers it, ready to be mounted. */
export interface Mounted {
  readonly mount: (app: Express, api: Api) => void;
}

/** Made once: an error of its own for each request would cost more than the rest of it. No client reads it. */
const clientGone = new ApiError('BadRequest', 'The client has left');

/** The largest body: no request comes near. */
const maxBodyBytes = 1024 * 1024;

/** Where a body has no fields, or no account answers for it, a few bytes are enough. */
const maxSmallBodyBytes = 1024;

const nobody: Caller = { account: '', scopes: [] };

/** Binds a handler to its endpoint. */
export function answer<Path extends string, Body, Query>(
  endpoint: Endpoint<Path, Body, Query>,
  handler: Handler<Path, Body, Query>,
): Mounted {
  return {
    mount: (app, api) => {
      const path = endpoint.path.replaceAll(/\{(\w+)\}/g, ':$1');
      if (endpoint.access === 'none')
        app.options(path, allowEveryOrigin, (_request, response) => void response.sendStatus(204));
      const run: RequestHandler = async (request, response) => {
        const call = await parseCall(api, endpoint, request, response);
        const result = await handler(api, call);
        if (!endpoint.stream && endpoint.archive !== 'answer') sendJson(response, endpoint.status, result);
      };
      const before = endpoint.access === 'none' ? [allowEveryOrigin] : [];
      app[endpoint.method === 'GET' ? 'get' : 'post'](path, ...before, run);
    },
  };
}

/** The whole application. The order of the middleware is written here and nowhere else. */
export function newApp(api: Api, mounted: readonly Mounted[]): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', 'simple').set('strict routing', false);
  app.use(observeRequests(api.log, api.metrics));
  for (const each of mounted) each.mount(app, api);
  app.use((request) => {
    throw new ApiError('NotFound', `There is no ${request.method} ${request.path}`);
  });
  app.use(answerErrors(api));
  return app;
}

/** The caller first: the body of a request that may not be made is not read. */
async function parseCall<Path extends string, Body, Query>(
  api: Api,
  endpoint: Endpoint<Path, Body, Query>,
  request: Request,
  response: Response,
): Promise<Call<Path, Body, Query>> {
  requestId(request, response);
  const caller = endpoint.access === 'none' ? nobody : await authenticate(api, request, endpoint.access);
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort(clientGone);
  });
  const isSmall = endpoint.method === 'GET' || endpoint.access === 'none';
  const limits = { maxBytes: isSmall ? maxSmallBodyBytes : maxBodyBytes, account: caller.account };
  // A handler that takes an archive reads it itself.
  const body = endpoint.archive === 'request' ? {} : await api.bodies.read(request, limits);
  return {
    parameters: wellFormed.parse(request.params) as PathParameters<Path>,
    body: endpoint.body.parse(wellFormed.parse(body)),
    query: endpoint.query.parse(wellFormed.parse(request.query)),
    caller,
    request,
    response,
    signal: AbortSignal.any([gone.signal, api.closing]),
  };
}

const allowEveryOrigin: RequestHandler = (_request, response, next) => {
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('access-control-allow-headers', '*');
  next();
};
