import type { FileHandle } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import type { ByteRange } from './blobs.ts';
import { BlobsError } from './blobs.ts';
import { fileErrors } from './file-errors.ts';
import { keptQuiet, send } from './send.ts';

/** How much is read at a time: enough that a layer is read at the disk's speed. */
const bufferBytes = 1024 * 1024;

/** So many are kept for the next reader. More readers than half of them at a time have some of their own. */
const maxKept = 16;

/** So many are in use at a time, and no more: readers may stand still, by the thousand if they mean harm. */
const maxLarge = 64;

/** What all other readers make do with. */
const smallBufferBytes = 64 * 1024;

/** Buffers that nobody uses just now. A new one for each megabyte would keep the garbage collector busier than the disk. */
export class ReadBuffers {
  readonly #kept: Buffer[] = [];
  #large = 0;

  /** One that the caller gives back, in the end, or else lets go. */
  take(): Buffer {
    if (this.#large === maxLarge) return Buffer.allocUnsafeSlow(smallBufferBytes);
    this.#large += 1;
    return this.#kept.pop() ?? Buffer.allocUnsafeSlow(bufferBytes);
  }

  /** Only what nothing reads from any more. */
  giveBack(buffers: readonly Buffer[]): void {
    for (const buffer of this.#counted(buffers)) if (this.#kept.length < maxKept) this.#kept.push(buffer);
  }

  /** What may still be on its way somewhere. */
  letGo(buffers: readonly Buffer[]): void {
    this.#counted(buffers);
  }

  #counted(buffers: readonly Buffer[]): Buffer[] {
    const large = buffers.filter(({ length }) => length === bufferBytes);
    this.#large -= large.length;
    return large;
  }
}

/**
 * Writes a range of a file to a stream, reading one part while the part before is on its way. The stream stays open. Rejects
 * with what the stream fails with when it is destroyed.
 */
export async function copyFile(
  file: FileHandle,
  range: ByteRange,
  { to, free }: { readonly to: Writable; readonly free: ReadBuffers },
): Promise<void> {
  const buffers: Buffer[] = [];
  try {
    await copyThrough(buffers, file, { range, to, free });
  } catch (error) {
    // A part may still be on its way to the stream.
    free.letGo(buffers);
    throw error;
  }
  free.giveBack(buffers);
}

interface Copy {
  readonly range: ByteRange;
  readonly to: Writable;
  readonly free: ReadBuffers;
}

/** Takes up to two buffers. */
async function copyThrough(buffers: Buffer[], file: FileHandle, { range, to, free }: Copy): Promise<void> {
  const { start, end } = range;
  using _quiet = keptQuiet(to);
  let sent = Promise.resolve();
  for (let at = start, part = 0; at <= end; part += 1) {
    const buffer = (buffers[part % 2] ??= free.take());
    const length = Math.min(buffer.length, end + 1 - at);
    const [{ bytesRead }] = await Promise.all([fileErrors(async () => await file.read(buffer, 0, length, at)), sent]);
    if (bytesRead === 0) throw new BlobsError('unavailable', 'A blob is shorter than it was');
    sent = send(to, buffer.subarray(0, bytesRead));
    // Who comes to it hears of a failure; until then it is nobody's.
    sent.catch(() => {});
    at += bytesRead;
  }
  await sent;
}
