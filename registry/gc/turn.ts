/** Collecting is done by one process at a time: whoever has the turn, which a silent holder loses. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import { upsert } from '../../core/store/upsert.ts';
import { collectorTurns } from '../content/documents.ts';

interface Parts {
  readonly store: Store;
  readonly clock: Clock;
}

export interface Turn extends AsyncDisposable {
  /** No two turns have the same. */
  readonly holder: string;
  /** Aborts when the turn is lost. */
  readonly lost: AbortSignal;
  /** When a collection last came to its end, as this one began. */
  readonly lastFinishedAt: Date | undefined;
  /** To be called before anything that nobody else may do at the same time, and that takes seconds at most. */
  prove(): Promise<void>;
  /** Notes that a collection has come to its end. */
  finish(): Promise<void>;
}

const turnId = 'collector';

/** Short enough that whoever waits for what a dead process left does not wait long; three renewals may fail. */
const turnMs = 15_000;
const renewEveryMs = 4_000;

/** What is left of a turn when it is proven: longer than a store takes that is slow but not down. */
const marginMs = 8_000;

/** Takes the turn, until disposed, which calls `onEnd`. `undefined` if another process has it. */
export async function takeTurn(parts: Parts, onEnd: () => void): Promise<Turn | undefined> {
  const holder = randomUUID();
  const askedAtMs = performance.now();
  const now = await parts.store.now();
  const until = new Date(now.getTime() + turnMs);
  const taken = await upsert(parts.store, collectorTurns, turnId, (current) => {
    if (current && current.until > now && current.holder !== holder) return current;
    return { ...current, id: turnId, holder, until };
  });
  if (taken.holder !== holder) return undefined;
  return new HeldTurn(parts, { holder, askedAtMs, lastFinishedAt: taken.finishedAt, onEnd });
}

interface Held {
  readonly holder: string;
  readonly askedAtMs: number;
  readonly lastFinishedAt: Date | undefined;
  readonly onEnd: () => void;
}

class HeldTurn implements Turn {
  readonly holder: string;
  readonly lastFinishedAt: Date | undefined;
  readonly #store: Store;
  readonly #onEnd: () => void;
  readonly #lost = new AbortController();
  readonly #timer: Disposable;
  #provenAtMs: number;
  #renewal: Promise<void> | undefined;

  constructor({ store, clock }: Parts, { holder, askedAtMs, lastFinishedAt, onEnd }: Held) {
    this.lastFinishedAt = lastFinishedAt;
    this.#store = store;
    this.holder = holder;
    this.#onEnd = onEnd;
    this.#provenAtMs = askedAtMs;
    // What fails is tried again, until it is too late and `prove` says so.
    this.#timer = clock.every(renewEveryMs, () => void this.#renewOnce().catch(() => {}));
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  async prove(): Promise<void> {
    this.#lost.signal.throwIfAborted();
    if (performance.now() - this.#provenAtMs > turnMs - marginMs) await this.#renewOnce();
  }

  async finish(): Promise<void> {
    const finishedAt = await this.#store.now();
    await this.#change({ finishedAt });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer[Symbol.dispose]();
    await this.#renewal?.catch(() => {});
    // If this fails, the turn runs out.
    await this.#change({ until: new Date(0) }).catch(() => {});
    this.#onEnd();
  }

  async #renewOnce(): Promise<void> {
    this.#renewal ??= this.#renew().finally(() => (this.#renewal = undefined));
    await this.#renewal;
  }

  async #renew(): Promise<void> {
    const askedAtMs = performance.now();
    const now = await this.#store.now();
    await this.#change({ until: new Date(now.getTime() + turnMs) });
    this.#provenAtMs = askedAtMs;
  }

  async #change(change: { readonly until?: Date; readonly finishedAt?: Date }): Promise<void> {
    const turn = await this.#store.update(collectorTurns, turnId, (current) =>
      current.holder === this.holder ? { ...current, ...change } : current,
    );
    if (turn?.holder === this.holder) return;
    this.#lost.abort(new Error('Another process collects by now'));
    this.#lost.signal.throwIfAborted();
  }
}
