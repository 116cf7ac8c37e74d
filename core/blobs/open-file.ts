import type { Stats } from 'node:fs';
import { open } from 'node:fs/promises';
import { ifPresent } from '../files/system-code.ts';
import type { OpenBlob } from './blobs.ts';
import { copyFile } from './copy-file.ts';
import type { ReadBuffers } from './read-buffers.ts';

export interface BlobFile extends OpenBlob {
  /** As the file was when it was opened. */
  readonly stats: Stats;
}

/** Opens a file that holds a blob; dispose it. `undefined` if there is none. Rejects with what the system says. */
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
