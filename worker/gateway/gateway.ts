/** The node's gateway, through which only other processes of the platform reach this node and its backends. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { answerFault, answerFaults } from '../../core/http/gated-server.ts';
import { newServer } from '../../core/http/listener.ts';
import { openLinkServer } from '../../core/link/link-server.ts';
import type { IncomingLink } from '../../core/link/link-server.ts';
import type { PlatformSecret } from '../../core/secret/platform-secret.ts';
import type { NodeGateway } from '../../model/node.ts';
import type { WorkerContext } from '../context.ts';
import type { GatewaySettings } from '../settings.ts';
import { openTunnel } from './tunnel.ts';

/** The part of the worker that the gateway needs. */
type GatewayContext = Pick<WorkerContext, 'runs' | 'clock' | 'log' | 'closing'>;

/** An open gateway. Disposing it resets all its connections. */
export interface Gateway extends AsyncDisposable {
  /** Its address in the node's document. */
  readonly address: NodeGateway;
  /** Called when the worker has adopted its backends. Answers the requests that waited. */
  open(): void;
}

export interface GatewayOptions {
  readonly settings: GatewaySettings;
  readonly secret: PlatformSecret;
  /** Answers requests to the node itself. */
  readonly answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
}

/** Listens, but answers no request before `open`. Throws the error of `listen`, for example if the port is in use. */
export async function openGateway(
  worker: GatewayContext,
  { settings, secret, answer }: GatewayOptions,
): Promise<Gateway> {
  const { host, port, advertisedHost } = settings;
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const links = new WeakMap<Duplex, IncomingLink>();
  // This server does not listen itself: it receives the sockets of links.
  const server = newServer();
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    void answerFaults(
      async () => await opened.then(() => answer(request, response)),
      () => answerFault(response),
    );
  });
  server.on('connect', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    void answerFaults(
      async () => {
        const link = links.get(socket);
        if (!link) throw new Error('The connection did not come through a link');
        // Bytes that came with the request belong to the tunnel.
        socket.unshift(head);
        await opened;
        await connectToBackend(worker, request, link);
      },
      () => socket.destroy(),
    );
  });
  const accept = (link: IncomingLink) => {
    links.set(link.socket, link);
    server.emit('connection', link.socket);
  };
  const listener = await openLinkServer({ secret, host, port, clock: worker.clock, onConnection: accept });
  const address = { host: advertisedHost, port: listener.port };
  return { address, open, [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose]() };
}

/** Handles `CONNECT <backend>`: the link becomes a connection to the backend's container. */
async function connectToBackend(worker: GatewayContext, request: IncomingMessage, link: IncomingLink): Promise<void> {
  const run = worker.runs.get(request.url ?? '');
  const isRunning = run?.container?.started === true && run.backend.live && !run.isFinalizing;
  if (!isRunning || run.address === undefined) {
    refuse(link.socket, '404 Not Found');
    return;
  }
  const to = { host: run.address, port: run.port };
  const { clock, closing } = worker;
  try {
    await openTunnel(link, to, { clock, ended: run.signal, closing });
  } catch (error) {
    worker.log.debug({ err: error, backend: run.id }, 'Backend does not accept the connection');
    refuse(link.socket, '502 Bad Gateway');
  }
}

function refuse(socket: Socket, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  socket.destroySoon();
}
