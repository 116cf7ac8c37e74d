/** One request at the proxy, plain or asking for an upgrade, from its head to the end of all that follows. */
import { ServerResponse } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ProxyErrorCode } from '../contract/proxy-errors.ts';
import type { LastCatch } from '../core/log/last-catch.ts';
import { followAnswer, unansweredOn } from './answers.ts';
import { watchPeer } from './forward/watch-peer.ts';

export interface Exchange {
  readonly request: IncomingMessage;
  /** Where the answer goes; for an upgrade, the answer that refuses it. */
  readonly response: ServerResponse;
  /** The connection and what came after the request, if it asks for an upgrade. */
  readonly upgrade?: UpgradeRequest;
  /** Aborts when everything has been sent, or the client has left. */
  readonly closed: AbortSignal;
  /** The status that was answered; `undefined` if none was. */
  status(): number | undefined;
  /** The backend it is for, once that is known. */
  backend?: string;
  /** The error of the proxy's own that was answered. */
  error?: ProxyErrorCode;
}

export interface UpgradeRequest {
  readonly socket: Duplex;
  readonly head: Buffer;
  /** Earlier requests on the connection are still unanswered, so the connection cannot become something else. */
  readonly isEarly: boolean;
}

/** Why an exchange's signal aborts: one for all, since making one costs a good part of a short request. */
const over = new Error('The exchange is over');

/** A plain request. */
export function plainExchange(request: IncomingMessage, response: ServerResponse): Exchange {
  watchPeer(request.socket);
  const closing = new AbortController();
  followAnswer(request.socket, response, () => closing.abort(over));
  const status = () => (response.headersSent ? response.statusCode : undefined);
  return { request, response, closed: closing.signal, status };
}

/** A request that asks for an upgrade. */
export function upgradeExchange(request: IncomingMessage, socket: Duplex, head: Buffer, caught: LastCatch): Exchange {
  watchPeer(socket);
  const closing = new AbortController();
  socket.once('close', () => closing.abort(over));
  // An error is followed by `close`, which is where it is dealt with.
  socket.on('error', () => {});
  const earlier = unansweredOn(socket);
  const response = refusalOf(request, { socket, earlier, caught });
  const upgrade = { socket, head, isEarly: earlier.length > 0 };
  const status = () => (response.headersSent ? response.statusCode : response.socket ? undefined : 101);
  return { request, response, upgrade, closed: closing.signal, status };
}

/** A response on a connection that Node's server has let go of. It goes out after the earlier answers. */
function refusalOf(
  request: IncomingMessage,
  { socket, earlier, caught }: { socket: Duplex; earlier: ServerResponse[]; caught: LastCatch },
): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  const last = earlier.at(-1);
  const cut = () => socket.destroy();
  const take = () => {
    if (!socket.destroyed) response.assignSocket(socket as Socket);
  };
  if (last) last.once('close', caught.around(take, cut));
  else take();
  const onDrain = () => {
    for (const each of [...earlier, response]) if (each.socket === socket) each.emit('drain');
  };
  socket.on('drain', onDrain);
  response.once('finish', () => {
    socket.off('drain', onDrain);
    (socket as Socket).destroySoon();
  });
  return response;
}
