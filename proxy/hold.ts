/** Holds requests until their backend is ready. */
import { ChangeListeners } from '../core/async/change-listeners.ts';
import type { Clock } from '../core/clock/clock.ts';
import { ProxyError, goneError } from './errors.ts';
import type { Address, BackendLocation, Lookup } from './lookup.ts';

/** If the bus loses a message, a held request notices the change this much later. All requests to a backend share the read. */
export const holdPollMs = 1_000;

/** How many requests are held, and for how long. */
export interface HoldLimits {
  readonly ms: number;
  readonly requests: number;
}

/** The largest number of requests that wait for one backend, so that a backend that does not start leaves capacity for others. */
export const maxHeldPerBackend = 1_000;

/** A request that is held. */
export interface Hold {
  /** When its backend was created. */
  readonly createdAt: Date;
  /** Ends the hold. */
  readonly signal: AbortSignal;
  /** How long it is held, if shorter than `HoldLimits.ms`. */
  readonly limitMs?: number | undefined;
  /** Called each time the location of the backend was read. */
  readonly onFound: (location: BackendLocation) => void;
}

/** The requests that wait for their backend. */
export class Holds {
  readonly #lookup: Lookup;
  readonly #clock: Clock;
  readonly #startTimeoutMs: number;
  readonly #limits: HoldLimits;
  readonly #changes: ChangeListeners;
  /** How many requests wait for each backend. */
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(deps: { lookup: Lookup; clock: Clock; startTimeoutMs: number; limits: HoldLimits }) {
    this.#lookup = deps.lookup;
    this.#clock = deps.clock;
    this.#startTimeoutMs = deps.startTimeoutMs;
    this.#limits = deps.limits;
    this.#changes = new ChangeListeners(deps.clock);
  }

  /**
   * Waits until a backend is reachable, and returns its address. Requests to a backend continue in order of arrival. Throws `starting`
   * if the request reaches its hold limit or too many requests wait, `not-ready` if the backend reaches its start timeout, `gone`,
   * `unavailable`, or the signal's reason.
   */
  async untilReachable(backend: string, hold: Hold): Promise<Address> {
    const held = this.#held.get(backend) ?? 0;
    if (held >= maxHeldPerBackend || this.#total >= this.#limits.requests) throw new ProxyError('starting');
    this.#add(backend, 1);
    try {
      return await this.#wait(backend, hold);
    } finally {
      this.#add(backend, -1);
    }
  }

  async #wait(backend: string, { createdAt, signal, onFound, limitMs = Infinity }: Hold): Promise<Address> {
    const now = this.#clock.now().getTime();
    // Another machine set the time of creation. If its clock is ahead, the wait is still no longer than a whole start.
    const startedByMs = Math.min(createdAt.getTime(), now) + this.#startTimeoutMs;
    const heldUntilMs = now + Math.min(this.#limits.ms, limitMs);
    using change = this.#changes.listen(backend);
    for (;;) {
      signal.throwIfAborted();
      const found = await this.#lookup.refresh(backend);
      onFound(found);
      if (found.state === 'reachable') return found.address;
      if (found.state === 'gone') throw goneError(found.wasReady);
      const nowMs = this.#clock.now().getTime();
      if (nowMs >= startedByMs) throw new ProxyError('not-ready');
      if (nowMs >= heldUntilMs) throw new ProxyError('starting');
      await change.next(Math.min(startedByMs - nowMs, heldUntilMs - nowMs, holdPollMs), signal);
    }
  }

  #add(backend: string, change: number): void {
    this.#total += change;
    const held = (this.#held.get(backend) ?? 0) + change;
    if (held > 0) this.#held.set(backend, held);
    else this.#held.delete(backend);
  }

  /** Makes all requests that wait for a backend read its location again. */
  wake(backend: string): void {
    this.#changes.notify(backend);
  }
}
