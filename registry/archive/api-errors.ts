/** From what the registry and the libraries throw to the errors of the service API, in whose name archives are served. */
import { MulterError } from 'multer';
import { ApiError } from '../../model/api-error.ts';
import { registryErrors } from '../errors.ts';
import { asRegistryError, isLeaving } from '../refusals.ts';
import type { RegistryError } from '../errors.ts';

/** An archive is not what it should be. */
export function badArchive(message: string, cause?: unknown): ApiError {
  return new ApiError('BadRequest', `The archive ${message}`, { cause });
}

/** An archive is larger than we take. */
export function tooLarge(message: string): ApiError {
  return new ApiError('PayloadTooLarge', `The archive ${message}`);
}

/** Whatever went wrong with an archive, as a refusal where it is one; everything else stays what it is. */
export function asApiError(error: unknown): unknown {
  if (error instanceof ApiError) return error;
  if (error instanceof MulterError) return fromForm(error);
  const refusal = asRegistryError(error);
  return isLeaving(refusal) || refusal.entry === 'internal' ? error : fromRegistry(refusal);
}

function fromForm(error: MulterError): ApiError {
  const field = error.field === undefined ? '' : ` (field "${error.field}")`;
  return new ApiError(
    'BadRequest',
    `Send one file in the field "archive" and nothing else but text: ${error.message}${field}`,
  );
}

function fromRegistry(error: RegistryError): ApiError {
  const { status, message } = registryErrors[error.entry];
  const sentence = error.detail === undefined ? message : `${message}: ${error.detail}`;
  if (error.entry === 'quota-exceeded') return new ApiError('QuotaExceeded', sentence, { cause: error });
  if (status === 413) return new ApiError('PayloadTooLarge', sentence, { cause: error });
  if (status === 507) return new ApiError('InsufficientStorage', message, { cause: error });
  if (status === 503) return new ApiError('Unavailable', message, { cause: error });
  return new ApiError('BadRequest', sentence, { cause: error });
}
