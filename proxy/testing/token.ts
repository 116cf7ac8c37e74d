import { randomBytes } from 'node:crypto';

/** A text that has the form of a connection token. */
export function newToken(): string {
  return randomBytes(32).toString('base64url');
}
