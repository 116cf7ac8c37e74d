/** Parses requests to endpoints: the caller, then the parameters and the body. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse as parseQuery } from 'node:querystring';
import { needsToken } from '../contract/endpoint.ts';
import type { Endpoint, PathParameters } from '../contract/endpoint.ts';
import { clientAddress, networkOf } from '../core/http/client-address.ts';
import { ApiError } from '../model/api-error.ts';
import { anonymous, authenticate } from './access.ts';
import type { Caller } from './access.ts';
import { assertSameOrigin } from './accounts/session-cookie.ts';
import { authenticateSpawnToken } from './connect/spawn-tokens.ts';
import type { Api } from './dependencies.ts';
import { assertWellFormed } from './well-formed.ts';

/** A request to an endpoint before it is parsed. */
export interface EndpointRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly parameters: Readonly<Record<string, string>>;
  /** What follows `?` in its target. */
  readonly query: string;
}

/** A parsed request to an endpoint. */
export interface Call<Path extends string, Body, Query> {
  readonly parameters: PathParameters<Path>;
  readonly body: Body;
  readonly query: Query;
  /** The caller; a placeholder if the endpoint needs no access token. */
  readonly caller: Caller;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Aborts when the client disconnects or the API closes. Its reason is an `ApiError`. */
  readonly signal: AbortSignal;
}

/** The largest body, far above that of any request. */
const maxBodyBytes = 1024 * 1024;

/** The largest body of a request that needs none, or that has no access token. */
const maxSmallBodyBytes = 1024;

/** The largest body that authenticates the caller: an ID token has about 1.5 KB. */
const maxProofBytes = 16 * 1024;

const streamType = 'text/event-stream';

/** A constant, like `clientGone` in `open-requests.ts`. */
const tokenEnded = new ApiError('Unauthorized', 'This access token was revoked, has expired or was changed');

/** Parses a request. The body is read only after the caller is authenticated. */
export async function parseCall<Path extends string, Body, Query>(
  api: Api,
  endpoint: Endpoint<Path, Body, Query>,
  { request, response, parameters, query: queryText }: EndpointRequest,
): Promise<Call<Path, Body, Query>> {
  const caller = await identify(api, endpoint, request, parameters);
  if (endpoint.mustAcceptStream && !request.headers.accept?.includes(streamType)) {
    throw new ApiError('NotAcceptable', `Send the header "Accept: ${streamType}"`);
  }
  const { account, user } = caller.permissions;
  const limits = { maxBytes: maxBytesOf(endpoint), account: account ?? user ?? networkShare(api, request) };
  // The handler of an uploaded archive reads the body itself.
  const body = endpoint.archive === 'request' ? {} : await api.bodies.read(request, limits);
  const query = queryText === '' ? noFields : { ...parseQuery(queryText) };
  assertWellFormed(parameters);
  assertWellFormed(body);
  assertWellFormed(query);
  const call = new OpenCall(api, {
    parameters: parameters as PathParameters<Path>,
    body: endpoint.body.parse(body),
    query: endpoint.query.parse(query),
    caller,
    request,
    response,
  });
  if (needsTokenUntilEnd(endpoint)) call.endWithToken();
  return call;
}

/** The share of the memory for bodies that clients of one network have without a token. No account has this name. */
export function networkShare(
  { behindLoadBalancer }: Pick<Api, 'behindLoadBalancer'>,
  request: IncomingMessage,
): string {
  return `network ${networkOf(clientAddress(request, behindLoadBalancer))}`;
}

const noFields = {};

type ParsedCall<Path extends string, Body, Query> = Omit<Call<Path, Body, Query>, 'signal'>;

/** A call that creates its signal on first use: most handlers do not wait, and a signal costs as much as their reads. */
class OpenCall<Path extends string, Body, Query> implements Call<Path, Body, Query> {
  readonly parameters: PathParameters<Path>;
  readonly body: Body;
  readonly query: Query;
  readonly caller: Caller;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly #api: Api;
  #signal: AbortSignal | undefined;

  constructor(api: Api, parsed: ParsedCall<Path, Body, Query>) {
    this.#api = api;
    this.parameters = parsed.parameters;
    this.body = parsed.body;
    this.query = parsed.query;
    this.caller = parsed.caller;
    this.request = parsed.request;
    this.response = parsed.response;
  }

  get signal(): AbortSignal {
    return (this.#signal ??= this.#api.openRequests.signalOf(this.response));
  }

  /** Makes the signal abort when the token becomes invalid, too. */
  endWithToken(): void {
    // The client may have left while its token was read. Its response then emits no `close` that ends the watch.
    if (this.signal.aborted) return;
    const watch = this.#api.tokens.watch(this.caller.permissions, { reason: () => tokenEnded });
    this.response.once('close', () => watch[Symbol.dispose]());
    this.#signal = AbortSignal.any([this.signal, watch.signal]);
  }
}

function identify(
  api: Api,
  { access }: Pick<Endpoint, 'access'>,
  request: IncomingMessage,
  { account, token = '' }: EndpointRequest['parameters'],
): Caller | Promise<Caller> {
  if (access === 'proof') assertSameOrigin(request, api.urls.api);
  if (access === 'none' || access === 'proof') return anonymous;
  if (access === 'spawn-token') return authenticateSpawnToken(api, request, token);
  return authenticate(api, request, access, account);
}

/** Streams and archives end when their token becomes invalid. */
function needsTokenUntilEnd({ access, stream, archive }: Endpoint): boolean {
  return needsToken(access) && (stream || archive !== 'none');
}

function maxBytesOf({ method, access }: Pick<Endpoint, 'method' | 'access'>): number {
  if (method !== 'POST' || access === 'none') return maxSmallBodyBytes;
  return access === 'proof' ? maxProofBytes : maxBodyBytes;
}
