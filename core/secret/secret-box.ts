import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const algorithm = 'aes-256-gcm';

/** The standard nonce of GCM. Random nonces of this size do not repeat within any number of texts that a platform seals. */
const nonceBytes = 12;

const tagBytes = 16;

/**
 * Encrypts short texts for storage (AES-256-GCM). A sealed text is bound to its place in storage: for another place, decryption fails.
 */
export class SecretBox {
  readonly #key: Buffer;

  /** @param key - 256 bits that are used for nothing else */
  constructor(key: Buffer) {
    this.#key = key;
  }

  /** Encrypts a text for a place, such as the ID of a document. */
  seal(text: string, place: string): string {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv(algorithm, this.#key, nonce, { authTagLength: tagBytes }).setAAD(Buffer.from(place));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** Decrypts a text. Throws if it was not sealed with this key for this place. */
  open(sealed: string, place: string): string {
    const bytes = Buffer.from(sealed, 'base64url');
    const nonce = bytes.subarray(0, nonceBytes);
    const decipher = createDecipheriv(algorithm, this.#key, nonce, { authTagLength: tagBytes })
      .setAAD(Buffer.from(place))
      .setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]).toString('utf8');
  }
}
