import type { FileHandle } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { Pace } from '../pace/pace.ts';
import type { ByteRange } from './blobs.ts';
import { BlobsError } from './blobs.ts';
import { PartReader } from './part-reader.ts';
import { ReadBuffers } from './read-buffers.ts';
import { keptQuiet, send } from './send.ts';

/** What copies of one driver share. */
export interface CopyMeans {
  readonly buffers: ReadBuffers;
  readonly pace: Pace;
}

/** As long as copies of what is in the page cache, to receivers that are as fast, may keep anybody else waiting. */
const stepMs = 2;

/** The means of a driver. */
export function newCopyMeans(): CopyMeans {
  return { buffers: new ReadBuffers(), pace: new Pace(stepMs) };
}

/**
 * Writes a range of a file to a stream, part by part. The stream stays open. Rejects with what the stream fails with when it is
 * destroyed.
 */
export async function copyFile(
  file: FileHandle,
  range: ByteRange,
  { to, means }: { readonly to: Writable; readonly means: CopyMeans },
): Promise<void> {
  const { buffers: free, pace } = means;
  const used: Buffer[] = [];
  try {
    await copyThrough(used, { reader: new PartReader(file, { pace }), range, to, free });
  } catch (error) {
    // A part may still be on its way to the stream.
    for (const buffer of used) free.letGo(buffer);
    throw error;
  }
  for (const buffer of used) free.giveBack(buffer);
}

interface Copy {
  readonly reader: PartReader;
  readonly range: ByteRange;
  readonly to: Writable;
  readonly free: ReadBuffers;
}

/** Takes up to two buffers. */
async function copyThrough(used: Buffer[], { reader, range, to, free }: Copy): Promise<void> {
  const { start, end } = range;
  using _quiet = keptQuiet(to);
  let sent = Promise.resolve();
  let turn = 1;
  for (let at = start; at <= end;) {
    // What is read ahead must not be read into what is being sent.
    turn = reader.readsAhead ? 1 - turn : 0;
    const buffer = (used[turn] ??= free.take());
    const bytesRead = await reader.read(buffer, { at, length: Math.min(buffer.length, end + 1 - at) }, sent);
    if (bytesRead === 0) throw new BlobsError('unavailable', 'A blob is shorter than it was');
    sent = send(to, buffer.subarray(0, bytesRead));
    // Who comes to it hears of a failure; until then it is nobody's.
    sent.catch(() => {});
    at += bytesRead;
  }
  await sent;
}
