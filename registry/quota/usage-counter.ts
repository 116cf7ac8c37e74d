import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/clock/clock.ts';

/** A counter is a few numbers; of accounts beyond this many that push at a time, some are measured again sooner. */
const maxAccounts = 10_000;

/** How old a figure may be as long as nothing is refused by it. What other processes do shows after this time. */
const usualAgeMs = 30_000;

/** How old it may be when something would be refused by it: whoever has just made room is let in soon. */
const refusalAgeMs = 2_000;

/** Measuring a large account may take long: at most one tenth of the time is spent on it. */
const restPerWork = 9;

interface Entry {
  measured: number;
  /** What has changed here since it was measured. */
  changes: number;
  measuredAtMs: number;
  tookMs: number;
  measuring: Promise<void> | undefined;
}

/** A figure of each account that is costly to measure: measured now and then, and counted on in between. */
export class UsageCounter {
  readonly #clock: Clock;
  readonly #measure: (account: string) => Promise<number>;
  readonly #entries = new LRUCache<string, Entry>({ max: maxAccounts });

  constructor(clock: Clock, measure: (account: string) => Promise<number>) {
    this.#clock = clock;
    this.#measure = measure;
  }

  /** Whether `more` on top of an account's figure fits under `limit`, and the figure. It is measured anew before it refuses. */
  async fits(account: string, more: number, limit: number): Promise<{ fits: boolean; figure: number }> {
    let figure = await this.#read(account, usualAgeMs);
    if (figure + more > limit) figure = await this.#read(account, refusalAgeMs);
    return { fits: figure + more <= limit, figure };
  }

  /** As `fits`, and counts `more` at once if it does, so that two who ask at the same time cannot both have the last of it. */
  async reserve(account: string, more: number, limit: number): Promise<{ fits: boolean; figure: number }> {
    const answer = await this.fits(account, more, limit);
    const figure = this.known(account);
    if (!answer.fits || figure + more > limit) return { fits: false, figure };
    this.count(account, more);
    return { fits: true, figure };
  }

  /** The figure as it is known now, without measuring; 0 where it never was. */
  known(account: string): number {
    const entry = this.#entries.get(account);
    return entry ? entry.measured + entry.changes : 0;
  }

  /** Counts a change that was made here. */
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
      // What changed meanwhile may have been measured already. Counting it twice errs on the safe side, until the next time.
      entry.changes -= changesBefore;
      entry.measuredAtMs = this.#clock.now().getTime();
      entry.tookMs = performance.now() - begunMs;
    } finally {
      entry.measuring = undefined;
    }
  }
}
