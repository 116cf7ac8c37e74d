/** Reads from the store, remembered for a short time and shared by concurrent callers. */
import type { Clock } from '../core/clock/clock.ts';

export interface RememberedReadsOptions<T> {
  readonly clock: Clock;
  /** How long a result is used, from the start of its read. */
  readonly trustMs: number;
  /** How many documents are remembered, and how many IDs without a document. */
  readonly maxEntries: number;
  /** Resolves to `undefined` if there is no document. */
  readonly read: (id: string) => Promise<T | undefined>;
  /** Whether to remember a document. Default: every one. */
  readonly isKept?: (value: T) => boolean;
}

/** The result of a read. */
export interface Result<T> {
  /** `undefined`: there is no document. */
  readonly value: T | undefined;
}

/** The results of reads by ID. Failed reads are not remembered. */
export class RememberedReads<T> {
  readonly #options: RememberedReadsOptions<T>;
  readonly #present: RecentResults<T>;
  /** Apart from the documents, so that a client that asks for any number of unknown IDs displaces no document. */
  readonly #absent: RecentResults<T>;
  readonly #reading = new Map<string, Promise<T | undefined>>();

  constructor(options: RememberedReadsOptions<T>) {
    this.#options = options;
    this.#present = new RecentResults(options);
    this.#absent = new RecentResults(options);
  }

  /** The result of a read, if it can be trusted still. */
  known(id: string): Result<T> | undefined {
    const nowMs = this.#nowMs();
    return this.#present.get(id, nowMs) ?? this.#absent.get(id, nowMs);
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
    this.#present.delete(id);
    this.#absent.delete(id);
    this.#reading.delete(id);
  }

  async #remember(id: string, isCurrent: () => boolean): Promise<T | undefined> {
    const { read, isKept = () => true } = this.#options;
    // A result is as old as the start of its read: the store may have changed since.
    const readAtMs = this.#nowMs();
    try {
      const value = await read(id);
      if (isCurrent()) {
        this.#present.delete(id);
        this.#absent.delete(id);
        if (value === undefined) this.#absent.set(id, { value, readAtMs });
        else if (isKept(value)) this.#present.set(id, { value, readAtMs });
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

interface TimedResult<T> extends Result<T> {
  readonly readAtMs: number;
}

/** So many expired results are removed for each new one: more than one, so that they become fewer. */
const removedPerResult = 2;

/** The latest results, in the order of their reads. */
class RecentResults<T> {
  readonly #trustMs: number;
  readonly #maxEntries: number;
  readonly #results = new Map<string, TimedResult<T>>();

  constructor({ trustMs, maxEntries }: { readonly trustMs: number; readonly maxEntries: number }) {
    this.#trustMs = trustMs;
    this.#maxEntries = maxEntries;
  }

  get(id: string, nowMs: number): Result<T> | undefined {
    const result = this.#results.get(id);
    return result && this.#isTrusted(result, nowMs) ? result : undefined;
  }

  /** Adds a result that it does not have. */
  set(id: string, result: TimedResult<T>): void {
    this.#results.set(id, result);
    let removed = 0;
    for (const [oldest, each] of this.#results) {
      const isFull = this.#results.size > this.#maxEntries;
      if (!isFull && (removed === removedPerResult || this.#isTrusted(each, result.readAtMs))) break;
      this.#results.delete(oldest);
      removed += 1;
    }
  }

  delete(id: string): void {
    this.#results.delete(id);
  }

  /** A result from the future means that the clock was set back. It would otherwise be trusted for too long. */
  #isTrusted({ readAtMs }: TimedResult<T>, nowMs: number): boolean {
    const ageMs = nowMs - readAtMs;
    return ageMs >= 0 && ageMs < this.#trustMs;
  }
}
