/** Forwards WebSockets and other upgrades. */
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { request as send } from '../../core/http/node-http.ts';
import { readAfterFailedWrite } from '../../core/http/read-after-failed-write.ts';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import { ProxyError, unreachableError } from '../errors.ts';
import { responseHeaders } from '../response-headers.ts';
import type { SessionView } from '../session-view.ts';
import { destroyOnEnd, ignoreError, keepAlive } from '../sockets.ts';
import { limitAnswer } from './answer-limits.ts';
import type { Dialer } from './dial.ts';
import type { Destination, Upgrading } from './forwarder.ts';
import { relayInterim } from './interim.ts';
import { reasonOf, relay } from './relay.ts';
import { Splice } from './splice.ts';
import type { SpliceOwner } from './splice.ts';

interface UpgradeDeps {
  readonly dialer: Dialer;
  readonly errorBoundary: ErrorBoundary;
  readonly owner: SpliceOwner;
  /** Called when the connections of the client and of the backend are joined. */
  readonly onUpgraded: (splice: Splice) => void;
}

/** Asks the backend for the upgrade, and joins the two connections if the backend agrees. */
export async function forwardUpgrade(
  request: IncomingMessage,
  client: Upgrading,
  to: Destination,
  { dialer, errorBoundary, owner, onUpgraded }: UpgradeDeps,
): Promise<void> {
  const dialled = await dial(dialer, client, to);
  if (!dialled || client.socket.destroyed) {
    dialled?.destroy();
    return;
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const outgoing = sendRequest(request, to, { dialled, errorBoundary });
  relayInterim(outgoing, client.response, { view: to.view, errorBoundary });
  const watch = destroyOnEnd(client.socket);
  const cancel = () => {
    outgoing.destroy();
    resolve();
  };
  client.socket.once('close', cancel);
  const fail = (cause: unknown) => reject(unreachableError(cause));
  const cut = (_incoming: IncomingMessage, backend?: Duplex) => {
    client.socket.destroy();
    backend?.destroy();
    cancel();
  };
  const onAnswer = (incoming: IncomingMessage) => {
    try {
      relay(incoming, client.response, { view: to.view, errorBoundary });
      resolve();
    } catch (error) {
      incoming.destroy();
      fail(error);
    }
  };
  const onUpgrade = (incoming: IncomingMessage, backend: Duplex, head: Buffer) => {
    client.socket.off('close', cancel);
    watch[Symbol.dispose]();
    const agreement = switchingProtocols(incoming, to.view);
    const isWebSocket = incoming.headers.upgrade?.toLowerCase() === 'websocket';
    const ends = { socket: backend, head, id: to.backend };
    const splice = switchProtocols(client, ends, { agreement, isWebSocket, owner });
    if (splice) {
      splice.user = client.onJoined();
      onUpgraded(splice);
    }
    resolve();
  };
  outgoing.on('error', fail);
  outgoing.once('response', errorBoundary.wrap(onAnswer, cut));
  outgoing.once('upgrade', errorBoundary.wrap(onUpgrade, cut));
  outgoing.end();
  await promise;
}

/** Connects to the backend. Returns `undefined` if the client disconnects meanwhile. Throws any failure as a `ProxyError`. */
async function dial(dialer: Dialer, { socket }: Upgrading, to: Destination): Promise<Socket | undefined> {
  using _watch = destroyOnEnd(socket);
  const disconnected = new AbortController();
  const onClose = () => disconnected.abort();
  socket.once('close', onClose);
  try {
    return await dialer.dial(to, disconnected.signal);
  } catch (error) {
    if (socket.destroyed) return undefined;
    throw unreachableError(error);
  } finally {
    socket.off('close', onClose);
  }
}

function sendRequest(
  request: IncomingMessage,
  to: Destination,
  { dialled, errorBoundary }: { dialled: Socket; errorBoundary: ErrorBoundary },
): ClientRequest {
  const outgoing = sendHead(request, to, dialled);
  const limit = () => limitAnswer(outgoing);
  outgoing.once(
    'socket',
    errorBoundary.wrap(limit, () => outgoing.destroy()),
  );
  return outgoing;
}

function sendHead(request: IncomingMessage, to: Destination, dialled: Socket): ClientRequest {
  const headers = { ...to.headers, connection: 'Upgrade', upgrade: request.headers.upgrade ?? '' };
  try {
    return send({ method: request.method ?? 'GET', path: to.path, headers, createConnection: () => dialled });
  } catch (error) {
    dialled.destroy();
    throw new ProxyError('bad-request', { cause: error });
  }
}

function switchingProtocols(incoming: IncomingMessage, view: SessionView): string {
  const lines = [`HTTP/1.1 101 ${reasonOf(101)}`, 'Connection: Upgrade'];
  lines.push(`Upgrade: ${incoming.headers.upgrade ?? ''}`);
  const headers = responseHeaders(incoming.rawHeaders, view);
  for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** Sends the client the backend's agreement, and joins the two connections. If one is closed already, destroys the other. */
function switchProtocols(
  client: Upgrading,
  backend: { readonly socket: Duplex; readonly head: Buffer; readonly id: string },
  { agreement, isWebSocket, owner }: { agreement: string; isWebSocket: boolean; owner: SpliceOwner },
): Splice | undefined {
  client.response.detachSocket(client.socket as Socket);
  if (client.socket instanceof Socket) readAfterFailedWrite(client.socket);
  backend.socket.on('error', ignoreError);
  if (client.socket.destroyed || backend.socket.destroyed) {
    client.socket.destroy();
    backend.socket.destroy();
    return undefined;
  }
  client.socket.write(agreement, 'latin1');
  backend.socket.write(client.head);
  // A backend that has finished sending may still receive from the client.
  backend.socket.allowHalfOpen = true;
  keepAlive(backend.socket);
  const ends = { client: client.socket, backend: backend.socket, isWebSocket, backendId: backend.id };
  const splice = new Splice(ends, owner);
  splice.begin(backend.head);
  return splice;
}
