import { BlobsError } from './blobs.ts';

/** Bytes could not be made durable: what was received cannot be relied upon any more. */
export class FlushError extends BlobsError {}

/** Runs a sync of a file. Throws `FlushError` if the disk fails. */
export async function makeDurable(sync: () => Promise<void>): Promise<void> {
  try {
    await sync();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new FlushError('unavailable', `Blobs cannot be made durable: ${message}`, { cause: error });
  }
}
