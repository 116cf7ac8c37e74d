import { STATUS_CODES } from 'node:http';
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { newServer } from './listener.ts';

/**
 * The handlers of a gated server. Their errors are answered with 500. An upgrade request that is not wanted is handled as an ordinary
 * request.
 */
export interface ServerHandlers {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void | Promise<void>;
  /** Whether an upgrade request is wanted. Default: all if there is an `upgrade` handler, else none. */
  readonly shouldUpgrade?: (request: IncomingMessage) => boolean;
  /** The JSON with which to answer what cannot be read as HTTP. Default: plain words. */
  readonly explain?: (problem: Unreadable) => object;
}

/** A server whose component may not be open yet: until then requests are answered with 503. */
export interface GatedServer {
  readonly server: Server;
  /** From now on the handlers answer. */
  open(keeper: ServerHandlers): void;
  /** From now on requests are answered with 503, so that clients retry. */
  close(): void;
}

/** Creates a gated server. It has its address before its component opens, so that components can be opened one after another. */
export function newGatedServer(options: ServerOptions = {}): GatedServer {
  let keeper: ServerHandlers = { handle: answerNotNow };
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
  const set = (next: ServerHandlers) => void (keeper = next);
  return { server, open: set, close: () => set({ handle: answerNotNow }) };
}

function answerNotNow(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(503, { 'retry-after': '1', 'content-type': 'text/plain', connection: 'close' });
  response.end('Starting or stopping, try again in a second\n');
}

/**
 * Does the work of an event's listener. Nothing above a listener catches, so a client whose request fails there would wait for
 * ever: `answer` answers it, or cuts it off. The error itself is thrown on, as a stray one: the process decides about it.
 */
export async function answerFaults(work: () => void | Promise<void>, answer: () => void): Promise<void> {
  try {
    await work();
  } catch (error) {
    answer();
    throw error;
  }
}

/** Answers a request that failed for a reason that no code expected; an answer that has begun is cut. */
export function answerFault(response: ServerResponse): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  response.writeHead(500, { 'content-type': 'text/plain', connection: 'close' });
  response.end('Something went wrong on our side\n');
}

/** What is wrong with a request, and the status that says so. */
const unreadableStatuses = { malformed: 400, 'head-too-slow': 408, 'head-too-large': 431 } as const;

export type Unreadable = keyof typeof unreadableStatuses;

/** What Node's parser calls them; all else is malformed. */
const codes: Readonly<Record<string, Unreadable>> = {
  HPE_HEADER_OVERFLOW: 'head-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'head-too-slow',
};

/**
 * Has a server answer what it cannot read with JSON, or in plain words where there is none, and close the connection: where a
 * next request begins is not known.
 */
export function answerUnreadable(server: Server, bodyOf: (problem: Unreadable) => object | undefined): void {
  const answers = new WeakMap<Duplex, ServerResponse[]>();
  // Without listening to the answers: whoever sends them listens enough.
  const openOn = (socket: Duplex) => (answers.get(socket) ?? []).filter(({ writableFinished }) => !writableFinished);
  server.on('request', ({ socket }, response) => answers.set(socket, [...openOn(socket), response]));
  const explain = (error: NodeJS.ErrnoException, socket: Duplex) => {
    // An answer that has begun would be torn apart.
    const isAnswering = openOn(socket).some(({ headersSent }) => headersSent);
    if (!socket.writable || isAnswering || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const problem = codes[error.code ?? ''] ?? 'malformed';
    socket.write(rawAnswer(unreadableStatuses[problem], bodyOf(problem)));
    (socket as Socket).destroySoon();
  };
  server.on('clientError', (error, socket) => {
    void answerFaults(
      () => explain(error, socket),
      () => socket.destroy(),
    );
  });
}

function rawAnswer(status: number, body: object | undefined): string {
  const text = body ? JSON.stringify(body) : `${STATUS_CODES[status]}\n`;
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'connection: close',
    `content-type: ${body ? 'application/json' : 'text/plain'}`,
    `content-length: ${Buffer.byteLength(text)}`,
  ];
  return `${lines.join('\r\n')}\r\n\r\n${text}`;
}
