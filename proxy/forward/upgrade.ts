/**
 * WebSockets and other upgrades. http-proxy-3 is not used here: it knows WebSockets alone, buffers a refusal without bounds,
 * and leaves the backend waiting when the client goes before the answer.
 */
import { request as send } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { Duplex } from 'node:stream';
import type { LastCatch } from '../../core/log/last-catch.ts';
import { ProxyFailure } from '../failure.ts';
import { responseHeaders } from '../response-headers.ts';
import { limitAnswer } from './answer-limits.ts';
import { connectLimitMs } from './dial.ts';
import type { Dialer } from './dial.ts';
import type { Destination, Upgrading } from './forwarder.ts';
import { reasonOf, relay } from './relay.ts';
import { watchLeaving } from './watch-leaving.ts';
import { watchPeer } from './watch-peer.ts';

/** A side that has nothing more to say is given this long to hear the other out: the closing of a WebSocket takes no longer. */
const halfOpenLimitMs = 30_000;

/** Asks the backend for the upgrade, and ties the two connections together if it grants it. */
export async function forwardUpgrade(
  request: IncomingMessage,
  client: Upgrading,
  to: Destination,
  { dialer, caught, onTied }: { dialer: Dialer; caught: LastCatch; onTied: (sockets: Tied) => void },
): Promise<void> {
  const dialled = dialer.isStraight(to.address) ? undefined : await dial(dialer, client, to);
  if (client.socket.destroyed) {
    dialled?.destroy();
    return;
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const outgoing = ask(request, to, { dialled, caught });
  const watch = watchLeaving(client.socket);
  const leave = () => {
    outgoing.destroy();
    resolve();
  };
  client.socket.once('close', leave);
  const fail = (cause: unknown) => reject(new ProxyFailure('backend-unreachable', { cause }));
  const cut = (_incoming: IncomingMessage, backend?: Duplex) => {
    client.socket.destroy();
    backend?.destroy();
    leave();
  };
  const onAnswer = (incoming: IncomingMessage) => {
    try {
      relay(incoming, client.response, { prefix: to.prefix, caught });
      resolve();
    } catch (error) {
      incoming.destroy();
      fail(error);
    }
  };
  const onUpgrade = (incoming: IncomingMessage, backend: Duplex, head: Buffer) => {
    client.socket.off('close', leave);
    watch[Symbol.dispose]();
    const tied = switchProtocols(client, { socket: backend, head }, switchingProtocols(incoming, to.prefix));
    if (tied) onTied(tied);
    resolve();
  };
  outgoing.on('error', fail);
  outgoing.once('response', caught.around(onAnswer, cut));
  outgoing.once('upgrade', caught.around(onUpgrade, cut));
  outgoing.end();
  await promise;
}

/** Two pipelines, the server and the count each listen to both ends: a dozen in all, a few more than Node's warning allows. */
const maxListeners = 24;

/** Two connections that live and die together. */
export interface Tied {
  readonly client: Duplex;
  readonly backend: Duplex;
}

/** A connection to the backend; `undefined` if the client has left meanwhile. */
async function dial(dialer: Dialer, client: Upgrading, to: Destination): Promise<Socket | undefined> {
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  using _watch = watchLeaving(client.socket);
  client.socket.once('close', leave);
  try {
    return await dialer.dial(to, leaving.signal);
  } catch (error) {
    if (leaving.signal.aborted) return undefined;
    if (error instanceof ProxyFailure) throw error;
    throw new ProxyFailure('backend-unreachable', { cause: error });
  } finally {
    client.socket.off('close', leave);
  }
}

function ask(
  request: IncomingMessage,
  to: Destination,
  { dialled, caught }: { dialled: Socket | undefined; caught: LastCatch },
): ClientRequest {
  const outgoing = sendHead(request, to, dialled);
  const limit = () => limitAnswer(outgoing);
  outgoing.once(
    'socket',
    caught.around(limit, () => outgoing.destroy()),
  );
  if (dialled) return outgoing;
  outgoing.once('socket', (socket) => {
    const giveUp = () => outgoing.destroy(new Error('The backend does not take the connection'));
    socket.setTimeout(connectLimitMs, giveUp);
    socket.once('connect', () => socket.setTimeout(0, giveUp));
  });
  return outgoing;
}

function sendHead(request: IncomingMessage, to: Destination, dialled: Socket | undefined): ClientRequest {
  const { host, port } = to.address;
  const headers = { ...to.headers, connection: 'Upgrade', upgrade: request.headers.upgrade ?? '' };
  const connection = dialled ? { createConnection: () => dialled } : { agent: false };
  try {
    return send({ host, port, method: request.method ?? 'GET', path: to.path, headers, ...connection });
  } catch (error) {
    dialled?.destroy();
    throw new ProxyFailure('bad-request', { cause: error });
  }
}

function switchingProtocols(incoming: IncomingMessage, prefix: string): string {
  const lines = [`HTTP/1.1 101 ${reasonOf(101)}`, 'Connection: Upgrade'];
  lines.push(`Upgrade: ${incoming.headers.upgrade ?? ''}`);
  const headers = responseHeaders(incoming.rawHeaders, prefix);
  for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** Sends the client the backend's agreement, and ties the two together. If one of them has gone meanwhile, both are cut. */
function switchProtocols(
  client: Upgrading,
  backend: { readonly socket: Duplex; readonly head: Buffer },
  agreement: string,
): Tied | undefined {
  client.response.detachSocket(client.socket as Socket);
  // An error is followed by the connection's end, which is where it is dealt with.
  backend.socket.on('error', () => {});
  if (client.socket.destroyed || backend.socket.destroyed) {
    client.socket.destroy();
    backend.socket.destroy();
    return undefined;
  }
  client.socket.write(agreement, 'latin1');
  client.socket.write(backend.head);
  backend.socket.write(client.head);
  return tie(client.socket, backend.socket);
}

function tie(client: Duplex, backend: Duplex): Tied {
  // A backend that has said its last word may still want to hear the client's.
  backend.allowHalfOpen = true;
  watchPeer(backend);
  for (const end of [client, backend]) end.setMaxListeners(maxListeners);
  carry(client, backend);
  carry(backend, client);
  return { client, backend };
}

function carry(from: Duplex, to: Duplex): void {
  const cut = () => {
    from.destroy();
    to.destroy();
  };
  pipeline(from, to, (error) => {
    if (error) cut();
    // What still comes the other way renews the time.
    else (from as Socket).setTimeout(halfOpenLimitMs, cut);
  });
}
