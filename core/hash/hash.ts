export type HashAlgorithm = 'sha256' | 'sha512';

/** The algorithm of a valid digest. */
export function algorithmOf(digest: string): HashAlgorithm {
  return digest.startsWith('sha512:') ? 'sha512' : 'sha256';
}

/** A part of a file; `end` is the position of the first byte after it. */
export interface FilePart {
  readonly start: number;
  readonly end: number;
}

/** A hash that is computed on a thread. Dispose it if its digest is not needed. */
export interface Hash extends Disposable {
  /**
   * Hashes bytes; rejects if the hash has failed. The hash owns the bytes: if their memory holds nothing else, it is transferred to
   * the thread, otherwise copied. Shared memory is used in place, and must not change until this resolves.
   */
  update(bytes: Uint8Array): Promise<void>;
  /** Hashes a part of a file, which must stay open and unchanged until this resolves. Rejects if the hash has failed. */
  updateFromFile(fd: number, part: FilePart): Promise<void>;
  /** The digest in hexadecimal. Can be called once. */
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
