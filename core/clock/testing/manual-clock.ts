import type { Clock } from '../clock.ts';

interface Timer {
  dueMs: number;
  periodMs: number | undefined;
  action: () => void;
}

/** A clock that moves only when a test moves it. */
export class ManualClock implements Clock {
  #nowMs: number;
  /** The difference between the time of day and the time of the timers. */
  #setByMs = 0;
  readonly #timers = new Set<Timer>();

  constructor(start: Date = new Date('2026-01-01T00:00:00.000Z')) {
    this.#nowMs = start.getTime();
  }

  now(): Date {
    return new Date(this.#nowMs + this.#setByMs);
  }

  after(delayMs: number, action: () => void): Disposable {
    return this.#add({ dueMs: this.#nowMs + delayMs, periodMs: undefined, action });
  }

  every(periodMs: number, action: () => void): Disposable {
    return this.#add({ dueMs: this.#nowMs + periodMs, periodMs, action });
  }

  async sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = this.after(delayMs, resolve);
    const onAbort = () => reject(signal?.reason as Error);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      await promise;
    } finally {
      timer[Symbol.dispose]();
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** Moves the time forward, runs due timers in order, and lets pending promises settle before and after each step. */
  async advance(byMs: number): Promise<void> {
    const endMs = this.#nowMs + byMs;
    await settle();
    for (let timer = this.#nextUntil(endMs); timer; timer = this.#nextUntil(endMs)) {
      this.#nowMs = timer.dueMs;
      if (timer.periodMs === undefined) this.#timers.delete(timer);
      else timer.dueMs += timer.periodMs;
      timer.action();
      await settle();
    }
    this.#nowMs = endMs;
    await settle();
  }

  /** Changes the time of day, as when an administrator corrects a clock. Timers are not affected. */
  set(byMs: number): void {
    this.#setByMs += byMs;
  }

  /** Moves the time forward while the process is frozen: overdue timers run once at the end, as with `setInterval`. */
  async freeze(forMs: number): Promise<void> {
    this.#nowMs += forMs;
    const overdue = [...this.#timers].filter(({ dueMs }) => dueMs < this.#nowMs);
    for (const timer of overdue.toSorted((one, other) => one.dueMs - other.dueMs)) {
      this.#timers.delete(timer);
      this.#timers.add(Object.assign(timer, { dueMs: this.#nowMs }));
    }
    await this.advance(0);
  }

  #add(timer: Timer): Disposable {
    this.#timers.add(timer);
    return { [Symbol.dispose]: () => void this.#timers.delete(timer) };
  }

  #nextUntil(endMs: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueMs <= endMs && (!next || timer.dueMs < next.dueMs)) next = timer;
    }
    return next;
  }
}

async function settle(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
