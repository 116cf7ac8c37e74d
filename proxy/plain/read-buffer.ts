/** The buffers into which channels read. */
import type { Socket } from 'node:net';

/** A socket usually returns no more than this at once. */
const bufferBytes = 64 * 1024;

/** All channels read into this buffer, one after the other, while they have little to read. */
export const sharedBuffer = Buffer.allocUnsafeSlow(bufferBytes);

/** Below this, a read does not need a buffer of its own. */
const littleBytes = bufferBytes / 4;

/** Buffers of channels that had much to read. */
const freeBuffers: Buffer[] = [];

const maxFreeBuffers = 32;

/** Slices from the start of the shared buffer, by length: creating one for each read costs more than the read of a small head. */
const slices: Buffer[] = [];

/** Longer heads are rare. All slices together take half a megabyte at most. */
const maxSliceBytes = 4 * 1024;

/** The buffer of one channel. */
export class ReadBuffer {
  #buffer: Buffer = sharedBuffer;
  #last: Buffer | undefined;
  #isOwn = false;

  /** Whether bytes that were read stay valid until the channel reads on. */
  get isOwn(): boolean {
    return this.#isOwn;
  }

  /** The buffer for the next read, `undefined` if it is the same as before, so that Node does not check it again. */
  next(): Buffer | undefined {
    return this.#buffer === this.#last ? undefined : this.#buffer;
  }

  /** The bytes that were read. */
  read(length: number, buffer: Buffer): Buffer {
    this.#last = buffer;
    if (buffer !== sharedBuffer || length > maxSliceBytes) return buffer.subarray(0, length);
    return (slices[length] ??= sharedBuffer.subarray(0, length));
  }

  /** Gives a channel its own buffer while it has much to read: the other side can write from it without a copy. */
  fit(length: number, socket: Socket): void {
    if (length === bufferBytes && !this.#isOwn) {
      this.#buffer = freeBuffers.pop() ?? Buffer.allocUnsafeSlow(bufferBytes);
      this.#isOwn = true;
    } else if (length < littleBytes && this.#isOwn && !socket.isPaused() && !socket.destroyed) {
      // The other side may still write from the buffer of a channel that is paused or closed.
      if (freeBuffers.length < maxFreeBuffers) freeBuffers.push(this.#buffer);
      this.#buffer = sharedBuffer;
      this.#isOwn = false;
    }
  }
}
