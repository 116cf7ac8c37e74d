import { BlobsError } from './blobs.ts';
import { ReserveError } from '../files/disk-reserve.ts';
import { systemCode } from '../files/system-code.ts';

/** What the system says when a disk, a quota or the largest possible file is full. */
const noSpaceCodes = ['ENOSPC', 'EDQUOT', 'EFBIG'];

/** Runs something that uses files; what the system refuses becomes a `BlobsError`. Other errors come through. */
export async function fileErrors<R>(action: () => Promise<R>): Promise<R> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof ReserveError) throw new BlobsError('no-space', error.message, { cause: error });
    const code = systemCode(error);
    if (code === undefined) throw error;
    const message = (error as Error).message;
    if (noSpaceCodes.includes(code)) throw new BlobsError('no-space', `No space left: ${message}`, { cause: error });
    throw new BlobsError('unavailable', `Blobs cannot be used: ${message}`, { cause: error });
  }
}

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
