/** The collector of a process: garbage collection and verification, on a schedule and when somebody asks. */
import type { Metrics } from '../../core/metrics/metrics.ts';
import { finishRemovals, hasBegunRemovals, removeCondemned } from './bytes.ts';
import { collect } from './collect.ts';
import type { CollectorDeps } from './collecting.ts';
import type { CollectionEvent, CollectionSummary, VerificationEvent } from './events.ts';
import { openCollectionMetrics } from './metrics.ts';
import type { CollectionMetrics } from './metrics.ts';
import { takeTurn } from './turn.ts';
import type { Turn } from './turn.ts';
import { verify } from './verify.ts';

export interface Collector extends AsyncDisposable {
  /**
   * Collects, telling what goes from each repository while it goes; the last event is the summary. A dry run tells what would
   * go and changes nothing. Throws `CollectorBusyError` if this is going on already, here or in another process.
   */
  collect(options: { readonly isDry: boolean }, signal: AbortSignal): AsyncGenerator<CollectionEvent, void, undefined>;
  /** Checks everything that is stored, and repairs what can be repaired if asked to. Throws as `collect`. */
  verify(
    options: { readonly repair: boolean },
    signal: AbortSignal,
  ): AsyncGenerator<VerificationEvent, void, undefined>;
  /** Finishes removals of bytes that a process had begun which is dead by now. Does nothing if it may be alive. */
  finishRemovals(): Promise<void>;
  /** Collects from now on, whenever it is time. */
  schedule(): void;
}

/** Collecting or repairing goes on already. */
export class CollectorBusyError extends Error {
  override readonly name = 'CollectorBusyError';

  constructor() {
    super('Another collection or repair is running, try again when it has ended');
  }
}

/** How many times within a period to look whether a collection is due: another process may have done it, or have died. */
const looksPerPeriod = 6;

/** Processes that were started together do not look together. */
const jitter = 0.2;

/** Opens a collector. Disposing it cuts what is under way and waits for it. */
export function openCollector(deps: CollectorDeps & { readonly metrics: Metrics }): Collector {
  return new OpenCollector(deps, openCollectionMetrics(deps.metrics));
}

class OpenCollector implements Collector {
  readonly #deps: CollectorDeps;
  readonly #metrics: CollectionMetrics;
  readonly #closing = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();
  #nextLook: Disposable | undefined;
  #removal: Disposable | undefined;
  #isScheduled = false;
  #hasTurn = false;

  constructor(deps: CollectorDeps, metrics: CollectionMetrics) {
    this.#deps = deps;
    this.#metrics = metrics;
  }

  async *collect(options: { readonly isDry: boolean }, signal: AbortSignal): AsyncGenerator<CollectionEvent, void> {
    using work = this.#enter(signal);
    if (options.isDry) {
      yield* collect(this.#deps, undefined, work.signal);
    } else {
      await using turn = await this.#requireTurn();
      yield* this.#collect(turn, work.signal);
    }
  }

  async *verify(options: { readonly repair: boolean }, signal: AbortSignal): AsyncGenerator<VerificationEvent, void> {
    using work = this.#enter(signal);
    if (options.repair) {
      await using turn = await this.#requireTurn();
      yield* verify(this.#deps, turn, work.signal);
    } else {
      yield* verify(this.#deps, undefined, work.signal);
    }
  }

  schedule(): void {
    this.#isScheduled = true;
    this.#lookLater();
    // What a crash has left half removed keeps pushes waiting.
    void this.finishRemovals();
  }

  async finishRemovals(): Promise<void> {
    await this.#run(async (signal) => {
      if (!(await hasBegunRemovals(this.#deps.store))) return;
      await using turn = await this.#takeTurn();
      if (turn) await finishRemovals(this.#deps, turn, signal);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#nextLook?.[Symbol.dispose]();
    this.#removal?.[Symbol.dispose]();
    this.#closing.abort(new Error('The collector closes'));
    await Promise.allSettled(this.#underWay);
    this.#metrics[Symbol.dispose]();
  }

  async *#collect(turn: Turn, signal: AbortSignal): AsyncGenerator<CollectionEvent, void, undefined> {
    let summary: CollectionSummary | undefined;
    try {
      for await (const event of collect(this.#deps, turn, signal)) {
        if (event.type === 'collected') summary = event;
        yield event;
      }
    } finally {
      if (!summary) this.#metrics.countFailure();
    }
    if (!summary) return;
    this.#metrics.count(summary, await this.#deps.store.now());
    this.#deps.log.info(summary, 'Garbage collected');
    if (summary.condemned.blobs > 0) this.#removeLater();
  }

  #lookLater(): void {
    const { clock, settings } = this.#deps;
    const delayMs = (settings.everyMs / looksPerPeriod) * (1 + jitter * (Math.random() - 0.5));
    this.#nextLook = clock.after(delayMs, () => {
      void this.#run(async (signal) => await this.#look(signal)).then(() => {
        if (!this.#closing.signal.aborted) this.#lookLater();
      });
    });
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { store, settings } = this.#deps;
    await using turn = await this.#takeTurn();
    if (!turn) return;
    const idleMs = (await store.now()).getTime() - (turn.lastFinishedAt?.getTime() ?? 0);
    if (idleMs < settings.everyMs) return;
    for await (const _event of this.#collect(turn, signal));
  }

  /** What was condemned need not wait for the next collection. */
  #removeLater(): void {
    const { clock, settings } = this.#deps;
    const isWorthIt = settings.removalWaitMs > 0 && settings.removalWaitMs < settings.everyMs;
    if (!this.#isScheduled || !isWorthIt || this.#closing.signal.aborted) return;
    this.#removal?.[Symbol.dispose]();
    // A store may tell the time a moment differently when it is asked again.
    this.#removal = clock.after(settings.removalWaitMs + 1_000, () => {
      void this.#run(async (signal) => await this.#removeDue(signal));
    });
  }

  async #removeDue(signal: AbortSignal): Promise<void> {
    await using turn = await this.#takeTurn();
    if (!turn) return;
    const removed = await removeCondemned({ ...this.#deps, turn }, AbortSignal.any([signal, turn.lost]));
    this.#metrics.countRemoved(removed);
    if (removed.blobs > 0) this.#deps.log.info({ removed }, 'Condemned blobs removed');
  }

  async #requireTurn(): Promise<Turn> {
    const turn = await this.#takeTurn();
    if (turn) return turn;
    throw new CollectorBusyError();
  }

  /** `undefined` if another process has it, or this one: it may have lost it without knowing yet. */
  async #takeTurn(): Promise<Turn | undefined> {
    if (this.#hasTurn) return undefined;
    this.#hasTurn = true;
    const turn = await takeTurn(this.#deps, () => (this.#hasTurn = false)).catch((error: unknown) => {
      this.#hasTurn = false;
      throw error;
    });
    if (!turn) this.#hasTurn = false;
    return turn;
  }

  /** What fails is told, and tried again when it is due the next time. */
  async #run(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    try {
      using entered = this.#enter(this.#closing.signal);
      await work(entered.signal);
    } catch (error) {
      if (!this.#closing.signal.aborted)
        this.#deps.log.warn({ err: error }, 'Garbage could not be collected, trying again later');
    }
  }

  /** Work that closing ends and waits for. */
  #enter(signal: AbortSignal): Disposable & { readonly signal: AbortSignal } {
    this.#closing.signal.throwIfAborted();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#underWay.add(promise);
    return {
      signal: AbortSignal.any([signal, this.#closing.signal]),
      [Symbol.dispose]: () => {
        this.#underWay.delete(promise);
        resolve();
      },
    };
  }
}
