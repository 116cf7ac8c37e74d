import { EventEmitter } from 'node:events';
import { constants } from 'node:http2';
import type { ServerHttp2Stream } from 'node:http2';

/**
 * Presents an HTTP/2 stream as an HTTP/1.1 connection with a single request. The request's handler reads the client's address and the
 * byte counts from it.
 */
export class StreamConnection extends EventEmitter {
  readonly encrypted = true;
  readonly remoteAddress: string | undefined;
  bytesRead = 0;
  bytesWritten = 0;
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream, remoteAddress: string | undefined) {
    super();
    this.#stream = stream;
    this.remoteAddress = remoteAddress;
    stream.once('close', () => this.emit('close'));
  }

  get destroyed(): boolean {
    return this.#stream.closed;
  }

  get writable(): boolean {
    return !this.#stream.closed;
  }

  /** Ends the stream, but not the connection with its other streams. */
  destroy(): this {
    if (!this.#stream.closed) this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    return this;
  }
}
