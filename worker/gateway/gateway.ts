/** The node's gateway: where other processes of the platform, and nobody else, reach what runs on this node. */
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

/** What the gateway needs of the worker. */
type GatewayContext = Pick<WorkerContext, 'runs' | 'clock' | 'log' | 'closing'>;

/** An open gateway. Disposing it breaks off everything that goes through it. */
export interface Gateway extends AsyncDisposable {
  /** What the node's document says of it. */
  readonly address: NodeGateway;
  /** The worker knows its backends: what came earlier has waited for this, and is answered now. */
  open(): void;
}

export interface GatewayOptions {
  readonly settings: GatewaySettings;
  readonly secret: PlatformSecret;
  /** Answers what is asked of the node itself. */
  readonly answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
}

/** Listens; answers nothing before `open`. Throws what `listen` fails with when the port is taken. */
export async function openGateway(
  worker: GatewayContext,
  { settings, secret, answer }: GatewayOptions,
): Promise<Gateway> {
  const { host, port, advertisedHost } = settings;
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const links = new WeakMap<Duplex, IncomingLink>();
  // It listens to nothing itself: links are handed to it.
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
        if (!link) throw new Error('A connection that came through no link');
        // What came with the request belongs to the tunnel.
        socket.unshift(head);
        await opened;
        await enter(worker, request, link);
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

/** `CONNECT <backend>`: from here on the link is a connection to the backend's container. */
async function enter(worker: GatewayContext, request: IncomingMessage, link: IncomingLink): Promise<void> {
  const run = worker.runs.get(request.url ?? '');
  const isThere = run?.container?.started === true && run.backend.live && !run.isFinalizing;
  if (!isThere || run.address === undefined) {
    refuse(link.socket, '404 Not Found');
    return;
  }
  const to = { host: run.address, port: run.backend.port };
  const { clock, closing } = worker;
  try {
    await openTunnel(link, to, { clock, ended: run.signal, closing });
  } catch (error) {
    worker.log.debug({ err: error, backend: run.id }, 'Backend does not take the connection');
    refuse(link.socket, '502 Bad Gateway');
  }
}

function refuse(socket: Socket, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  socket.destroySoon();
}
