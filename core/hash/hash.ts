export type HashAlgorithm = 'sha256' | 'sha512';

/** The algorithm of a digest that has the form of one. */
export function algorithmOf(digest: string): HashAlgorithm {
  return digest.startsWith('sha512:') ? 'sha512' : 'sha256';
}

/** A part of a file; `end` is the position of the first byte after it. */
export interface FilePart {
  readonly start: number;
  readonly end: number;
}

/** A hash of bytes in their order, computed on a thread. Dispose it if it is not asked for its digest. */
export interface Hash extends Disposable {
  /**
   * Hashes bytes; rejects if it cannot go on. The bytes belong to the hash: memory that holds nothing else is handed to the
   * thread, other memory is copied. Shared memory stays where it is, and must not change until this resolves.
   */
  update(bytes: Uint8Array): Promise<void>;
  /** Hashes bytes of a file, which must stay open and unchanged until this resolves. Rejects if it cannot go on. */
  updateFromFile(fd: number, part: FilePart): Promise<void>;
  /** In hexadecimal. It can be asked once. */
  digest(): Promise<string>;
}

/**
 * A request to a hash thread. Each `update`, `update-from-file` and `digest` has one answer, in order. A file's descriptor is
 * valid in all threads of a process.
 */
export type HashRequest =
  | { readonly kind: 'begin'; readonly hash: number; readonly algorithm: HashAlgorithm }
  | { readonly kind: 'update'; readonly hash: number; readonly bytes: Uint8Array }
  | { readonly kind: 'update-from-file'; readonly hash: number; readonly fd: number; readonly part: FilePart }
  | { readonly kind: 'digest' | 'drop'; readonly hash: number };

export interface HashAnswer {
  readonly hash: number;
  /** The digest, in hexadecimal; empty for an update. */
  readonly hex: string;
  readonly failure?: string;
}
