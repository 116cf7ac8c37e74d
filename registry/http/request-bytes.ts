import type { Readable } from 'node:stream';
import type { ByteSource } from '../../core/blobs/blobs.ts';
import type { Clock } from '../../core/clock/clock.ts';

/** So much is handed on at a time, and as much may wait for us before the client must. */
const batchBytes = 256 * 1024;

/** What comes slowly is handed on after this long. */
const batchMs = 20;

/**
 * A request's body, until disposed: by the stream's events, since its own iterator costs as much for each chunk as receiving
 * it. Reading may end early, and does not destroy the request.
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
  /** While the reader waits. */
  #waitsSince: Date | undefined;
  /** In waits that are over. */
  #waitedMs = 0;
  #cameBytes = 0;

  constructor(request: Readable, clock: Clock) {
    this.#request = request;
    this.#clock = clock;
    // What happened before there were listeners is not told again.
    if (request.readableEnded) this.#onEnd();
    else if (request.destroyed) this.#onClose();
    request.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError).on('close', this.#onClose);
  }

  /** How much has come. */
  get cameBytes(): number {
    return this.#cameBytes;
  }

  /** How long the reader has waited for the client, in milliseconds. */
  get waitedMs(): number {
    if (!this.#waitsSince) return this.#waitedMs;
    return this.#waitedMs + this.#clock.now().getTime() - this.#waitsSince.getTime();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly Uint8Array[], void> {
    for (;;) {
      if (!this.#isReady) await this.#more();
      const chunks = this.#take();
      if (chunks.length > 0) yield chunks;
      else if (this.#end?.error) throw this.#end.error;
      else if (this.#end) return;
    }
  }

  /** What came and was not read is dropped. A read that still waits fails, so that its reader can clean up. */
  [Symbol.dispose](): void {
    clearTimeout(this.#due);
    this.#request.off('data', this.#onData).off('end', this.#onEnd);
    this.#request.off('error', this.#onError).off('close', this.#onClose);
    this.#request.pause();
    this.#onError(new Error('The body is not read any further'));
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
    // The next ones come while these are worked on.
    if (this.#request.isPaused()) this.#request.resume();
    return chunks;
  }

  async #more(): Promise<void> {
    this.#waitsSince = this.#clock.now();
    await new Promise<void>((resolve) => (this.#wakeUp = resolve));
    this.#waitedMs = this.waitedMs;
    this.#waitsSince = undefined;
  }

  readonly #onData = (chunk: Buffer) => {
    this.#cameBytes += chunk.length;
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

  /** Without an end or an error before. */
  readonly #onClose = () => {
    this.#onError(Object.assign(new Error('The client left'), { code: 'ERR_STREAM_PREMATURE_CLOSE' }));
  };
}
