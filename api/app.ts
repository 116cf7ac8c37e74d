/** The HTTP application of this room: middleware in order, then every endpoint. */
import express from 'express';
import type { Express, Request, RequestHandler, Response } from 'express';
import type { Endpoint, PathParameters } from '../contract/endpoints.ts';
import { drained } from '../core/http/linger.ts';
import { hasForeignBody, jsonBody, sendJson } from '../core/http/json.ts';
import { requestId } from '../core/http/request-id.ts';
import { Refusal } from '../model/refusal.ts';
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
  /** Aborts when the client leaves, or the room closes. */
  readonly signal: AbortSignal;
}

/** Answers a call: what it returns is sent as JSON; a stream's handler writes the response itself and returns nothing. */
export type Handler<Path extends string, Body, Query> = (api: Api, call: Call<Path, Body, Query>) => Promise<unknown>;

/** An endpoint and what answers it, ready to be mounted. */
export interface Mounted {
  /** Whether the handler reads the body itself, since it is no JSON. */
  readonly readsBody?: boolean;
  readonly mount: (app: Express, api: Api) => void;
}

/** Made once: an error of its own for each request would cost more than the rest of it. */
const clientGone = new Error('The client has left');

const nobody: Caller = { account: '', rights: [] };

/** Binds a handler to its endpoint. */
export function answer<Path extends string, Body, Query>(
  endpoint: Endpoint<Path, Body, Query>,
  handler: Handler<Path, Body, Query>,
): Mounted {
  return {
    readsBody: endpoint.archive === 'request',
    mount: (app, api) => {
      const path = endpoint.path.replaceAll(/\{(\w+)\}/g, ':$1');
      if (endpoint.access === 'none')
        app.options(path, allowEveryOrigin, (_request, response) => void response.sendStatus(204));
      const run: RequestHandler = async (request, response) => {
        try {
          const call = await parseCall(api, endpoint, request, response);
          const result = await handler(api, call);
          if (!endpoint.stream && endpoint.archive !== 'answer') sendJson(response, endpoint.status, result);
        } catch (error) {
          if (endpoint.archive === 'request') await stopSending(api, request, response);
          throw error;
        }
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
  for (const each of mounted) if (each.readsBody) each.mount(app, api);
  app.use(refuseForeignBodies, jsonBody());
  for (const each of mounted) if (!each.readsBody) each.mount(app, api);
  app.use((request) => {
    throw new Refusal('NotFound', `There is no ${request.method} ${request.path}`);
  });
  app.use(answerErrors(api.log));
  return app;
}

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
  return {
    parameters: request.params as PathParameters<Path>,
    body: endpoint.body.parse(request.body ?? {}),
    query: endpoint.query.parse(request.query),
    caller,
    request,
    response,
    signal: AbortSignal.any([gone.signal, api.closing]),
  };
}

/** Who still sends gigabytes to be refused must stop, and yet come to read why. */
async function stopSending({ closing }: Api, request: Request, response: Response): Promise<void> {
  if (!(await drained(request, closing)) && !response.headersSent) response.setHeader('connection', 'close');
}

const allowEveryOrigin: RequestHandler = (_request, response, next) => {
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('access-control-allow-headers', '*');
  next();
};

const refuseForeignBodies: RequestHandler = (request, _response, next) => {
  if (hasForeignBody(request)) throw new Refusal('UnsupportedMediaType', 'Send the body as application/json');
  next();
};
