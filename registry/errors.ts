/** The errors of the registry, and how errors of the ports become entries of the catalogue. */
import { BlobsError } from '../core/blobs/blobs.ts';
import type { BlobsErrorCode } from '../core/blobs/blobs.ts';
import { ReserveError } from '../core/files/disk-reserve.ts';
import { TooSlowError } from '../core/http/minimum-rate.ts';
import { StoreError } from '../core/store/store.ts';
import type { StoreErrorCode } from '../core/store/store.ts';
import { registryErrors } from './error-catalogue.ts';
import type { RegistryErrorName } from './error-catalogue.ts';

interface RegistryErrorOptions extends ErrorOptions {
  /** Describes the problem; sent to the client. */
  readonly detail?: string;
  /** Additional headers of the response. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Rejects a request with an entry of the catalogue. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError';
  readonly entry: RegistryErrorName;
  readonly detail: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(entry: RegistryErrorName, options: RegistryErrorOptions = {}) {
    super(registryErrors[entry].message, options);
    this.entry = entry;
    this.detail = options.detail;
    this.headers = options.headers ?? {};
  }
}

const forBlobs: Record<BlobsErrorCode, RegistryErrorName> = {
  'upload-exists': 'internal',
  'upload-unknown': 'upload-unknown',
  'upload-busy': 'upload-busy',
  'wrong-offset': 'upload-busy',
  // The digest was compared before: another request has appended bytes since.
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

/** The errors of Node's streams when the peer disconnects. */
const disconnectCodes = ['ECONNRESET', 'EPIPE', 'ECANCELED', 'ERR_STREAM_PREMATURE_CLOSE'];

/** When a client should try again if the store or the blobs are unavailable. */
const retryAfter = { 'retry-after': '5' };

/** Any error as an entry of the catalogue, with the error as its cause. */
export function asRegistryError(error: unknown): RegistryError {
  if (error instanceof RegistryError) return error;
  const entry = entryFor(error);
  return new RegistryError(entry, { cause: error, headers: entry === 'unavailable' ? retryAfter : {} });
}

/** Whether a write failed because there is no space. */
export function isOutOfSpace(error: unknown): boolean {
  return asRegistryError(error).entry === 'no-space';
}

/** Whether an error only means that the client disconnected before it received its answer. */
export function isDisconnect({ cause }: RegistryError): boolean {
  return cause instanceof Error && 'code' in cause && disconnectCodes.includes(String(cause.code));
}

function entryFor(error: unknown): RegistryErrorName {
  if (error instanceof BlobsError) return forBlobs[error.code];
  if (error instanceof ReserveError) return 'no-space';
  if (error instanceof TooSlowError) return 'too-slow';
  if (error instanceof StoreError) return error.isFull ? 'no-space' : forStore[error.code];
  return 'internal';
}
