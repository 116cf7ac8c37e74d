/** Forwards plain requests of the general path. */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { request as send } from '../../core/http/node-http.ts';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import { ProxyError, unreachableError } from '../errors.ts';
import { hasBody, isReplayable } from '../headers.ts';
import { forwardedTrailers } from '../response-headers.ts';
import { limitAnswer } from './answer-limits.ts';
import type { BackendAgent } from './backend-agent.ts';
import type { Destination } from './forwarder.ts';
import { relayInterim } from './interim.ts';
import type { Pools } from './pools.ts';
import { relay } from './relay.ts';

/** The error codes of writing to a connection that the backend closed while it was idle. */
const closedWhileIdle: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);

interface WebDeps {
  readonly pools: Pools;
  readonly errorBoundary: ErrorBoundary;
}

/** The request of a client, and its response. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly to: Destination;
  readonly errorBoundary: ErrorBoundary;
}

/** Forwards a request. Retries once on a new connection if a pooled one was dead and the request can be repeated safely. */
export async function forwardWeb(
  request: IncomingMessage,
  response: ServerResponse,
  to: Destination,
  { pools, errorBoundary }: WebDeps,
): Promise<void> {
  const exchange = { request, response, to, errorBoundary };
  const { kept, fresh } = pools.of(to);
  const isDead = await attempt(exchange, kept, isReplayable(request.method, hasBody(request)));
  if (isDead && !response.destroyed) await attempt(exchange, fresh, false);
}

/**
 * Resolves when the answer has begun or the client has disconnected, or with `true` if the connection was dead and the request may be
 * repeated. Throws a `ProxyError`.
 */
async function attempt(exchange: Exchange, agent: BackendAgent, isReplayable: boolean): Promise<boolean> {
  const { request, response, to, errorBoundary } = exchange;
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const outgoing = sendHead(exchange, agent);
  // Also when the answer has ended before the backend has read the body.
  const onClose = () => {
    outgoing.destroy();
    resolve(false);
  };
  response.once('close', onClose);
  const fail = (error: unknown) => {
    response.off('close', onClose);
    request.unpipe(outgoing);
    if (isReplayable && outgoing.reusedSocket && closedWhileIdle.has((error as NodeJS.ErrnoException).code))
      resolve(true);
    else reject(unreachableError(error));
  };
  const onAnswer = (incoming: IncomingMessage) => {
    try {
      relay(incoming, response, { view: to.view, errorBoundary });
      resolve(false);
    } catch (error) {
      incoming.destroy();
      reject(unreachableError(error));
    }
  };
  const cut = () => {
    outgoing.destroy();
    response.destroy();
  };
  outgoing.once(
    'socket',
    errorBoundary.wrap(() => limitAnswer(outgoing), cut),
  );
  outgoing.once('response', errorBoundary.wrap(onAnswer, cut));
  outgoing.on('error', fail);
  // An invalid answer, such as an upgrade that was not requested, ends the connection without an error.
  outgoing.once('close', () => fail(new Error('The connection ended without an answer')));
  relayInterim(outgoing, response, { view: to.view, errorBoundary });
  request.once(
    'end',
    errorBoundary.wrap(() => addTrailers(request, outgoing), cut),
  );
  // A pipeline would destroy the client's connection with that of the backend.
  request.pipe(outgoing);
  return await promise;
}

function sendHead({ request, to }: Exchange, agent: BackendAgent): ClientRequest {
  const { host, port } = to.address;
  try {
    return send({ host, port, method: request.method ?? 'GET', path: to.path, headers: to.headers, agent });
  } catch (error) {
    // Node's server accepts some characters in headers that its client refuses to send.
    throw new ProxyError('bad-request', { cause: error });
  }
}

function addTrailers(request: IncomingMessage, outgoing: ClientRequest): void {
  const trailers = forwardedTrailers(request.rawTrailers);
  if (trailers.length === 0 || !outgoing.chunkedEncoding || outgoing.destroyed) return;
  outgoing.addTrailers(trailers);
}
