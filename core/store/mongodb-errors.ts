/** What went wrong, in MongoDB's words. */
import {
  MongoBulkWriteError,
  MongoError,
  MongoErrorLabel,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoServerError,
  MongoWriteConcernError,
} from 'mongodb';

/** In MongoDB's list of error codes. */
const duplicateKey = 11_000;
const badValue = 2;
const fileStreamFailed = 39;
const outOfDiskSpace = 14_031;

/** Whether a document with this ID, or this value of a unique index, is there already. */
export function isDuplicate(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === duplicateKey;
}

/** Whether the server knows no index that a query named: another version of the program may have removed it. */
export function isUnknownHint(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === badValue && /hint/i.test(error.message);
}

/** Whether the server's disk is full: for a write, or for what a search keeps in a file. */
export function isOutOfSpace(error: unknown): boolean {
  return error instanceof MongoServerError && (error.code === outOfDiskSpace || error.code === fileStreamFailed);
}

/**
 * Whether a write may or may not have happened, and is worth another try: the connection broke, or a primary stepped down.
 * Not after a time-out: who waited that long has waited enough.
 */
export function isUncertain(error: unknown): boolean {
  if (error instanceof MongoNetworkTimeoutError) return false;
  if (error instanceof MongoNetworkError || error instanceof MongoWriteConcernError) return true;
  if (error instanceof MongoBulkWriteError) return isUnconfirmed(error);
  return error instanceof MongoError && error.hasErrorLabel(MongoErrorLabel.RetryableWriteError);
}

/**
 * What an unordered bulk write's error says of one of its documents: `undefined` if that one was written. The driver wraps
 * what broke the whole write, such as a connection that was lost, in an error of its own; here it comes unwrapped.
 */
export function bulkOutcome(error: unknown, index: number): unknown {
  if (!(error instanceof MongoBulkWriteError)) return error;
  const wrapped: unknown = error.errorResponse;
  if (wrapped instanceof MongoError) return wrapped;
  const refused = [error.writeErrors].flat().find((each) => each.index === index);
  if (refused) return new MongoServerError({ message: refused.errmsg ?? error.message, code: refused.code });
  return isUnconfirmed(error) ? error : undefined;
}

/** Whether the documents that a bulk write did write were not confirmed as durably as was asked. */
function isUnconfirmed(error: MongoBulkWriteError): boolean {
  return error.result.getWriteConcernError() !== undefined || [error.writeErrors].flat().length === 0;
}

/** Why the database cannot be used, if that is what an error says. The driver's messages name hosts, never passwords. */
export function mongoProblem(error: unknown): string | undefined {
  return error instanceof MongoError ? error.message : undefined;
}
