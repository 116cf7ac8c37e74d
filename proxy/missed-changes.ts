/**
 * Polls the store for changes that the bus may have lost: ended backends and moved routes. Everything else has not changed, so the
 * proxy need not read it again, however many routes are in use. While the store does not answer, nothing is confirmed, and the proxy
 * reads every route and location again after a second.
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

/** Two polls fit in `trustMs`, with time left for a slow one. */
export const pollEveryMs = 400;

/**
 * Upper bound on the time from the date in a document until its write is visible, and on differences between clocks. A write takes
 * milliseconds, or seconds on an overloaded disk. If it takes longer and the bus loses the message, too, `maxKeptMs` limits the damage.
 */
const writeLimitMs = 5_000;

/**
 * The largest number of IDs of each kind that a poll reads. More change if two hundred backends end each second: then nothing is
 * confirmed, and entries in use are read again after a second.
 */
export const maxChanges = 1_000;

/** After a longer pause, a poll confirms no earlier entry, instead of reading everything that has ended since. */
const maxPauseMs = 60_000;

interface Deps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly lookup: Lookup;
}

/** When a successful poll began, by this machine's clock and by the store's. */
interface Poll {
  readonly startedMs: number;
  readonly storeTime: Date;
}

/** Polls until disposed. A poll reads only IDs from the indexes by time, and a limited number of them. */
export class MissedChanges implements AsyncDisposable {
  readonly #deps: Deps;
  readonly #polls: PeriodicTask;
  readonly #closing = new AbortController();
  /** The first poll since the last pause, and the latest one. */
  #first: Poll | undefined;
  #last: Poll | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#polls = new PeriodicTask(deps.clock, pollEveryMs, async () => await this.#pollOrLog());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A store that does not answer must not delay this.
    this.#closing.abort(new Error('The proxy closes'));
    await this.#polls[Symbol.asyncDispose]();
  }

  async #pollOrLog(): Promise<void> {
    if (this.#deps.lookup.isEmpty) return;
    try {
      await this.#poll();
    } catch (error) {
      this.#deps.log.debug({ err: error }, 'Cannot read changes that the bus may have lost');
    }
  }

  async #poll(): Promise<void> {
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
