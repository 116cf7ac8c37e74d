import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { answerFault, answerFaults } from './answer-faults.ts';
import { newServer } from './listener.ts';
import { answerUnreadable } from './unreadable.ts';
import type { Unreadable } from './unreadable.ts';

/**
 * What answers behind a gate. What fails in it is answered with 500. Where a request to upgrade is not wanted, it is answered as an
 * ordinary one.
 */
export interface GateKeeper {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void | Promise<void>;
  /** Which requests to upgrade are wanted. Default: all where there is an `upgrade`, else none. */
  readonly shouldUpgrade?: (request: IncomingMessage) => boolean;
  /** The JSON with which to answer what cannot be read as HTTP. Default: plain words. */
  readonly explain?: (problem: Unreadable) => object;
}

/** A server whose room may not be open yet: what comes too early is told to try again. */
export interface GatedServer {
  readonly server: Server;
  /** From now on the keeper answers. */
  open(keeper: GateKeeper): void;
  /** From now on nobody does: what comes is told to try again, at another process or later. */
  close(): void;
}

/** A server behind a gate. Rooms that open one after the other can so know each other's addresses from the start. */
export function newGatedServer(options: ServerOptions = {}): GatedServer {
  let keeper: GateKeeper = { handle: answerNotNow };
  const wantsUpgrade = (request: IncomingMessage) =>
    keeper.upgrade !== undefined && (keeper.shouldUpgrade?.(request) ?? true);
  const server = newServer({ ...options, shouldUpgradeCallback: wantsUpgrade });
  server.on('request', (request, response) => {
    void answerFaults(
      () => keeper.handle(request, response),
      () => answerFault(response),
    );
  });
  answerUnreadable(server, (problem) => keeper.explain?.(problem));
  server.on('upgrade', (request, socket, head) => {
    void answerFaults(
      () => keeper.upgrade?.(request, socket, head),
      () => socket.destroy(),
    );
  });
  const set = (next: GateKeeper) => void (keeper = next);
  return { server, open: set, close: () => set({ handle: answerNotNow }) };
}

function answerNotNow(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(503, { 'retry-after': '1', 'content-type': 'text/plain', connection: 'close' });
  response.end('Starting or stopping, try again in a second\n');
}
