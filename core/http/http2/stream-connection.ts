import { EventEmitter } from 'node:events';
import { constants } from 'node:http2';
import type { ServerHttp2Stream } from 'node:http2';

/**
 * Shows a stream of HTTP/2 as a connection of HTTP/1.1 with a single request. The handler of the request asks its connection for the
 * client's address, and for how much was sent.
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

  /** Ends the stream, and not the connection with its other streams. */
  destroy(): this {
    if (!this.#stream.closed) this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    return this;
  }
}
