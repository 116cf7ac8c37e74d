/** Reads from the store, cached for a short time and shared by concurrent callers. */
import type { Clock } from '../core/clock/clock.ts';

export interface CachedReadsOptions<T> {
  readonly clock: Clock;
  /** How long a result is used, from the start of its read. */
  readonly trustMs: number;
  /** The limit for lasting documents, and the limit for all other results. */
  readonly maxEntries: number;
  /** Resolves to `undefined` if there is no document. */
  readonly read: (id: string) => Promise<T | undefined>;
  /** Whether to cache a document. Default: every document. */
  readonly isKept?: (value: T) => boolean;
  /** Extends the use of documents beyond `trustMs`. Default: of none. */
  readonly lasting?: Lasting<T>;
}

/** Which documents may be used beyond `trustMs`, and for how long. */
export interface Lasting<T> {
  /** How long a document is used at most. */
  readonly maxMs: number;
  /** Whether a document can be confirmed. */
  readonly includes: (value: T) => boolean;
  /** Whether a document that was read at `readAtMs` has not changed until a time less than `trustMs` ago. */
  readonly isConfirmed: (readAtMs: number, nowMs: number) => boolean;
}

/** The result of a read. */
export interface Result<T> {
  /** `undefined`: there is no document. */
  readonly value: T | undefined;
  readonly readAtMs: number;
  /** Whether its use is always limited to `trustMs`. */
  readonly isBrief: boolean;
  /** Whether a message or a later read has replaced it, or it has left the cache, so that messages no longer reach it. */
  isDropped: boolean;
}

/** The results of reads by ID. Failed reads are not cached. */
export class CachedReads<T> {
  readonly #options: CachedReadsOptions<T>;
  readonly #lasting: RecentResults<T>;
  /** Separate, so that a client that requests any number of unknown IDs displaces no document. */
  readonly #brief: RecentResults<T>;
  readonly #reading = new Map<string, Promise<T | undefined>>();

  constructor(options: CachedReadsOptions<T>) {
    const { trustMs, maxEntries, lasting } = options;
    this.#options = options;
    this.#brief = new RecentResults({ trustMs, maxEntries, maxMs: trustMs, isConfirmed: never });
    this.#lasting = new RecentResults({ maxMs: trustMs, isConfirmed: never, ...lasting, trustMs, maxEntries });
  }

  /** Whether no lasting document is cached. */
  get isEmpty(): boolean {
    return this.#lasting.isEmpty;
  }

  /** The cached result of a read, if it is still trusted. */
  known(id: string): Result<T> | undefined {
    const nowMs = this.#nowMs();
    return this.#lasting.get(id, nowMs) ?? this.#brief.get(id, nowMs);
  }

  /** Whether a result of `known` is still trusted. */
  isCurrent(result: Result<T>, nowMs: number): boolean {
    return !result.isDropped && (result.isBrief ? this.#brief : this.#lasting).isTrusted(result.readAtMs, nowMs);
  }

  /** Reads from the store. Concurrent callers share the read. */
  read(id: string): Promise<T | undefined> {
    const inProgress = this.#reading.get(id);
    if (inProgress) return inProgress;
    const reading: Promise<T | undefined> = this.#readAndCache(id, () => this.#reading.get(id) === reading);
    this.#reading.set(id, reading);
    return reading;
  }

  /** Drops the result of earlier reads and of a read in progress. */
  forget(id: string): void {
    this.#lasting.delete(id);
    this.#brief.delete(id);
    this.#reading.delete(id);
  }

  async #readAndCache(id: string, isCurrent: () => boolean): Promise<T | undefined> {
    const { read, isKept = () => true, lasting } = this.#options;
    // A result is as old as the start of its read: the store may have changed since.
    const readAtMs = this.#nowMs();
    try {
      const value = await read(id);
      if (isCurrent()) {
        this.#lasting.delete(id);
        this.#brief.delete(id);
        const isBrief = value === undefined || lasting?.includes(value) === false;
        const result = { value, readAtMs, isBrief, isDropped: false };
        if (isBrief || isKept(value)) (isBrief ? this.#brief : this.#lasting).set(id, result);
      }
      return value;
    } finally {
      if (isCurrent()) this.#reading.delete(id);
    }
  }

  #nowMs(): number {
    return this.#options.clock.now().getTime();
  }
}

const never = (): boolean => false;

interface RecentOptions<T> extends Pick<CachedReadsOptions<T>, 'trustMs' | 'maxEntries'> {
  readonly maxMs: number;
  readonly isConfirmed: Lasting<T>['isConfirmed'];
}

/** How many expired results each new one removes: more than one, so that their number falls. */
const removedPerResult = 2;

/** The latest results, in the order of their reads. */
class RecentResults<T> {
  readonly #options: RecentOptions<T>;
  readonly #results = new Map<string, Result<T>>();

  constructor(options: RecentOptions<T>) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#results.size === 0;
  }

  get(id: string, nowMs: number): Result<T> | undefined {
    const result = this.#results.get(id);
    return result && this.isTrusted(result.readAtMs, nowMs) ? result : undefined;
  }

  /** Adds a result under a new ID. */
  set(id: string, result: Result<T>): void {
    const { maxEntries, maxMs } = this.#options;
    this.#results.set(id, result);
    let removed = 0;
    for (const [oldest, { readAtMs }] of this.#results) {
      const isFull = this.#results.size > maxEntries;
      const isUsable = isWithin(maxMs, readAtMs, result.readAtMs);
      if (!isFull && (removed === removedPerResult || isUsable)) break;
      this.delete(oldest);
      removed += 1;
    }
  }

  delete(id: string): void {
    const result = this.#results.get(id);
    if (result) result.isDropped = true;
    this.#results.delete(id);
  }

  isTrusted(readAtMs: number, nowMs: number): boolean {
    const { trustMs, maxMs, isConfirmed } = this.#options;
    if (isWithin(trustMs, readAtMs, nowMs)) return true;
    return isWithin(maxMs, readAtMs, nowMs) && isConfirmed(readAtMs, nowMs);
  }
}

/** Whether less than `ms` has passed. A time in the future is rejected: after the clock was set back, it would be trusted for too long. */
function isWithin(ms: number, sinceMs: number, nowMs: number): boolean {
  const ageMs = nowMs - sinceMs;
  return ageMs >= 0 && ageMs < ms;
}
