/** Errors of image archives, as errors of the service API, which serves the archives. */
import type { MulterError } from 'multer';
import { ApiError } from '../../model/api-error.ts';
import { registryErrors } from '../error-catalogue.ts';
import { isDisconnect, asRegistryError } from '../errors.ts';
import type { RegistryError } from '../errors.ts';

/** An archive is invalid. */
export function badArchive(message: string, cause?: unknown): ApiError {
  return new ApiError('BadRequest', `The archive ${message}`, { cause });
}

/** An archive exceeds a limit. */
export function tooLarge(message: string): ApiError {
  return new ApiError('PayloadTooLarge', `The archive ${message}`);
}

/** Converts an error into an error of the service API. Internal errors and disconnects stay as they are. */
export function asApiError(error: unknown): unknown {
  if (error instanceof ApiError) return error;
  if (isMulterError(error)) return fromForm(error);
  const registryError = asRegistryError(error);
  return isDisconnect(registryError) || registryError.entry === 'internal' ? error : fromRegistry(registryError);
}

/** Compares the name, because multer is loaded only for the first form. */
function isMulterError(error: unknown): error is MulterError {
  return error instanceof Error && error.name === 'MulterError';
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
