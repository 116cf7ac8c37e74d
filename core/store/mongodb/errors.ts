/** Errors of MongoDB. */
import {
  MongoBulkWriteError,
  MongoError,
  MongoErrorLabel,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoServerError,
  MongoServerSelectionError,
  MongoWriteConcernError,
} from 'mongodb';

/** In MongoDB's list of error codes. */
const duplicateKey = 11_000;
const badValue = 2;
const fileStreamFailed = 39;
const outOfDiskSpace = 14_031;

/** Whether a document with this ID, or this value of a unique index, exists. */
export function isDuplicate(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === duplicateKey;
}

/** Whether the index that a query names is missing: another version of Berth may have removed it. */
export function isUnknownHint(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === badValue && /hint/i.test(error.message);
}

/** Whether the server's disk is full, for a write or for the temporary file of a query. */
export function isOutOfSpace(error: unknown): boolean {
  return error instanceof MongoServerError && (error.code === outOfDiskSpace || error.code === fileStreamFailed);
}

/** Whether no server was available, or answered, for as long as an operation waits. */
export function isTimeout(error: unknown): boolean {
  return error instanceof MongoServerSelectionError || error instanceof MongoNetworkTimeoutError;
}

/**
 * Whether the result of a write is unknown and the write should be retried: the connection broke, or a primary stepped down. Not
 * after a time-out, which the caller has already waited for.
 */
export function isUncertain(error: unknown): boolean {
  if (error instanceof MongoNetworkTimeoutError) return false;
  if (error instanceof MongoNetworkError || error instanceof MongoWriteConcernError) return true;
  if (error instanceof MongoBulkWriteError) return isUnconfirmed(error);
  return error instanceof MongoError && error.hasErrorLabel(MongoErrorLabel.RetryableWriteError);
}

/**
 * The error of one document of a failed unordered bulk write; `undefined` if the document was written. If the whole write failed,
 * for example because the connection was lost, returns the cause, which the driver wraps.
 */
export function bulkOutcome(error: unknown, index: number): unknown {
  if (!(error instanceof MongoBulkWriteError)) return error;
  const wrapped: unknown = error.errorResponse;
  if (wrapped instanceof MongoError) return wrapped;
  const refused = [error.writeErrors].flat().find((each) => each.index === index);
  if (refused) return new MongoServerError({ message: refused.errmsg ?? error.message, code: refused.code });
  return isUnconfirmed(error) ? error : undefined;
}

/** Whether the server has not confirmed the requested durability of the written documents. */
function isUnconfirmed(error: MongoBulkWriteError): boolean {
  return error.result.getWriteConcernError() !== undefined || [error.writeErrors].flat().length === 0;
}

/** The message of an error of MongoDB. The driver's messages contain hosts, but no passwords. */
export function mongoProblem(error: unknown): string | undefined {
  return error instanceof MongoError ? error.message : undefined;
}
