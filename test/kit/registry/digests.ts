import { createHash } from 'node:crypto';

export function sha256(bytes: Uint8Array | string): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

export function sha512(bytes: Uint8Array | string): string {
  return `sha512:${createHash('sha512').update(bytes).digest('hex')}`;
}
