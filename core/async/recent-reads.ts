import type { LRUCache } from 'lru-cache';
import { newLruCache } from './lru-cache.ts';

interface Read<T> {
  readonly value: Promise<T>;
  readonly atMs: number;
}

interface RecentReadsOptions<T> {
  /** How long a value is remembered, by the machine's time. */
  readonly forMs: number;
  /** How many values are remembered; the least recently used are forgotten first. */
  readonly max: number;
  /** Which values are remembered. Default: all. */
  readonly keeps?: (value: T) => boolean;
}

/** Caches values for a short time, so that most requests read nothing. Concurrent requests share one read. */
export class RecentReads<T> {
  readonly #options: RecentReadsOptions<T>;
  readonly #reads: LRUCache<string, Read<T>>;

  constructor(options: RecentReadsOptions<T>) {
    this.#options = options;
    this.#reads = newLruCache(options.max);
  }

  /** Returns the cached value of a key, or the result of `read`. A failed read is not cached. */
  get(key: string, read: () => Promise<T>): Promise<T> {
    const known = this.#reads.get(key);
    if (known && performance.now() - known.atMs < this.#options.forMs) return known.value;
    return this.#read(key, read);
  }

  /** Caches a value that was just written. */
  set(key: string, value: T): void {
    this.#remember(key, Promise.resolve(value));
  }

  forget(key: string): void {
    this.#reads.delete(key);
  }

  forgetAll(): void {
    this.#reads.clear();
  }

  async #read(key: string, read: () => Promise<T>): Promise<T> {
    const reading = this.#remember(key, read());
    try {
      const value = await reading.value;
      if (this.#options.keeps?.(value) === false) this.#drop(key, reading);
      return value;
    } catch (error) {
      this.#drop(key, reading);
      throw error;
    }
  }

  #remember(key: string, value: Promise<T>): Read<T> {
    const reading = { value, atMs: performance.now() };
    this.#reads.set(key, reading);
    return reading;
  }

  /** Forgets a read, but not a later read of the same key. */
  #drop(key: string, reading: Read<T>): void {
    if (this.#reads.get(key) === reading) this.#reads.delete(key);
  }
}
