/** Reads from the store, remembered for a short time and shared by concurrent callers. */
import type { Clock } from '../core/clock/clock.ts';

export interface RememberedReadsOptions<T> {
  readonly clock: Clock;
  /** How long a result is used, from the start of its read. */
  readonly trustMs: number;
  /** How many documents are remembered, and how many IDs without a lasting one. */
  readonly maxEntries: number;
  /** Resolves to `undefined` if there is no document. */
  readonly read: (id: string) => Promise<T | undefined>;
  /** Whether to remember a document. Default: every one. */
  readonly isKept?: (value: T) => boolean;
  /** Lets documents be used for longer than `trustMs`. Default: none is. */
  readonly lasting?: Lasting<T>;
}

/** Which documents are used for longer, and for how long. */
export interface Lasting<T> {
  /** How long a document is used at most. */
  readonly maxMs: number;
  /** Whether a document is one of those that are confirmed. */
  readonly includes: (value: T) => boolean;
  /** Whether a document that was read at a time is known not to have changed since, up to less than `trustMs` ago. */
  readonly isConfirmed: (readAtMs: number, nowMs: number) => boolean;
}

/** The result of a read. */
export interface Result<T> {
  /** `undefined`: there is no document. */
  readonly value: T | undefined;
  readonly readAtMs: number;
  /** Whether it is never used for longer than `trustMs`. */
  readonly isBrief: boolean;
  /** Whether a message or a later read has replaced it, or it is remembered no longer, so that no message could. */
  isDropped: boolean;
}

/** The results of reads by ID. Failed reads are not remembered. */
export class RememberedReads<T> {
  readonly #options: RememberedReadsOptions<T>;
  readonly #lasting: RecentResults<T>;
  /** Apart from the others, so that a client that asks for any number of unknown IDs displaces no document. */
  readonly #brief: RecentResults<T>;
  readonly #reading = new Map<string, Promise<T | undefined>>();

  constructor(options: RememberedReadsOptions<T>) {
    const { trustMs, maxEntries, lasting } = options;
    this.#options = options;
    this.#brief = new RecentResults({ trustMs, maxEntries, maxMs: trustMs, isConfirmed: never });
    this.#lasting = new RecentResults({ maxMs: trustMs, isConfirmed: never, ...lasting, trustMs, maxEntries });
  }

  /** Whether nothing is remembered that may last. */
  get isEmpty(): boolean {
    return this.#lasting.isEmpty;
  }

  /** The result of a read, if it can be trusted still. */
  known(id: string): Result<T> | undefined {
    const nowMs = this.#nowMs();
    return this.#lasting.get(id, nowMs) ?? this.#brief.get(id, nowMs);
  }

  /** Whether a result that was known can be trusted still. */
  isCurrent(result: Result<T>, nowMs: number): boolean {
    return !result.isDropped && (result.isBrief ? this.#brief : this.#lasting).isTrusted(result.readAtMs, nowMs);
  }

  /** Reads anew. Concurrent callers share the read. */
  read(id: string): Promise<T | undefined> {
    const inProgress = this.#reading.get(id);
    if (inProgress) return inProgress;
    const reading: Promise<T | undefined> = this.#remember(id, () => this.#reading.get(id) === reading);
    this.#reading.set(id, reading);
    return reading;
  }

  /** Drops the result of earlier reads and of a read in progress. */
  forget(id: string): void {
    this.#lasting.delete(id);
    this.#brief.delete(id);
    this.#reading.delete(id);
  }

  async #remember(id: string, isCurrent: () => boolean): Promise<T | undefined> {
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

interface RecentOptions<T> extends Pick<RememberedReadsOptions<T>, 'trustMs' | 'maxEntries'> {
  readonly maxMs: number;
  readonly isConfirmed: Lasting<T>['isConfirmed'];
}

/** So many expired results are removed for each new one: more than one, so that they become fewer. */
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

  /** Adds a result that it does not have. */
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

/** Whether less than a time has passed. A result from the future means that the clock was set back: it would be trusted for too long. */
function isWithin(ms: number, sinceMs: number, nowMs: number): boolean {
  const ageMs = nowMs - sinceMs;
  return ageMs >= 0 && ageMs < ms;
}
