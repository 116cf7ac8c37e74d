/** A request at the proxy, plain or asking for an upgrade, until its response or its upgraded connection has ended. */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ServerResponse } from '../core/http/node-http.ts';
import type { ProxyErrorCode } from '../contract/proxy-errors.ts';
import type { ErrorBoundary } from '../core/log/error-boundary.ts';
import { hasBody } from './headers.ts';
import type { Begun } from './metrics.ts';
import { ignoreError, keepAlive } from './sockets.ts';

export interface RequestContext {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** For an upgrade, the response that rejects it. */
  readonly response: ServerResponse;
  /** Only if the request asks for an upgrade. */
  readonly upgrade?: UpgradeRequest;
  /** Only if the client pipelines: resolves when the earlier requests on the connection are answered. */
  readonly earlier?: Promise<void>;
  /** Aborts when everything is sent, the connection was upgraded, or the client has disconnected. */
  readonly closed: AbortSignal;
  /** Its start time, and the traffic of its connection before it. */
  begun?: Begun;
  /** The backend, once it is known. */
  backend?: string;
  /** Whether the connection was upgraded. From then on, it has nothing to do with the request. */
  isUpgraded?: boolean;
  /** The page that a browser gets instead of an answer while the backend starts. */
  readinessUrl?: string;
  /** The error with which the proxy answered. */
  error?: ProxyErrorCode;
}

export interface UpgradeRequest {
  readonly socket: Duplex;
  /** The bytes that arrived after the request. */
  readonly head: Buffer;
  /** Earlier requests on the connection are still unanswered, so the connection cannot be upgraded. */
  readonly isEarly: boolean;
  /** Ends the request without closing the connection. */
  readonly leave: () => void;
}

/** The reason of every `closed` signal. It is a constant, because creating an error for each is a large part of a short request's cost. */
const ended = new Error('The request has ended');

/**
 * How many requests a client may send ahead of their answers. Clients that pipeline send a dozen. Node reads any number, and each takes
 * kilobytes while the first one is held.
 */
const maxUnanswered = 1_000;

/** The context of a plain request. */
export function plainContext(request: IncomingMessage, response: ServerResponse): RequestContext {
  const { socket } = request;
  keepAlive(socket);
  const closing = new AbortController();
  const responses = unansweredOn.get(socket) ?? trackResponses(socket);
  const last = [...responses.values()].at(-1);
  responses.set(response, closing.signal);
  if (responses.size > maxUnanswered) socket.destroy();
  response.once('close', () => {
    responses.delete(response);
    closing.abort(ended);
  });
  const earlier = last && { earlier: untilClosed(last) };
  return { request, socket, response, ...earlier, closed: closing.signal };
}

/** Resolves when the `closed` signal of a request aborts. */
export function untilClosed(closed: AbortSignal): Promise<void> {
  return new Promise((resolve) => closed.addEventListener('abort', () => resolve()));
}

/** The context of a request that asks for an upgrade. */
export function upgradeContext(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  errorBoundary: ErrorBoundary,
): RequestContext {
  keepAlive(socket);
  const closing = new AbortController();
  const onClose = () => closing.abort(ended);
  socket.once('close', onClose);
  socket.on('error', ignoreError);
  const earlier = [...(unansweredOn.get(socket)?.keys() ?? [])];
  const { response, onDrain } = rejection(request, { socket, earlier, errorBoundary });
  const leave = () => {
    socket.off('close', onClose).off('drain', onDrain);
    closing.abort(ended);
  };
  const upgrade = { socket, head, isEarly: earlier.length > 0, leave };
  return { request, socket: request.socket, response, upgrade, closed: closing.signal };
}

/**
 * Protocols that are or carry HTTP. Through them a client could send requests to the backend around the proxy, with its own
 * `x-verified-*` headers. A server may ignore such an offer and answer the request itself (RFC 9110, section 7.8).
 */
const carriesHttp = /(?:^|[\s,])(?:h2c?|http|tls)(?:$|[\s,/])/i;

/** Whether to forward a request's offer of another protocol. Not for a request with a body, which would not be read. */
export function isUpgradeWanted(request: IncomingMessage): boolean {
  const { upgrade } = request.headers;
  return upgrade !== undefined && !hasBody(request) && !carriesHttp.test(upgrade);
}

/**
 * The unanswered responses of each client connection, in order, each with a signal that aborts when it is closed. There are several if
 * the client pipelines its requests.
 */
const unansweredOn = new WeakMap<Duplex, Map<ServerResponse, AbortSignal>>();

/** Closes all responses of a connection with it, because Node closes only the first. */
function trackResponses(socket: Duplex): Map<ServerResponse, AbortSignal> {
  const responses = new Map<ServerResponse, AbortSignal>();
  unansweredOn.set(socket, responses);
  socket.once('close', () => {
    for (const response of responses.keys()) response.destroy();
  });
  return responses;
}

/** A response on a connection that Node's server has released. It is sent after the earlier responses. */
function rejection(
  request: IncomingMessage,
  { socket, earlier, errorBoundary }: { socket: Duplex; earlier: ServerResponse[]; errorBoundary: ErrorBoundary },
): { readonly response: ServerResponse; readonly onDrain: () => void } {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  const last = earlier.at(-1);
  const cut = () => socket.destroy();
  const assign = () => {
    if (!socket.destroyed) response.assignSocket(socket as Socket);
  };
  if (last) last.once('close', errorBoundary.wrap(assign, cut));
  else assign();
  const onDrain = () => {
    for (const each of [...earlier, response]) if (each.socket === socket) each.emit('drain');
  };
  socket.on('drain', onDrain);
  response.once('finish', () => {
    socket.off('drain', onDrain);
    (socket as Socket).destroySoon();
  });
  return { response, onDrain };
}
