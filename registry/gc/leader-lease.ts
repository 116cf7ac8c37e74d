/**
 * Garbage collection and repair run in one process at a time: the holder of the leader lease. A holder that stops renewing the
 * lease loses it.
 */
import { randomUUID } from 'node:crypto';
import { PeriodicTask } from '../../core/async/periodic-task.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import { upsert } from '../../core/store/upsert.ts';
import { leaderLeases } from '../content/documents.ts';

interface Parts {
  readonly store: Store;
  readonly clock: Clock;
}

/** The lease is a single document. */
const leaseId = 'collector';

/** Short, because pushes wait for removals that a dead holder has left; three renewals may fail. */
const leaseMs = 15_000;
const renewEveryMs = 4_000;

/** How much of the lease remains once it is confirmed: more than a slow store needs for an answer. */
const marginMs = 8_000;

/**
 * Acquires the lease until it is disposed. Returns `undefined` if another holder has it. Calls `onEnd` when the lease is
 * disposed or was not acquired.
 */
export async function acquireLeaderLease(parts: Parts, onEnd: () => void): Promise<LeaderLease | undefined> {
  using ending = new DisposableStack();
  ending.defer(onEnd);
  const holder = randomUUID();
  const askedAtMs = performance.now();
  const now = await parts.store.now();
  const until = new Date(now.getTime() + leaseMs);
  const stored = await upsert(parts.store, leaderLeases, leaseId, (current) => {
    if (current && current.until > now && current.holder !== holder) return current;
    return { ...current, id: leaseId, holder, until };
  });
  if (stored.holder !== holder) return undefined;
  return new LeaderLease(parts, { holder, askedAtMs, lastFinishedAt: stored.finishedAt, ending: ending.move() });
}

interface Acquired {
  readonly holder: string;
  readonly askedAtMs: number;
  readonly lastFinishedAt: Date | undefined;
  readonly ending: Disposable;
}

export class LeaderLease implements AsyncDisposable {
  /** Unique to this lease. */
  readonly holder: string;
  /** When garbage collection last completed before this lease. */
  readonly lastFinishedAt: Date | undefined;
  readonly #store: Store;
  readonly #ending: Disposable;
  readonly #lost = new AbortController();
  readonly #renewal: PeriodicTask;
  #confirmedAtMs: number;

  constructor({ store, clock }: Parts, { holder, askedAtMs, lastFinishedAt, ending }: Acquired) {
    this.holder = holder;
    this.lastFinishedAt = lastFinishedAt;
    this.#store = store;
    this.#ending = ending;
    this.#confirmedAtMs = askedAtMs;
    // A renewal that fails is retried, until it is too late and `confirm` throws.
    this.#renewal = new PeriodicTask(clock, renewEveryMs, async () => await this.#renew());
  }

  /** Aborts when another process has acquired the lease. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Throws if the lease is lost. Called before each step that only the holder may do and that takes seconds at most. */
  async confirm(): Promise<void> {
    this.#lost.signal.throwIfAborted();
    if (performance.now() - this.#confirmedAtMs > leaseMs - marginMs) await this.#renewal.run();
  }

  /** Records that a garbage collection has completed. */
  async finish(): Promise<void> {
    const finishedAt = await this.#store.now();
    await this.#change({ finishedAt });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#renewal[Symbol.asyncDispose]();
    // If this write fails, the lease expires.
    await this.#change({ until: new Date(0) }).catch(() => {});
    this.#ending[Symbol.dispose]();
  }

  async #renew(): Promise<void> {
    const askedAtMs = performance.now();
    const now = await this.#store.now();
    await this.#change({ until: new Date(now.getTime() + leaseMs) });
    this.#confirmedAtMs = askedAtMs;
  }

  async #change(change: { readonly until?: Date; readonly finishedAt?: Date }): Promise<void> {
    const stored = await this.#store.update(leaderLeases, leaseId, (current) =>
      current.holder === this.holder ? { ...current, ...change } : current,
    );
    if (stored?.holder === this.holder) return;
    this.#lost.abort(new Error('Another process has acquired the lease of garbage collection'));
    this.#lost.signal.throwIfAborted();
  }
}
