import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock/clock.ts';
import type { HashAlgorithm } from '../hash/hash.ts';
import type { HashThreads } from '../hash/hash-threads.ts';
import { BlobsError } from './blobs.ts';
import { UploadHash } from './upload-hash.ts';

/** A hash takes a few hundred bytes. Uploads beyond this number are read again when they are published. */
const maxHashes = 10_000;

/** A hash holds a thread. Most clients that send nothing for longer than a connection may be idle have stopped. */
const maxIdleMs = 600_000;

/** How often idle hashes are removed. */
const purgeEveryMs = 60_000;

/** Keeps the hashes of uploads between their appends. If a hash is lost, the bytes of its upload are read again. */
export class UploadHashes implements Disposable {
  readonly #threads: HashThreads;
  readonly #kept: LRUCache<string, UploadHash>;
  readonly #clock: Clock;
  /** Removes idle hashes, while there are hashes. */
  #timer: Disposable | undefined;
  #isClosed = false;

  constructor(threads: HashThreads, clock: Clock) {
    this.#threads = threads;
    this.#clock = clock;
    this.#kept = new LRUCache({
      max: maxHashes,
      ttl: maxIdleMs,
      ttlResolution: 0,
      perf: { now: () => clock.now().getTime() },
      dispose: (hash, _key, reason) => {
        if (reason !== 'delete') hash[Symbol.dispose]();
      },
    });
  }

  /**
   * Runs an action with the hash of an upload, and keeps the hash afterwards, also if the client disconnects, but not after a
   * `BlobsError`: then it is unknown which bytes are stored. The `key` of an upload stays the same while bytes are only appended.
   */
  async use<R>(key: string, algorithm: HashAlgorithm, action: (hash: UploadHash) => Promise<R>): Promise<R> {
    const hash = this.#claim(key, algorithm);
    try {
      const result = await action(hash);
      this.#keep(key, hash);
      return result;
    } catch (error) {
      if (error instanceof BlobsError) hash[Symbol.dispose]();
      else this.#keep(key, hash);
      throw error;
    }
  }

  /** Removes the hash of an upload that has ended. */
  remove(key: string): void {
    this.#kept.get(key)?.[Symbol.dispose]();
    this.#kept.delete(key);
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#stopPurging();
    for (const hash of this.#kept.values()) hash[Symbol.dispose]();
    this.#kept.clear();
  }

  #keep(key: string, hash: UploadHash): void {
    if (this.#isClosed) {
      hash[Symbol.dispose]();
      return;
    }
    this.#kept.set(key, hash);
    this.#timer ??= this.#clock.every(purgeEveryMs, () => this.#purge());
  }

  #purge(): void {
    this.#kept.purgeStale();
    if (this.#kept.size === 0) this.#stopPurging();
  }

  #stopPurging(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
  }

  #claim(key: string, algorithm: HashAlgorithm): UploadHash {
    const kept = this.#kept.get(key);
    this.#kept.delete(key);
    if (kept?.algorithm === algorithm) return kept;
    kept?.[Symbol.dispose]();
    return new UploadHash(this.#threads, algorithm);
  }
}
