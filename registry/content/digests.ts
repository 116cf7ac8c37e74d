import { createHash } from 'node:crypto';
import { digestPattern } from '../../contract/names.ts';
import type { HashAlgorithm } from '../../core/hash/hash.ts';
import { RegistryError } from '../errors.ts';

/** Returns a valid digest. Throws `digest-invalid`. */
export function checkedDigest(text: string | undefined): string {
  if (text !== undefined && digestPattern.test(text)) return text;
  throw new RegistryError('digest-invalid');
}

/** The algorithm that a client names, by default sha256. Throws `digest-invalid`. */
export function checkedAlgorithm(text: string | undefined): HashAlgorithm {
  if (text === undefined || text === 'sha256') return 'sha256';
  if (text === 'sha512') return text;
  throw new RegistryError('digest-invalid', { detail: 'Use the algorithm sha256 or sha512' });
}

/** The digest of bytes in memory. */
export function digestOfBytes(bytes: Uint8Array, algorithm: HashAlgorithm): string {
  return `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;
}
