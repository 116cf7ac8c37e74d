import { createHash } from 'node:crypto';
import { free } from './owned-bytes.ts';

export type HashAlgorithm = 'sha256' | 'sha512';

/** A part of a file; `end` is the position of the first byte after it. */
export interface FilePart {
  readonly start: number;
  readonly end: number;
}

/** A hash that takes bytes as they come. Dispose it if it is not asked for its digest. */
export interface Hash extends Disposable {
  /**
   * Takes bytes, which are its own from then on: where they have memory to themselves, that is handed on or freed. Resolves
   * when there may be more. Rejects if it cannot go on.
   */
  take(chunks: readonly Uint8Array[]): Promise<void>;
  /**
   * Takes bytes from an open file, which are there and do not change; resolves when they are taken, until when it must stay
   * open. Rejects if it cannot go on. Only a hash in a thread has this: in this one, reading would cost more than it saves.
   */
  readonly takeFile?: (fd: number, part: FilePart) => Promise<void>;
  /**
   * Takes bytes in memory that threads share; resolves when they are taken, until when they must not change. Rejects if it
   * cannot go on. Only a hash in a thread has this.
   */
  readonly takeShared?: (bytes: Uint8Array<SharedArrayBuffer>) => Promise<void>;
  /** Lets go of memory that only a hash under way needs. */
  rest(): void;
  /** In hexadecimal. It can be asked once. */
  digest(): Promise<string>;
}

/** A hash in this very thread: for few bytes. */
export function inlineHash(algorithm: HashAlgorithm): Hash {
  const hash = createHash(algorithm);
  return {
    take: async (chunks) => {
      for (const chunk of chunks) {
        hash.update(chunk);
        free(chunk);
      }
    },
    rest: () => {},
    digest: async () => hash.digest('hex'),
    [Symbol.dispose]: () => {},
  };
}
