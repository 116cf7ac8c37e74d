import type { FileHandle } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import type { ByteRange } from './blobs.ts';
import { BlobsError } from './blobs.ts';
import { fileErrors } from './file-errors.ts';
import type { ReadBuffers } from './read-buffers.ts';
import { keptQuiet, send } from './send.ts';

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
    for (const buffer of buffers) free.letGo(buffer);
    throw error;
  }
  for (const buffer of buffers) free.giveBack(buffer);
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
