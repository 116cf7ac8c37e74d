/** The buffers into which channels read. */
import type { Socket } from 'node:net';

/** As much as a socket usually returns at once. */
const bufferBytes = 64 * 1024;

/** All channels read into this buffer, one after the other, while they have little to read. */
export const sharedBuffer = Buffer.allocUnsafeSlow(bufferBytes);

/** Below this, a read does not need a buffer of its own. */
const littleBytes = bufferBytes / 4;

/** Buffers of channels that had much to read. */
const freeBuffers: Buffer[] = [];

const maxFreeBuffers = 32;

/** The beginnings of the shared buffer, by their length: to make a new one with each read costs more than the read of a small head. */
const beginnings: Buffer[] = [];

/** Longer heads are rare. All beginnings together take half a megabyte at most. */
const maxBeginningBytes = 4 * 1024;

/** What one channel reads into. */
export class ReadBuffer {
  #buffer: Buffer = sharedBuffer;
  #last: Buffer | undefined;
  #isOwn = false;

  /** Whether bytes that were read stay valid until the channel reads on. */
  get isOwn(): boolean {
    return this.#isOwn;
  }

  /** The buffer for the next read, `undefined` for the same as before: Node need not look at it again. */
  next(): Buffer | undefined {
    return this.#buffer === this.#last ? undefined : this.#buffer;
  }

  /** The bytes that were read. */
  read(length: number, buffer: Buffer): Buffer {
    this.#last = buffer;
    if (buffer !== sharedBuffer || length > maxBeginningBytes) return buffer.subarray(0, length);
    return (beginnings[length] ??= sharedBuffer.subarray(0, length));
  }

  /** A channel with much to read gets a buffer of its own, from which the other side can write without a copy, as long as it needs one. */
  fit(length: number, socket: Socket): void {
    if (length === bufferBytes && !this.#isOwn) {
      this.#buffer = freeBuffers.pop() ?? Buffer.allocUnsafeSlow(bufferBytes);
      this.#isOwn = true;
    } else if (length < littleBytes && this.#isOwn && !socket.isPaused()) {
      if (freeBuffers.length < maxFreeBuffers) freeBuffers.push(this.#buffer);
      this.#buffer = sharedBuffer;
      this.#isOwn = false;
    }
  }
}
