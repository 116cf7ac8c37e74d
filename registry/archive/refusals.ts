/** From what the registry and the libraries throw to the errors of the service API, in whose name archives are served. */
import { MulterError } from 'multer';
import { Refusal } from '../../model/refusal.ts';
import { registryErrors } from '../errors.ts';
import { asRegistryError, isLeaving } from '../refusals.ts';
import type { RegistryError } from '../errors.ts';

/** An archive is not what it should be. */
export function badArchive(message: string, cause?: unknown): Refusal {
  return new Refusal('BadRequest', `The archive ${message}`, { cause });
}

/** An archive is larger than we take. */
export function tooLarge(message: string): Refusal {
  return new Refusal('PayloadTooLarge', `The archive ${message}`);
}

/** Whatever went wrong with an archive, as a refusal where it is one; everything else stays what it is. */
export function asRefusal(error: unknown): unknown {
  if (error instanceof Refusal) return error;
  if (error instanceof MulterError) return fromForm(error);
  const refusal = asRegistryError(error);
  return isLeaving(refusal) || refusal.entry === 'internal' ? error : fromRegistry(refusal);
}

function fromForm(error: MulterError): Refusal {
  const field = error.field === undefined ? '' : ` (field "${error.field}")`;
  return new Refusal(
    'BadRequest',
    `Send one file in the field "archive" and nothing else but text: ${error.message}${field}`,
  );
}

function fromRegistry(error: RegistryError): Refusal {
  const { status, message } = registryErrors[error.entry];
  const sentence = error.detail === undefined ? message : `${message}: ${error.detail}`;
  if (error.entry === 'quota-exceeded') return new Refusal('QuotaExceeded', sentence, { cause: error });
  if (status === 413) return new Refusal('PayloadTooLarge', sentence, { cause: error });
  if (status === 507) return new Refusal('InsufficientStorage', message, { cause: error });
  if (status === 503) return new Refusal('Unavailable', message, { cause: error });
  return new Refusal('BadRequest', sentence, { cause: error });
}
