import type { Readable } from 'node:stream';
import type { ByteSource } from '../blobs/blobs.ts';
import type { Clock } from '../clock/clock.ts';

/** The size of a batch, and how much may be buffered before the request is paused. */
const batchBytes = 256 * 1024;

/** A smaller batch is yielded after this time. */
const batchMs = 20;

/**
 * Reads a request body until disposed. It uses the stream's events, because the stream's own iterator costs as much per chunk as
 * receiving the chunk. Reading may end early and does not destroy the request.
 */
export class RequestBytes implements ByteSource, Disposable {
  readonly #request: Readable;
  readonly #clock: Clock;
  #chunks: Uint8Array[] = [];
  #waitingBytes = 0;
  #isDue = false;
  #due: NodeJS.Timeout | undefined;
  #end: { readonly error?: Error } | undefined;
  #wakeUp = () => {};
  /** Set while the reader waits. */
  #waitsSince: Date | undefined;
  /** The sum of the finished waits. */
  #waitedMs = 0;
  #receivedBytes = 0;

  constructor(request: Readable, clock: Clock) {
    this.#request = request;
    this.#clock = clock;
    // Events from before the listeners were added are not repeated.
    if (request.readableEnded) this.#onEnd();
    else if (request.destroyed) this.#onClose();
    request.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError).on('close', this.#onClose);
  }

  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** How long the reader has waited for the client. */
  get waitedMs(): number {
    if (!this.#waitsSince) return this.#waitedMs;
    return this.#waitedMs + this.#clock.now().getTime() - this.#waitsSince.getTime();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly Uint8Array[], void> {
    for (;;) {
      if (!this.#isReady) await this.#receive();
      const chunks = this.#take();
      if (chunks.length > 0) yield chunks;
      else if (this.#end?.error) throw this.#end.error;
      else if (this.#end) return;
    }
  }

  /** Drops unread bytes. A pending read fails, so that its reader can clean up. */
  [Symbol.dispose](): void {
    clearTimeout(this.#due);
    this.#request.off('data', this.#onData).off('end', this.#onEnd);
    this.#request.off('error', this.#onError).off('close', this.#onClose);
    this.#request.pause();
    this.#onError(new Error('The request body is no longer read'));
  }

  get #isReady(): boolean {
    return this.#end !== undefined || this.#isDue || this.#waitingBytes >= batchBytes;
  }

  #take(): readonly Uint8Array[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#waitingBytes = 0;
    this.#isDue = false;
    clearTimeout(this.#due);
    this.#due = undefined;
    // The next chunks arrive while these are processed.
    if (this.#request.isPaused()) this.#request.resume();
    return chunks;
  }

  async #receive(): Promise<void> {
    this.#waitsSince = this.#clock.now();
    await new Promise<void>((resolve) => (this.#wakeUp = resolve));
    this.#waitedMs = this.waitedMs;
    this.#waitsSince = undefined;
  }

  readonly #onData = (chunk: Buffer) => {
    this.#receivedBytes += chunk.length;
    this.#waitingBytes += chunk.length;
    this.#chunks.push(chunk);
    this.#due ??= setTimeout(this.#onDue, batchMs);
    if (this.#waitingBytes < batchBytes) return;
    if (this.#waitsSince) this.#wakeUp();
    else this.#request.pause();
  };

  readonly #onDue = () => {
    this.#isDue = true;
    this.#wakeUp();
  };

  readonly #onEnd = () => {
    this.#end ??= {};
    this.#wakeUp();
  };

  readonly #onError = (error: Error) => {
    this.#end ??= { error };
    this.#wakeUp();
  };

  /** Has no effect after an end or an error. */
  readonly #onClose = () => {
    this.#onError(Object.assign(new Error('The client disconnected'), { code: 'ERR_STREAM_PREMATURE_CLOSE' }));
  };
}
