import { BlobsError } from '../blobs.ts';
import { ReserveError } from '../../files/disk-reserve.ts';
import { systemCode } from '../../files/system-code.ts';

/** Error codes for a full disk, an exhausted quota and a file of the largest possible size. */
const noSpaceCodes = ['ENOSPC', 'EDQUOT', 'EFBIG'];

/** Turns system errors into `BlobsError`s. */
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

/** Bytes could not be made durable: the upload is lost. */
export class FlushError extends BlobsError {}

/** Syncs a file. Throws `FlushError` if the disk fails. */
export async function makeDurable(sync: () => Promise<void>): Promise<void> {
  try {
    await sync();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new FlushError('unavailable', `Blobs cannot be made durable: ${message}`, { cause: error });
  }
}
