import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/clock/clock.ts';
import type { RunningHash } from '../digests.ts';
import { RegistryError } from '../errors.ts';

/** A hash is a few hundred bytes; uploads beyond this many are read again when they are finished. */
const maxHashes = 10_000;

/** A hash holds a thread. A client that sends nothing for longer than its connection may be idle has mostly given up. */
const maxIdleMs = 600_000;

/** How often idle hashes are looked for. */
const lookEveryMs = 60_000;

/**
 * What this process knows about uploads beside what is stored: which ones a request is writing to, and the hash of what
 * they hold. All of it may be lost: then the upload's bytes are read again.
 */
export class UploadWork implements Disposable {
  readonly #busy = new Set<string>();
  readonly #hashes: LRUCache<string, RunningHash>;
  readonly #timer: Disposable;

  constructor(clock: Clock) {
    this.#hashes = new LRUCache({
      max: maxHashes,
      ttl: maxIdleMs,
      ttlResolution: 0,
      perf: { now: () => clock.now().getTime() },
      dispose: (hash, _uploadId, reason) => {
        if (reason !== 'delete') hash[Symbol.dispose]();
      },
    });
    this.#timer = clock.every(lookEveryMs, () => void this.#hashes.purgeStale());
  }

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

  /** The upload has ended without a blob. */
  forget(uploadId: string): void {
    this.takeHash(uploadId, 0)?.[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]();
    this.#hashes.clear();
  }
}
