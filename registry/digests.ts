import { createHash } from 'node:crypto';
import { digestPattern } from '../contract/names.ts';
import { lengthOf } from '../core/blobs/blobs.ts';
import { inlineHash } from '../core/hash/hash.ts';
import type { Hash, HashAlgorithm } from '../core/hash/hash.ts';
import { RegistryError } from './errors.ts';

export type DigestAlgorithm = HashAlgorithm;

/** The algorithm of a digest that has the form of one. */
export function algorithmOf(digest: string): DigestAlgorithm {
  return digest.startsWith('sha512:') ? 'sha512' : 'sha256';
}

/** Throws `digest-invalid`. */
export function checkedDigest(text: string | undefined): string {
  if (text !== undefined && digestPattern.test(text)) return text;
  throw new RegistryError('digest-invalid');
}

/** The algorithm that a client asks for by name; sha256 if it asks for none. Throws `digest-invalid`. */
export function checkedAlgorithm(text: string | undefined): DigestAlgorithm {
  if (text === undefined || text === 'sha256') return 'sha256';
  if (text === 'sha512') return text;
  throw new RegistryError('digest-invalid', { detail: 'Use the algorithm sha256 or sha512' });
}

/** The digest of bytes that are at hand. */
export function digestOfBytes(bytes: Uint8Array, algorithm: DigestAlgorithm): string {
  return `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;
}

/** A hash that runs along while bytes go by. Dispose it if it is not asked for its digest. */
export class RunningHash implements Disposable {
  readonly algorithm: DigestAlgorithm;
  /** Bytes of a file, where the hash is one that takes them. */
  readonly takeFile: Hash['takeFile'];
  /** Bytes in shared memory, likewise. */
  readonly takeShared: Hash['takeShared'];
  readonly #hash: Hash;
  #sizeBytes = 0;

  /** `hash` is one of this algorithm that has seen nothing yet. */
  constructor(algorithm: DigestAlgorithm, hash: Hash = inlineHash(algorithm)) {
    this.algorithm = algorithm;
    this.#hash = hash;
    const { takeFile, takeShared } = hash;
    if (takeFile) {
      this.takeFile = async (fd, part) => await this.#count(takeFile.call(hash, fd, part), part.end - part.start);
    }
    if (takeShared) {
      this.takeShared = async (bytes) => await this.#count(takeShared.call(hash, bytes), bytes.byteLength);
    }
  }

  /** How many bytes it has seen. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Takes bytes into account, which are its own from then on. */
  async take(chunks: readonly Uint8Array[]): Promise<void> {
    // Before: a hash frees the memory of what it took.
    const sizeBytes = lengthOf(chunks);
    await this.#count(this.#hash.take(chunks), sizeBytes);
  }

  /** Takes all that a source gives. Throws what the source or the signal fails with. */
  async takeAll(source: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    for await (const chunk of source) {
      signal.throwIfAborted();
      await this.take([chunk]);
    }
  }

  /** There is nothing more to take for now: lets go of memory that it needs only while there is. */
  rest(): void {
    this.#hash.rest();
  }

  /** The digest of what it has seen. It can be asked once. */
  async digest(): Promise<string> {
    return `${this.algorithm}:${await this.#hash.digest()}`;
  }

  async #count(taking: Promise<void>, sizeBytes: number): Promise<void> {
    await taking;
    this.#sizeBytes += sizeBytes;
  }

  [Symbol.dispose](): void {
    this.#hash[Symbol.dispose]();
  }
}
