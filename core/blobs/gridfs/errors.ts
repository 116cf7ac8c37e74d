import { isOutOfSpace, isUncertain, mongoProblem } from '../../store/mongodb/errors.ts';
import { BlobsError } from '../blobs.ts';

/** Turns errors of MongoDB into `BlobsError`s. */
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

/** Runs an idempotent write, and retries it once if its result is unknown. */
export async function retryIdempotent<R>(write: () => Promise<R>): Promise<R> {
  try {
    return await write();
  } catch (error) {
    if (!isUncertain(error)) throw error;
    return await write();
  }
}

/** Deletes an existing document. @returns whether it did. After a retry it assumes that this process deleted it. */
export async function deleteIdempotent(remove: () => Promise<{ readonly deletedCount: number }>): Promise<boolean> {
  let tries = 0;
  return await retryIdempotent(async () => {
    tries += 1;
    const { deletedCount } = await remove();
    return deletedCount > 0 || tries > 1;
  });
}
