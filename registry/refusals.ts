import { BlobsError } from '../core/blobs/blobs.ts';
import type { BlobsErrorCode } from '../core/blobs/blobs.ts';
import { ReserveError } from '../core/files/disk-reserve.ts';
import { StoreError } from '../core/store/store.ts';
import type { StoreErrorCode } from '../core/store/store.ts';
import { RegistryError } from './errors.ts';
import type { RegistryErrorName } from './errors.ts';

const forBlobs: Record<BlobsErrorCode, RegistryErrorName> = {
  'upload-exists': 'internal',
  'upload-unknown': 'upload-unknown',
  'upload-busy': 'upload-busy',
  'wrong-offset': 'upload-busy',
  // It was compared before: something was added since.
  'digest-mismatch': 'upload-busy',
  'no-space': 'no-space',
  damaged: 'internal',
  unavailable: 'unavailable',
};

const forStore: Record<StoreErrorCode, RegistryErrorName> = {
  duplicate: 'internal',
  'not-indexed': 'internal',
  locked: 'unavailable',
  unavailable: 'unavailable',
};

/** What Node's streams fail with when the other side goes. */
const leavingCodes = ['ECONNRESET', 'EPIPE', 'ECANCELED', 'ERR_STREAM_PREMATURE_CLOSE'];

/** How soon a client should try again when a part is down. */
const retryAfter = { 'retry-after': '5' };

/** Whatever went wrong, as an entry of the catalogue, with what caused it. */
export function asRegistryError(error: unknown): RegistryError {
  if (error instanceof RegistryError) return error;
  const entry = entryFor(error);
  return new RegistryError(entry, { cause: error, headers: entry === 'unavailable' ? retryAfter : {} });
}

/** Whether there is no space for what was to be written. */
export function isOutOfSpace(error: unknown): boolean {
  return asRegistryError(error).entry === 'no-space';
}

/** Whether this is nothing but a client that left before it had its answer. */
export function isLeaving({ cause }: RegistryError): boolean {
  return cause instanceof Error && 'code' in cause && leavingCodes.includes(String(cause.code));
}

function entryFor(error: unknown): RegistryErrorName {
  if (error instanceof BlobsError) return forBlobs[error.code];
  if (error instanceof ReserveError) return 'no-space';
  if (error instanceof StoreError) return error.isFull ? 'no-space' : forStore[error.code];
  return 'internal';
}
