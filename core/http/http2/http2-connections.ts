/** Serves HTTP/2 on connections that have agreed to it, with handlers for HTTP/1.1. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http2';
import type { Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { headersTimeoutMs, keepAliveTimeoutMs } from '../listener.ts';
import { requestHead } from './request-head.ts';
import { StreamConnection } from './stream-connection.ts';
import { StreamRequest } from './stream-request.ts';
import { endWithoutRest, StreamResponse } from './stream-response.ts';

const kib = 1024;

/**
 * The limits of one connection. Node and nghttp2 limit the rest: frames of a head (8), pending acknowledgements, and settings in a
 * frame (32).
 */
const limits = {
  settings: {
    /** More than browsers and curl request at a time. */
    maxConcurrentStreams: 128,
    /** How many unread bytes of one body a client may send. With the default, 64 KiB, uploads over long distances are slow. */
    initialWindowSize: 512 * kib,
    enableConnectProtocol: false,
  },
  /** Clients may send each cookie as a separate header. */
  maxHeaderListPairs: 1_000,
  /** Megabytes, for heads and unread bodies. */
  maxSessionMemory: 10,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  /** Against CVE-2023-44487. Twice the open streams: a browser cancels all of them when its user leaves a page. More are allowed at 33 per second. */
  streamResetBurst: 256,
  streamResetRate: 33,
  /** Backends may repeat any header. */
  strictSingleValueFields: false,
};

/** How many unread bytes of all bodies together a client may send on a connection. */
const connectionWindowBytes = 2 * kib * kib;

const sweepMs = 5_000;

/** After this much silence, the system asks whether the client is still there. */
const keepAliveAfterMs = 15_000;

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

interface Session {
  readonly session: ServerHttp2Session;
  streams: number;
  /** The time since which the session has no stream. */
  idleSinceMs: number;
  limitMs: number;
}

/** The connections with HTTP/2 of a server. */
export class Http2Connections {
  readonly #handle: Handle;
  readonly #server: Http2Server;
  readonly #sessions = new Set<Session>();
  #sweep: NodeJS.Timeout | undefined;
  #isClosing = false;

  /** @param maxHeadBytes - the limit for the head of a request */
  constructor(handle: Handle, maxHeadBytes: number) {
    this.#handle = handle;
    const settings = { ...limits.settings, maxHeaderListSize: maxHeadBytes };
    this.#server = createServer({ ...limits, settings });
    this.#server.on('session', (session) => this.#begin(session));
    this.#server.on('sessionError', () => {});
  }

  /** Serves a new connection. */
  accept(socket: TLSSocket): void {
    socket.setKeepAlive(true, keepAliveAfterMs);
    this.#server.emit('connection', socket);
  }

  /** Rejects new streams, and closes each connection after its last stream. */
  closeIdle(): void {
    this.#isClosing = true;
    for (const { session } of this.#sessions) session.close();
  }

  closeAll(): void {
    for (const { session } of this.#sessions) session.destroy();
  }

  #begin(session: ServerHttp2Session): void {
    const entry: Session = { session, streams: 0, idleSinceMs: performance.now(), limitMs: headersTimeoutMs };
    this.#sessions.add(entry);
    session.setLocalWindowSize(connectionWindowBytes);
    session.on('error', () => {});
    session.on('stream', (stream, _headers, _flags, raw) => this.#onStream(entry, stream, raw));
    session.once('close', () => {
      this.#sessions.delete(entry);
      if (this.#sessions.size === 0) this.#stopSweep();
    });
    this.#sweep ??= setInterval(() => this.#closeSilent(), sweepMs).unref();
    if (this.#isClosing) session.close();
  }

  #onStream(entry: Session, stream: ServerHttp2Stream, raw: readonly string[]): void {
    entry.streams += 1;
    stream.once('close', () => {
      entry.streams -= 1;
      entry.idleSinceMs = performance.now();
      entry.limitMs = keepAliveTimeoutMs;
    });
    const head = requestHead(raw, !stream.endAfterHeaders);
    if (!head) {
      refuse(stream);
      return;
    }
    const connection = new StreamConnection(stream, entry.session.socket.remoteAddress);
    const request = new StreamRequest(stream, head, connection);
    const response = new StreamResponse(stream, request);
    if (head.headers.expect?.toLowerCase() === '100-continue') response.writeInterim(100, []);
    this.#handle(request as unknown as IncomingMessage, response as unknown as ServerResponse);
  }

  /** Closes connections without requests. Otherwise, a client could keep a connection open with pings. */
  #closeSilent(): void {
    const nowMs = performance.now();
    for (const { session, streams, idleSinceMs, limitMs } of this.#sessions) {
      if (streams === 0 && nowMs - idleSinceMs > limitMs) session.close();
    }
  }

  #stopSweep(): void {
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }
}

/** Answers a request that two servers could read differently. */
function refuse(stream: ServerHttp2Stream): void {
  stream.on('error', () => {});
  const body = 'Bad Request\n';
  stream.respond({ ':status': 400, 'content-type': 'text/plain', 'content-length': body.length });
  stream.end(body, () => endWithoutRest(stream));
}
