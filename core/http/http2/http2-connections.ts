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
 * What one connection may cost. Node and nghttp2 bound the rest: frames of a head (8), acknowledgements that wait, and settings in a
 * frame (32).
 */
const limits = {
  settings: {
    /** More than browsers and curl request at a time. */
    maxConcurrentStreams: 128,
    /** What a client may send of one body before it is read: with 64 KiB, the default, uploads over long distances are slow. */
    initialWindowSize: 512 * kib,
    enableConnectProtocol: false,
  },
  /** Clients may send each cookie as a header of its own. */
  maxHeaderListPairs: 1_000,
  /** Mebibytes, for heads and for bodies that wait. */
  maxSessionMemory: 10,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  /** Against CVE-2023-44487. Twice as many streams as may be open: a browser cancels them all when its user leaves a page. More are allowed 33 a second. */
  streamResetBurst: 256,
  streamResetRate: 33,
  /** Backends may repeat any header. */
  strictSingleValueFields: false,
};

/** The same for all bodies of a connection together. */
const connectionWindowBytes = 2 * kib * kib;

const sweepMs = 5_000;

/** After this much silence, the system asks whether the client is still there. */
const keepAliveAfterMs = 15_000;

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

interface Session {
  readonly session: ServerHttp2Session;
  streams: number;
  /** Since when it has no stream. */
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

  /** Lets clients open no further streams, and closes each connection with its last one. */
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

  /** Closes connections that no request uses. A client keeps one open with pings otherwise. */
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
