import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { STATUS_CODES } from './node-http.ts';
import type { Http2Connections } from './http2/http2-connections.ts';
import { connectionEvent, countRequest, isHttp2, newServer } from './listener.ts';
import type { ClosableConnections } from './listener.ts';
import type { SecureContexts } from '../tls/secure-contexts.ts';

/**
 * The handlers of a gated server. The server answers 500 if a handler fails. It treats an unwanted upgrade request as an ordinary
 * request.
 */
export interface ServerHandlers {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void | Promise<void>;
  /** Accepts new connections. Default: Node's HTTP server receives them at once. */
  readonly accept?: (connection: NewConnection) => void;
  /** Whether an upgrade request is wanted. Default: all if there is an `upgrade` handler, else none. */
  readonly shouldUpgrade?: (request: IncomingMessage) => boolean;
  /** The JSON body of the answer to a request that is not valid HTTP. Default: plain text. */
  readonly explain?: (problem: Unreadable) => object;
}

/** A connection of a client that Node's HTTP server has not received yet. */
export interface NewConnection {
  readonly socket: Socket;
  /** Passes the connection to Node's HTTP server, at the start of a request. Bytes that were read must have been put back. */
  readonly handOver: () => void;
  /** Answers an invalid request, and closes the connection. No answer may have begun. */
  readonly refuse: (problem: Unreadable) => void;
  /** Counts a request when it begins (1) and when it has ended (-1): closing the listener waits for it. */
  readonly count: (change: 1 | -1) => void;
}

/** A server that listens before its component opens: until then it answers requests with 503. */
export interface GatedServer {
  readonly server: Server;
  /** Connections of the server that its events do not show, for `listen`. */
  readonly otherConnections: ClosableConnections | undefined;
  /** From now on, the handlers answer requests. */
  open(handlers: ServerHandlers): void;
  /** From now on, requests are answered with 503, so that clients retry. */
  close(): void;
}

/** TLS for a gated server. */
export interface GateTls {
  readonly contexts: SecureContexts;
  /** If clients may choose HTTP/2: the class that serves it, which is loaded only where it is used. Express cannot handle its requests. */
  readonly http2?: typeof Http2Connections | undefined;
  /** How long after an answer browsers use only TLS with this host, on any port (RFC 6797). 0 or absent: the header is not sent. */
  readonly hstsSeconds?: number | undefined;
}

/** The default limit for the head of a request, the same as Node's. */
const defaultHeadBytes = 16 * 1024;

/** Creates a gated server. Its address is known before its component opens, so that components can be opened one after another. */
export function newGatedServer(options: ServerOptions = {}, tls?: GateTls): GatedServer {
  let handlers: ServerHandlers = { handle: answerUnavailable };
  const wantsUpgrade = (request: IncomingMessage) =>
    handlers.upgrade !== undefined && (handlers.shouldUpgrade?.(request) ?? true);
  const hsts = tls?.hstsSeconds ? `max-age=${tls.hstsSeconds}` : undefined;
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (hsts !== undefined) response.setHeader('strict-transport-security', hsts);
    try {
      await handlers.handle(request, response);
    } catch (error) {
      answerFault(response);
      throw error;
    }
  };
  // The same as `answerFaults`, but without creating functions for each request.
  const handle = (request: IncomingMessage, response: ServerResponse) => void answer(request, response);
  const http2 = tls?.http2 && new tls.http2(handle, options.maxHeaderSize ?? defaultHeadBytes);
  const server = newServer(
    { ...options, shouldUpgradeCallback: wantsUpgrade },
    tls && { contexts: tls.contexts, protocols: http2 ? ['h2', 'http/1.1'] : ['http/1.1'] },
  );
  offerConnections(server, (connection) => {
    if (http2 && isHttp2(connection.socket)) http2.accept(connection.socket);
    else (handlers.accept ?? handOver)(connection);
  });
  server.on('request', handle);
  answerUnreadable(server, (problem) => handlers.explain?.(problem));
  server.on('upgrade', (request, socket, head) => {
    void answerFaults(
      () => handlers.upgrade?.(request, socket, head),
      () => socket.destroy(),
    );
  });
  const set = (next: ServerHandlers) => void (handlers = next);
  return { server, otherConnections: http2, open: set, close: () => set({ handle: answerUnavailable }) };
}

const handOver: NonNullable<ServerHandlers['accept']> = (connection) => connection.handOver();

/** Offers each new connection before Node's HTTP server receives it. */
function offerConnections(server: Server, accept: (connection: NewConnection) => void): void {
  const event = connectionEvent(server);
  const own = server.listeners(event);
  server.removeAllListeners(event);
  server.on(event, (socket: Socket) => {
    accept({
      socket,
      handOver: () => {
        for (const listener of own) listener.call(server, socket);
      },
      refuse: (problem) => {
        const code = Object.keys(codes).find((each) => codes[each] === problem);
        server.emit('clientError', Object.assign(new Error('Not a valid request'), { code }), socket);
      },
      count: (change) => countRequest(server, socket, change),
    });
  });
}

function answerUnavailable(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(503, { 'retry-after': '1', 'content-type': 'text/plain', connection: 'close' });
  response.end('Starting or stopping, try again in a second\n');
}

/**
 * Runs the work of an event listener. No caller catches a listener's errors, and the client would wait forever: so `answer` answers
 * the request, or closes its connection. Then the error is rethrown, as a stray error of the process.
 */
export async function answerFaults(work: () => void | Promise<void>, answer: () => void): Promise<void> {
  try {
    await work();
  } catch (error) {
    answer();
    throw error;
  }
}

/** Answers a request that failed unexpectedly. An answer that has begun is cut off. */
export function answerFault(response: ServerResponse): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  response.writeHead(500, { 'content-type': 'text/plain', connection: 'close' });
  response.end('Internal server error\n');
}

/** The problems of requests that cannot be parsed, with their statuses. */
const unreadableStatuses = { malformed: 400, 'head-too-slow': 408, 'head-too-large': 431 } as const;

export type Unreadable = keyof typeof unreadableStatuses;

/** The error codes of Node's parser; all others mean `malformed`. */
const codes: Readonly<Record<string, Unreadable>> = {
  HPE_HEADER_OVERFLOW: 'head-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'head-too-slow',
};

/**
 * Answers requests that a server cannot parse, with JSON or, if `bodyOf` returns none, with plain text. Closes the connection, because
 * the start of the next request is unknown.
 */
function answerUnreadable(server: Server, bodyOf: (problem: Unreadable) => object | undefined): void {
  const answers = new WeakMap<Duplex, ServerResponse[]>();
  // Looks at the answers instead of listening to their events: more listeners would cause a warning.
  const openOn = (socket: Duplex) => {
    const open = answers.get(socket) ?? [];
    // Answers end in order.
    while (open[0]?.writableFinished) open.shift();
    return open;
  };
  server.on('request', ({ socket }, response) => {
    const open = openOn(socket);
    if (!answers.has(socket)) answers.set(socket, open);
    open.push(response);
  });
  const explain = (error: NodeJS.ErrnoException, socket: Duplex) => {
    // These bytes must not end up inside an answer that has begun.
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
