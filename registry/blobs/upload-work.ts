import { LRUCache } from 'lru-cache';
import type { RunningHash } from '../digests.ts';
import { RegistryError } from '../errors.ts';

/** A hash is a few hundred bytes; uploads beyond this many are read again when they are finished. */
const maxHashes = 10_000;

/**
 * What this process knows about uploads beside what is stored: which ones a request is writing to, and the hash of what
 * they hold. All of it may be lost: then the upload's bytes are read again.
 */
export class UploadWork {
  readonly #busy = new Set<string>();
  readonly #hashes = new LRUCache<string, RunningHash>({
    max: maxHashes,
    dispose: (hash, _uploadId, reason) => {
      if (reason !== 'delete') hash[Symbol.dispose]();
    },
  });

  /** Takes an upload for one request, until disposed. Throws `upload-busy`. */
  enter(uploadId: string): Disposable {
    if (this.#busy.has(uploadId)) throw new RegistryError('upload-busy');
    this.#busy.add(uploadId);
    return { [Symbol.dispose]: () => void this.#busy.delete(uploadId) };
  }

  keepHash(uploadId: string, hash: RunningHash): void {
    this.#hashes.set(uploadId, hash);
  }

  /** The hash of an upload's first `sizeBytes` bytes, if it is known. It is given away: keep it again to have it later. */
  takeHash(uploadId: string, sizeBytes: number): RunningHash | undefined {
    const hash = this.#hashes.get(uploadId);
    this.#hashes.delete(uploadId);
    if (hash?.sizeBytes === sizeBytes) return hash;
    hash?.[Symbol.dispose]();
    return undefined;
  }
}
