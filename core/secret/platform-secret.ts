import { createHmac, createSecretKey, hkdfSync } from 'node:crypto';

/** Shorter secrets could be guessed. */
const minSecretBytes = 32;

/**
 * The secret that all processes of a platform share. It is never used directly: each purpose has its own derived key, so that a
 * leaked key compromises no other purpose.
 */
export class PlatformSecret {
  readonly #secret: Buffer;

  /** Throws if the secret is shorter than 32 bytes. */
  constructor(secret: Buffer) {
    if (secret.length < minSecretBytes) throw new Error(`The platform secret needs at least ${minSecretBytes} bytes`);
    this.#secret = secret;
  }

  /** The 256-bit key for a purpose (HKDF-SHA256). */
  keyFor(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#secret, '', `berth ${purpose}`, 32));
  }

  /** A deterministic function from a text to an unguessable text (base64url, 256 bits). */
  deriver(purpose: string): (text: string) => string {
    const key = createSecretKey(this.keyFor(purpose));
    return (text) => createHmac('sha256', key).update(text).digest('base64url');
  }
}
