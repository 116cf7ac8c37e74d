import { isOutOfSpace, isUncertain, mongoProblem } from '../store/mongodb-errors.ts';
import { BlobsError } from './blobs.ts';

/** Runs something that uses MongoDB; what that refuses becomes a `BlobsError`. Other errors come through. */
export async function blobErrors<R>(action: () => Promise<R>): Promise<R> {
  try {
    return await action();
  } catch (error) {
    const problem = mongoProblem(error);
    if (problem === undefined) throw error;
    if (isOutOfSpace(error)) throw new BlobsError('no-space', `No space left: ${problem}`, { cause: error });
    throw new BlobsError('unavailable', `Blobs cannot be used: ${problem}`, { cause: error });
  }
}

/** Runs a write that does no harm when it happens twice, and once more if its result is unknown. */
export async function again<R>(write: () => Promise<R>): Promise<R> {
  try {
    return await write();
  } catch (error) {
    if (!isUncertain(error)) throw error;
    return await write();
  }
}

/** Deletes what was there a moment ago. @returns whether it did; after a broken connection, whatever is gone was our doing. */
export async function deletes(remove: () => Promise<{ readonly deletedCount: number }>): Promise<boolean> {
  let tries = 0;
  return await again(async () => {
    tries += 1;
    const { deletedCount } = await remove();
    return deletedCount > 0 || tries > 1;
  });
}

/** There is no such upload, or no more. */
export function unknownUpload(uploadId: string): BlobsError {
  return new BlobsError('upload-unknown', `There is no upload "${uploadId}"`);
}
