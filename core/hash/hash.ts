import { createHash } from 'node:crypto';

export type HashAlgorithm = 'sha256' | 'sha512';

/** A hash that takes bytes as they come. Dispose it if it is not asked for its digest. */
export interface Hash extends Disposable {
  /** Takes bytes, which may change afterwards; resolves when there may be more. Rejects if it cannot go on. */
  update(bytes: Uint8Array): Promise<void>;
  /** Lets go of memory that only a hash under way needs. */
  rest(): void;
  /** In hexadecimal. It can be asked once. */
  digest(): Promise<string>;
}

/** A hash in this very thread: for few bytes. */
export function inlineHash(algorithm: HashAlgorithm): Hash {
  const hash = createHash(algorithm);
  return {
    update: async (bytes) => void hash.update(bytes),
    rest: () => {},
    digest: async () => hash.digest('hex'),
    [Symbol.dispose]: () => {},
  };
}
