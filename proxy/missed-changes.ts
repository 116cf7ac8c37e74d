/**
 * Looks in the store for what the bus may have lost: backends that have ended, and routes that lead to another backend. What is not
 * among them has not changed, so it need not be read again, however many routes are in use. While the store does not answer, nothing
 * is confirmed, and every route and location is read again after a second.
 */
import { PeriodicTask } from '../core/async/periodic-task.ts';
import { withTimeout } from '../core/async/with-timeout.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Log } from '../core/log/log.ts';
import type { Store } from '../core/store/store.ts';
import { backends } from '../model/backend.ts';
import { routes } from '../model/route.ts';
import { readLimitMs } from './lookup.ts';
import type { Lookup } from './lookup.ts';

/** Twice in the time for which a result is trusted by itself, and once more for a look that is slow. */
export const lookEveryMs = 400;

/**
 * How long after the time in a document its write may take to become visible, and how far clocks may differ. It takes milliseconds,
 * and seconds where a disk is overloaded. If it takes longer and the bus loses the message, too, then `maxKeptMs` limits the damage.
 */
const writeLimitMs = 5_000;

/**
 * The most IDs of each kind that a look reads. More have changed when two hundred backends end each second: then nothing is confirmed, and
 * what is in use is read again after a second.
 */
export const maxChanges = 1_000;

/** After a longer pause, no earlier result is confirmed, instead of a look at everything that has ended meanwhile. */
const maxPauseMs = 60_000;

interface Deps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly lookup: Lookup;
}

/** A look that has succeeded: when it began, by this machine's clock and by the store's. */
interface Look {
  readonly startedMs: number;
  readonly storeTime: Date;
}

/** Looks regularly until disposed. A look reads only IDs, in the indexes by time, and at most a fixed number of them. */
export class MissedChanges implements AsyncDisposable {
  readonly #deps: Deps;
  readonly #looks: PeriodicTask;
  readonly #closing = new AbortController();
  /** The first of all looks since the last pause, and the latest one. */
  #first: Look | undefined;
  #last: Look | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#looks = new PeriodicTask(deps.clock, lookEveryMs, async () => await this.#lookOrLog());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A store that does not answer keeps nothing open.
    this.#closing.abort(new Error('The proxy closes'));
    await this.#looks[Symbol.asyncDispose]();
  }

  async #lookOrLog(): Promise<void> {
    if (this.#deps.lookup.isEmpty) return;
    try {
      await this.#look();
    } catch (error) {
      this.#deps.log.debug({ err: error }, 'Cannot look for changes that the bus may have lost');
    }
  }

  async #look(): Promise<void> {
    const { clock, lookup } = this.#deps;
    const startedMs = clock.now().getTime();
    const { signal } = this.#closing;
    const limit = { clock, ms: readLimitMs, message: 'The store does not answer', signal };
    const found = await withTimeout(limit, () => this.#find(startedMs));
    for (const id of found.ended) lookup.forgetEnded(id);
    for (const id of found.moved) lookup.forgetRoute(id);
    this.#last = { startedMs, storeTime: found.storeTime };
    if (!found.isContinued) this.#first = this.#last;
    lookup.confirm({ fromMs: this.#first?.startedMs ?? startedMs, untilMs: startedMs });
  }

  async #find(startedMs: number) {
    const { store } = this.#deps;
    const storeTime = await store.now();
    const last = this.#last;
    const pausedMs = last ? startedMs - last.startedMs : Infinity;
    const isContinued = pausedMs >= 0 && pausedMs < maxPauseMs;
    const since = isContinued && last ? last.storeTime : storeTime;
    const after = new Date(since.getTime() - writeLimitMs);
    const [ended, moved] = await Promise.all([
      store.findIds(backends, { index: 'byEnd', range: { after }, order: 'descending', limit: maxChanges }),
      store.findIds(routes, { index: 'byMove', range: { after }, order: 'descending', limit: maxChanges }),
    ]);
    const isAll = ended.length < maxChanges && moved.length < maxChanges;
    return { storeTime, isContinued: isContinued && isAll, ended, moved };
  }
}
