/** The garbage collector of a process: runs garbage collection and verification, on a schedule and on request. */
import type { Metrics } from '../../core/metrics/metrics.ts';
import { collect } from './collect.ts';
import type { GcEvent, GcSummary, VerificationEvent } from './events.ts';
import type { GcDeps } from './gc-run.ts';
import { acquireLeaderLease } from './leader-lease.ts';
import type { LeaderLease } from './leader-lease.ts';
import { openGcMetrics } from './metrics.ts';
import type { GcMetrics } from './metrics.ts';
import { finishRemovals, removeMarked, unfinishedRemovals } from './sweep-blobs.ts';
import { verify } from './verify.ts';

/** Thrown when a garbage collection or a repair is already running. */
export class GcBusyError extends Error {
  override readonly name = 'GcBusyError';

  constructor() {
    super('Another garbage collection or repair is running, try again when it has ended');
  }
}

/** How many times per period to check whether a run is due: another process may have run, or may have died. */
const checksPerPeriod = 6;

/** Keeps processes that were started together from checking at the same time. */
const jitter = 0.2;

/** Disposing it cancels the work in progress and waits for it. */
export class GarbageCollector implements AsyncDisposable {
  readonly #deps: GcDeps;
  readonly #metrics: GcMetrics;
  readonly #closing = new AbortController();
  readonly #inProgress = new Set<Promise<unknown>>();
  #nextCheck: Disposable | undefined;
  #removal: Disposable | undefined;
  #isScheduled = false;
  #isLeader = false;

  constructor(deps: GcDeps & { readonly metrics: Metrics }) {
    this.#deps = deps;
    this.#metrics = openGcMetrics(deps.metrics);
  }

  /**
   * Collects garbage and reports what is deleted from each repository; the last event is the summary. A dry run reports what
   * would be deleted and changes nothing. Throws `GcBusyError` if this process or another one is already collecting.
   */
  async *collect({ isDry }: { readonly isDry: boolean }, signal: AbortSignal): AsyncGenerator<GcEvent, void> {
    using work = this.#begin(signal);
    if (isDry) {
      yield* collect(this.#deps, undefined, work.signal);
      return;
    }
    await using lease = await this.#requireLease();
    yield* this.#collect(lease, work.signal);
  }

  /** Verifies everything that is stored, and repairs what can be repaired if requested. Throws as `collect`. */
  async *verify(
    { repair }: { readonly repair: boolean },
    signal: AbortSignal,
  ): AsyncGenerator<VerificationEvent, void> {
    using work = this.#begin(signal);
    await using lease = repair ? await this.#requireLease() : undefined;
    yield* verify(this.#deps, lease, work.signal);
  }

  /** Collects garbage whenever it is due, from now on. */
  schedule(): void {
    this.#isScheduled = true;
    this.#scheduleCheck();
    // Removals that a crash has interrupted keep pushes waiting.
    void this.finishRemovals();
  }

  /** Finishes removals of bytes that a dead process began. Does nothing if that process may be alive. */
  async finishRemovals(): Promise<void> {
    await this.#runInBackground(async (signal) => {
      if ((await unfinishedRemovals(this.#deps.store)).length === 0) return;
      await using lease = await this.#acquireLease();
      if (lease) await finishRemovals({ ...this.#deps, lease, signal });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#nextCheck?.[Symbol.dispose]();
    this.#removal?.[Symbol.dispose]();
    this.#closing.abort(new Error('The garbage collector closes'));
    await Promise.allSettled(this.#inProgress);
    this.#metrics[Symbol.dispose]();
  }

  async *#collect(lease: LeaderLease, signal: AbortSignal): AsyncGenerator<GcEvent, void, undefined> {
    let summary: GcSummary | undefined;
    try {
      for await (const event of collect(this.#deps, lease, signal)) {
        if (event.type === 'collected') summary = event;
        yield event;
      }
    } finally {
      if (!summary) this.#metrics.countFailure();
    }
    if (!summary) return;
    this.#metrics.count(summary, await this.#deps.store.now());
    this.#deps.log.info(summary, 'Garbage collected');
    if (summary.marked.blobs > 0) this.#scheduleRemoval();
  }

  #scheduleCheck(): void {
    const { clock, gc } = this.#deps;
    const delayMs = (gc.everyMs / checksPerPeriod) * (1 + jitter * (Math.random() - 0.5));
    this.#nextCheck = clock.after(delayMs, () => {
      void this.#runInBackground(async (signal) => await this.#collectIfDue(signal)).then(() => {
        if (!this.#closing.signal.aborted) this.#scheduleCheck();
      });
    });
  }

  async #collectIfDue(signal: AbortSignal): Promise<void> {
    const { store, gc } = this.#deps;
    await using lease = await this.#acquireLease();
    if (!lease) return;
    const idleMs = (await store.now()).getTime() - (lease.lastFinishedAt?.getTime() ?? 0);
    if (idleMs < gc.everyMs) return;
    for await (const _event of this.#collect(lease, signal));
  }

  /** Removes marked bytes as soon as their wait has ended, before the next garbage collection. */
  #scheduleRemoval(): void {
    const { clock, gc } = this.#deps;
    const isSooner = gc.removalWaitMs > 0 && gc.removalWaitMs < gc.everyMs;
    if (!this.#isScheduled || !isSooner || this.#closing.signal.aborted) return;
    this.#removal?.[Symbol.dispose]();
    // The times that a store returns may differ by a moment.
    this.#removal = clock.after(gc.removalWaitMs + 1_000, () => {
      void this.#runInBackground(async (signal) => await this.#removeMarked(signal));
    });
  }

  async #removeMarked(signal: AbortSignal): Promise<void> {
    await using lease = await this.#acquireLease();
    if (!lease) return;
    const removed = await removeMarked({ ...this.#deps, lease, signal: AbortSignal.any([signal, lease.lost]) });
    this.#metrics.countRemoved(removed);
    if (removed.blobs > 0) this.#deps.log.info({ removed }, 'Marked blobs removed');
  }

  async #requireLease(): Promise<LeaderLease> {
    const lease = await this.#acquireLease();
    if (lease) return lease;
    throw new GcBusyError();
  }

  /** Returns `undefined` if another process has the lease, or this one: it may have lost it without having noticed. */
  async #acquireLease(): Promise<LeaderLease | undefined> {
    if (this.#isLeader) return undefined;
    this.#isLeader = true;
    return await acquireLeaderLease(this.#deps, () => (this.#isLeader = false));
  }

  /** Logs errors: the work is retried when it is next due. */
  async #runInBackground(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    try {
      using begun = this.#begin(this.#closing.signal);
      await work(begun.signal);
    } catch (error) {
      if (!this.#closing.signal.aborted)
        this.#deps.log.warn({ err: error }, 'Work of the garbage collector failed, it is retried when it is next due');
    }
  }

  /** Registers work that closing cancels and waits for. */
  #begin(signal: AbortSignal): Disposable & { readonly signal: AbortSignal } {
    this.#closing.signal.throwIfAborted();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#inProgress.add(promise);
    return {
      signal: AbortSignal.any([signal, this.#closing.signal]),
      [Symbol.dispose]: () => {
        this.#inProgress.delete(promise);
        resolve();
      },
    };
  }
}
