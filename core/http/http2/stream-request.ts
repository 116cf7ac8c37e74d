import { Readable } from 'node:stream';
import type { IncomingHttpHeaders } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import type { RequestHead } from './request-head.ts';
import type { StreamConnection } from './stream-connection.ts';

/**
 * An HTTP/2 request with the interface of an HTTP/1.1 request. Node's own compatibility layer reports the headers in HTTP/2 form, and
 * ends a body that was cut off as if it was complete.
 */
export class StreamRequest extends Readable {
  readonly httpVersion = '1.1';
  readonly httpVersionMajor = 1;
  readonly httpVersionMinor = 1;
  readonly method: string;
  url: string;
  headers: IncomingHttpHeaders;
  readonly rawHeaders: string[];
  rawTrailers: string[] = [];
  complete: boolean;
  readonly socket: StreamConnection;
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream, head: RequestHead, socket: StreamConnection) {
    super();
    const { method, url, headers, rawHeaders } = head;
    this.method = method;
    this.url = url;
    this.headers = headers;
    this.rawHeaders = rawHeaders;
    this.socket = socket;
    this.#stream = stream;
    this.complete = stream.endAfterHeaders;
    // An error of a request that no handler reads is not an error of the process.
    this.on('error', () => {});
    if (this.complete) this.push(null);
    else this.#read();
  }

  get connection(): StreamConnection {
    return this.socket;
  }

  /** Ends the body early, because the client has cut it off or the answer has ended: the rest is not read. */
  cut(): void {
    if (this.complete || this.destroyed) return;
    this.destroy(Object.assign(new Error('The client has ended the stream'), { code: 'ECONNRESET' }));
  }

  override _read(): void {
    this.#stream.resume();
  }

  #read(): void {
    const stream = this.#stream;
    stream.on('trailers', (_trailers, _flags, raw?: string[]) => (this.rawTrailers = raw ?? []));
    stream.on('data', (bytes: Buffer) => {
      this.socket.bytesRead += bytes.length;
      // The rest of a body that ended early is dropped.
      if (!this.destroyed && !this.push(bytes)) stream.pause();
    });
    stream.once('aborted', () => this.cut());
    stream.once('end', () => {
      if (stream.aborted || this.destroyed) return;
      this.complete = true;
      this.push(null);
    });
    stream.once('close', () => this.cut());
    stream.pause();
  }
}
