/** One request at the proxy, plain or asking for an upgrade, from its head to the end of all that follows. */
import { ServerResponse } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ProxyErrorCode } from '../contract/proxy-errors.ts';
import { watchPeer } from './forward/watch-peer.ts';

export interface Exchange {
  readonly request: IncomingMessage;
  /** Where the answer goes; for an upgrade, the answer that refuses it. */
  readonly response: ServerResponse;
  /** The connection and what came after the request, if it asks for an upgrade. */
  readonly upgrade?: { readonly socket: Duplex; readonly head: Buffer };
  /** Aborts when everything has been sent, or the client has left. */
  readonly closed: AbortSignal;
  /** The status that was answered; `undefined` if none was. */
  status(): number | undefined;
  /** The backend it is for, once that is known. */
  backend?: string;
  /** The error of the proxy's own that was answered. */
  error?: ProxyErrorCode;
}

/** Why an exchange's signal aborts: one for all, since making one costs a good part of a short request. */
const over = new Error('The exchange is over');

/** A plain request. */
export function plainExchange(request: IncomingMessage, response: ServerResponse): Exchange {
  watchPeer(request.socket);
  const closing = new AbortController();
  response.once('close', () => closing.abort(over));
  const status = () => (response.headersSent ? response.statusCode : undefined);
  return { request, response, closed: closing.signal, status };
}

/** A request that asks for an upgrade. */
export function upgradeExchange(request: IncomingMessage, socket: Duplex, head: Buffer): Exchange {
  watchPeer(socket);
  const closing = new AbortController();
  socket.once('close', () => closing.abort(over));
  // An error is followed by `close`, which is where it is dealt with.
  socket.on('error', () => {});
  const response = refusalOf(request, socket);
  const status = () => (response.headersSent ? response.statusCode : response.socket ? undefined : 101);
  return { request, response, upgrade: { socket, head }, closed: closing.signal, status };
}

/** A response on a connection that Node's server has let go of. */
function refusalOf(request: IncomingMessage, socket: Duplex): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket as Socket);
  const onDrain = () => response.emit('drain');
  socket.on('drain', onDrain);
  response.once('finish', () => {
    socket.off('drain', onDrain);
    (socket as Socket).destroySoon();
  });
  return response;
}
