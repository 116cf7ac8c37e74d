import { newLruCache } from '../../core/async/lru-cache.ts';
import type { Clock } from '../../core/clock/clock.ts';

/** An entry is a few numbers. If more accounts push at a time, some are measured more often. */
const maxAccounts = 10_000;

/** The maximum age of a measurement by which a request is accepted. Changes by other processes show after this time. */
const acceptAgeMs = 30_000;

/** The maximum age of a measurement by which a request is rejected: a client that has just deleted images can push soon. */
const rejectAgeMs = 2_000;

/** Measuring a large account may take long: it takes at most a tenth of the time. */
const restPerWork = 9;

interface Entry {
  measured: number;
  /** The changes by this process since the measurement. */
  changes: number;
  measuredAtMs: number;
  tookMs: number;
  measuring: Promise<void> | undefined;
}

/** The usage of each account, which is costly to measure: measures it at intervals and counts changes in between. */
export class UsageCounter {
  readonly #clock: Clock;
  readonly #measure: (account: string) => Promise<number>;
  readonly #entries = newLruCache<Entry>(maxAccounts);

  constructor(clock: Clock, measure: (account: string) => Promise<number>) {
    this.#clock = clock;
    this.#measure = measure;
  }

  /** Returns an account's usage, and whether `more` fits under `limit`. Measures again before it reports that it does not fit. */
  async fits(account: string, more: number, limit: number): Promise<{ fits: boolean; usage: number }> {
    let usage = await this.#read(account, acceptAgeMs);
    if (usage + more > limit) usage = await this.#read(account, rejectAgeMs);
    return { fits: usage + more <= limit, usage };
  }

  /** As `fits`, and counts `more` at once if it fits, so that two concurrent requests cannot both use the last bytes. */
  async reserve(account: string, more: number, limit: number): Promise<{ fits: boolean; usage: number }> {
    const answer = await this.fits(account, more, limit);
    const usage = this.known(account);
    if (!answer.fits || usage + more > limit) return { fits: false, usage };
    this.count(account, more);
    return { fits: true, usage };
  }

  /** The usage as known, without measuring; 0 if it was never measured. */
  known(account: string): number {
    const entry = this.#entries.get(account);
    return entry ? entry.measured + entry.changes : 0;
  }

  /** Counts a change by this process. */
  count(account: string, change: number): void {
    const entry = this.#entries.get(account);
    if (entry) entry.changes += change;
  }

  async #read(account: string, maxAgeMs: number): Promise<number> {
    let entry = this.#entries.get(account);
    if (!entry) {
      entry = { measured: 0, changes: 0, measuredAtMs: -Infinity, tookMs: 0, measuring: undefined };
      this.#entries.set(account, entry);
    }
    const ageMs = Math.abs(this.#clock.now().getTime() - entry.measuredAtMs);
    if (entry.measuring || ageMs > Math.max(maxAgeMs, entry.tookMs * restPerWork)) {
      await (entry.measuring ??= this.#remeasure(account, entry));
    }
    return entry.measured + entry.changes;
  }

  async #remeasure(account: string, entry: Entry): Promise<void> {
    const begunMs = performance.now();
    const changesBefore = entry.changes;
    try {
      entry.measured = await this.#measure(account);
      // Changes during the measurement may be part of it. Counting them twice is safe and lasts until the next measurement.
      entry.changes -= changesBefore;
      entry.measuredAtMs = this.#clock.now().getTime();
      entry.tookMs = performance.now() - begunMs;
    } finally {
      entry.measuring = undefined;
    }
  }
}
