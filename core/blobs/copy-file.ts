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

/** Buffers that nobody uses just now. A new one for each megabyte would keep the garbage collector busier than the disk. */
export class ReadBuffers {
  readonly #kept: Buffer[] = [];

  take(): Buffer {
    return this.#kept.pop() ?? Buffer.allocUnsafeSlow(bufferBytes);
  }

  /** Only what nothing reads from any more. */
  giveBack(buffers: readonly Buffer[]): void {
    for (const buffer of buffers) if (this.#kept.length < maxKept) this.#kept.push(buffer);
  }
}

/**
 * Writes a range of a file to a stream, reading one part while the part before is on its way. The stream stays open. Rejects
 * with what the stream fails with when it is destroyed.
 */
export async function copyFile(
  file: FileHandle,
  { start, end }: ByteRange,
  { to, free }: { readonly to: Writable; readonly free: ReadBuffers },
): Promise<void> {
  const buffers: Buffer[] = [];
  using _quiet = keptQuiet(to);
  let sent = Promise.resolve();
  for (let at = start, part = 0; at <= end; part += 1) {
    const buffer = (buffers[part % 2] ??= free.take());
    const length = Math.min(bufferBytes, end + 1 - at);
    const [{ bytesRead }] = await Promise.all([fileErrors(async () => await file.read(buffer, 0, length, at)), sent]);
    if (bytesRead === 0) throw new BlobsError('unavailable', 'A blob is shorter than it was');
    sent = send(to, buffer.subarray(0, bytesRead));
    // Who comes to it hears of a failure; until then it is nobody's.
    sent.catch(() => {});
    at += bytesRead;
  }
  await sent;
  // After a failure they are not used again: a part may still be on its way to the stream.
  free.giveBack(buffers);
}
