import type { Stats } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { BlobsError } from '../blobs.ts';
import type { ByteRange, OpenBlob } from '../blobs.ts';
import { fileErrors } from './errors.ts';
import type { ReadBuffers } from './read-buffers.ts';
import { ignoreErrors, send } from '../send.ts';
import { ifPresent } from '../../files/system-code.ts';

export interface BlobFile extends OpenBlob {
  /** As the file was when it was opened. */
  readonly stats: Stats;
}

/** Opens the file of a blob; dispose it. `undefined` if it does not exist. Rejects with system errors. */
export async function openBlobFile(path: string, buffers: ReadBuffers): Promise<BlobFile | undefined> {
  const file = await ifPresent(open(path, 'r'));
  if (!file) return undefined;
  try {
    const stats = await file.stat();
    const { size: sizeBytes } = stats;
    return {
      stats,
      sizeBytes,
      copyTo: async (to, { start, end } = { start: 0, end: sizeBytes - 1 }) =>
        await copyFile(file, { start, end: Math.min(end, sizeBytes - 1) }, { to, buffers }),
      [Symbol.asyncDispose]: async () => await file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Writes a range of a file to a stream in parts. While one part is sent, a pool thread reads the next one. Leaves the stream open.
 * Rejects with the stream's error when it is destroyed.
 */
export async function copyFile(
  file: FileHandle,
  range: ByteRange,
  { to, buffers }: { readonly to: Writable; readonly buffers: ReadBuffers },
): Promise<void> {
  const used: Buffer[] = [];
  try {
    await copyThrough(used, { file, range, to, buffers });
  } catch (error) {
    // The stream may still read from a buffer.
    for (const buffer of used) buffers.discard(buffer);
    throw error;
  }
  for (const buffer of used) buffers.release(buffer);
}

interface Copy {
  readonly file: FileHandle;
  readonly range: ByteRange;
  readonly to: Writable;
  readonly buffers: ReadBuffers;
}

/** Uses up to two buffers alternately. */
async function copyThrough(used: Buffer[], { file, range, to, buffers }: Copy): Promise<void> {
  const { start, end } = range;
  using _quiet = ignoreErrors(to);
  let sent = Promise.resolve();
  let turn = 0;
  for (let at = start; at <= end; turn = 1 - turn) {
    const buffer = (used[turn] ??= buffers.acquire());
    const length = Math.min(buffer.length, end + 1 - at);
    const position = at;
    const reading = fileErrors(async () => await file.read(buffer, 0, length, position));
    const [{ bytesRead }] = await Promise.all([reading, sent]);
    if (bytesRead === 0) throw new BlobsError('unavailable', 'A blob is shorter than it was');
    sent = send(to, buffer.subarray(0, bytesRead));
    // The failure is reported where the promise is awaited.
    sent.catch(() => {});
    at += bytesRead;
  }
  await sent;
}
