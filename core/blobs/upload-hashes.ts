import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock/clock.ts';
import type { HashAlgorithm } from '../hash/hash.ts';
import type { HashThreads } from '../hash/hash-threads.ts';
import { BlobsError } from './blobs.ts';
import { UploadHash } from './upload-hash.ts';

/** A hash is a few hundred bytes; uploads beyond this many are read again when they are published. */
const maxHashes = 10_000;

/** A hash holds a thread. A client that sends nothing for longer than its connection may be idle has mostly given up. */
const maxIdleMs = 600_000;

/** How often idle hashes are looked for. */
const lookEveryMs = 60_000;

/** The hashes of uploads between their appends. All may be lost: then the bytes of an upload are read again. */
export class UploadHashes implements Disposable {
  readonly #threads: HashThreads;
  readonly #kept: LRUCache<string, UploadHash>;
  readonly #timer: Disposable;

  constructor(threads: HashThreads, clock: Clock) {
    this.#threads = threads;
    this.#kept = new LRUCache({
      max: maxHashes,
      ttl: maxIdleMs,
      ttlResolution: 0,
      perf: { now: () => clock.now().getTime() },
      dispose: (hash, _key, reason) => {
        if (reason !== 'delete') hash[Symbol.dispose]();
      },
    });
    this.#timer = clock.every(lookEveryMs, () => void this.#kept.purgeStale());
  }

  /**
   * Runs what appends to an upload or asks for its digest, with its hash, which is kept afterwards: if the client left, too, but
   * not after an error of the blobs, which leaves open what is stored. `key` names the bytes for as long as only more are added.
   */
  async use<R>(key: string, algorithm: HashAlgorithm, action: (hash: UploadHash) => Promise<R>): Promise<R> {
    const hash = this.#take(key, algorithm);
    try {
      const result = await action(hash);
      this.#kept.set(key, hash);
      return result;
    } catch (error) {
      if (error instanceof BlobsError) hash[Symbol.dispose]();
      else this.#kept.set(key, hash);
      throw error;
    }
  }

  /** The upload has ended. */
  forget(key: string): void {
    this.#kept.get(key)?.[Symbol.dispose]();
    this.#kept.delete(key);
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]();
    this.#kept.clear();
  }

  #take(key: string, algorithm: HashAlgorithm): UploadHash {
    const kept = this.#kept.get(key);
    this.#kept.delete(key);
    if (kept?.algorithm === algorithm) return kept;
    kept?.[Symbol.dispose]();
    return new UploadHash(this.#threads, algorithm);
  }
}
