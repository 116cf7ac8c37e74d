import { constants } from 'node:http2';
import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { Writable } from 'node:stream';
import { connectionHeaders } from './request-head.ts';
import type { StreamConnection } from './stream-connection.ts';
import type { StreamRequest } from './stream-request.ts';

/** Headers that an answer may not have. A request may have `te`. */
const forbidden: ReadonlySet<string> = new Set([...connectionHeaders, 'te']);

type Value = string | number | readonly string[];

/** Headers by name, or name, value, name, value. */
type Headers = Readonly<Record<string, Value | undefined>> | readonly string[];

/** The answer to an HTTP/2 request, with the interface of an HTTP/1.1 answer. If it is destroyed, the client sees an error. */
export class StreamResponse extends Writable {
  statusCode = 200;
  shouldKeepAlive = true;
  readonly socket: StreamConnection;
  readonly req: StreamRequest;
  readonly #stream: ServerHttp2Stream;
  readonly #headers = new Map<string, Value>();
  #trailers: OutgoingHttpHeaders = {};

  constructor(stream: ServerHttp2Stream, request: StreamRequest) {
    super();
    this.#stream = stream;
    this.req = request;
    this.socket = request.socket;
    // `close` follows each error.
    stream.on('error', () => {});
    stream.once('close', () => this.#onClose());
    stream.once('wantTrailers', () => stream.sendTrailers(this.#trailers));
  }

  get headersSent(): boolean {
    return this.#stream.headersSent;
  }

  get connection(): StreamConnection {
    return this.socket;
  }

  get finished(): boolean {
    return this.writableEnded;
  }

  /** Whether trailers can be sent: always. */
  get chunkedEncoding(): boolean {
    return true;
  }

  setHeader(name: string, value: Value): this {
    this.#headers.set(name.toLowerCase(), value);
    return this;
  }

  getHeader(name: string): Value | undefined {
    return this.#headers.get(name.toLowerCase());
  }

  getHeaderNames(): string[] {
    return [...this.#headers.keys()];
  }

  removeHeader(name: string): void {
    this.#headers.delete(name.toLowerCase());
  }

  /** Sends the head. HTTP/2 has no reason phrases. Throws if the head cannot be sent. */
  writeHead(status: number, reasonOrHeaders?: string | Headers, headers?: Headers): this {
    this.statusCode = status;
    const given = typeof reasonOrHeaders === 'string' ? headers : reasonOrHeaders;
    const fields: OutgoingHttpHeaders = { ...fieldsOf(Object.fromEntries(this.#headers)), ...fieldsOf(given ?? {}) };
    if (!this.#stream.closed) this.#stream.respond({ ':status': status, ...fields }, { waitForTrailers: true });
    return this;
  }

  flushHeaders(): void {
    if (!this.headersSent) this.writeHead(this.statusCode);
  }

  /** Sends an interim answer (1xx), which has no content. */
  writeInterim(status: number, headers: Headers): void {
    if (this.headersSent || this.#stream.closed) return;
    const fields = fieldsOf(headers);
    delete fields['content-length'];
    this.#stream.additionalHeaders({ ':status': status, ...fields });
  }

  addTrailers(trailers: readonly (readonly [string, string])[]): void {
    this.#trailers = fieldsOf(trailers.flat());
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.flushHeaders();
    // Answers to HEAD, and answers whose status allows no body, have ended with their head.
    if (chunk.length === 0 || this.#stream.writableEnded || this.#stream.closed) {
      callback();
      return;
    }
    this.socket.bytesWritten += chunk.length;
    this.#stream.write(chunk, callback);
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.flushHeaders();
    this.req.cut();
    this.#stream.end(() => {
      callback();
      endWithoutRest(this.#stream);
    });
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (!this.writableFinished && !this.#stream.closed) this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    callback(error);
  }

  #onClose(): void {
    if (!this.writableFinished) this.destroy();
  }
}

/** How long a reset waits, so that it does not overtake the end of the answer, which is sent well within this time. */
const restMs = 1_000;

/** Drops the rest of the request after the answer, and resets the stream, so that the client stops sending (RFC 9113, section 8.1). */
export function endWithoutRest(stream: ServerHttp2Stream): void {
  if (stream.closed || stream.readableEnded) return;
  stream.resume();
  const end = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), restMs).unref();
  stream.once('close', () => clearTimeout(end));
}

/** Headers in HTTP/2 form: names in lower case, values grouped by name, no connection headers. */
function fieldsOf(headers: Headers): OutgoingHttpHeaders {
  const fields = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of entriesOf(headers)) {
    const lower = name.toLowerCase();
    if (value === undefined || forbidden.has(lower)) continue;
    for (const each of Array.isArray(value) ? (value as readonly string[]) : [String(value)]) {
      const before = fields[lower];
      if (before === undefined) fields[lower] = each;
      else if (Array.isArray(before)) before.push(each);
      else fields[lower] = [before, each];
    }
  }
  return fields;
}

function* entriesOf(headers: Headers): Generator<[string, Value | undefined]> {
  if (!Array.isArray(headers)) yield* Object.entries(headers as Readonly<Record<string, Value | undefined>>);
  else for (let i = 0; i + 1 < headers.length; i += 2) yield [headers[i] as string, headers[i + 1] as string];
}
