import type { FileHandle } from 'node:fs/promises';
import { fileErrors } from './file-errors.ts';
import { untilAborted } from './until-aborted.ts';

/**
 * Writes what a source gives to a file, from `offset` on, each chunk as it comes. When the source fails or the signal
 * aborts, it rejects with that reason, and what was written stays.
 */
export async function writeChunks(
  file: FileHandle,
  offset: number,
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  let position = offset;
  for await (const chunk of untilAborted(source, signal)) {
    await fileErrors(() => writeWhole(file, chunk, position));
    position += chunk.byteLength;
  }
}

async function writeWhole(file: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  let done = 0;
  while (done < chunk.byteLength) {
    const { bytesWritten } = await file.write(chunk, done, chunk.byteLength - done, position + done);
    done += bytesWritten;
  }
}
