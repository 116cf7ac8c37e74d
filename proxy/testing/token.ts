import { randomBytes } from 'node:crypto';

/** A random text in the form of a connection token. */
export function newToken(): string {
  return randomBytes(32).toString('base64url');
}
