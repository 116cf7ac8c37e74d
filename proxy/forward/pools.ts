/** Connections to backends that are kept open between requests, a pool for each backend. */
import type { Clock } from '../../core/clock/clock.ts';
import { BackendAgent } from './backend-agent.ts';
import type { Dialer, Dialled } from './dial.ts';

/** Shorter than what servers grant (gunicorn 2 s, Node 5 s), so that they seldom close a connection under a request. */
export const idleMs = 1_500;

/** A burst leaves this many connections behind at most; more would only wait for their end. */
const maxIdle = 64;

/** What a container sent last may still be on its way when its end is known; then its connections lead nowhere. */
export const endedGraceMs = 5_000;

/** A pool without a connection costs a few hundred bytes: once a minute is often enough to let go of them. */
const sweepMs = 60_000;

/** The connections to one backend. */
interface Pool {
  readonly kept: BackendAgent;
  /** For requests that must not be given a connection that was used before. */
  readonly fresh: BackendAgent;
}

export class Pools implements Disposable {
  readonly #clock: Clock;
  readonly #dialer: Dialer;
  readonly #pools = new Map<string, Pool>();
  readonly #ending = new Set<Pool>();
  readonly #sweep: Disposable;

  constructor({ clock, dialer }: { clock: Clock; dialer: Dialer }) {
    this.#clock = clock;
    this.#dialer = dialer;
    this.#sweep = clock.every(sweepMs, () => this.#forgetEmpty());
  }

  /** The pool of a backend. */
  of(to: Dialled): Pool {
    let pool = this.#pools.get(to.backend);
    if (!pool) {
      pool = this.#open(to);
      this.#pools.set(to.backend, pool);
    }
    return pool;
  }

  /** A backend has ended: its idle connections are closed now, and those in use when they had time to end by themselves. */
  drop(backend: string): void {
    const pool = this.#pools.get(backend);
    if (!pool) return;
    this.#pools.delete(backend);
    this.#ending.add(pool);
    pool.kept.closeIdle();
    this.#clock.after(endedGraceMs, () => {
      close(pool);
      this.#ending.delete(pool);
    });
  }

  [Symbol.dispose](): void {
    this.#sweep[Symbol.dispose]();
    for (const pool of [...this.#pools.values(), ...this.#ending]) close(pool);
    this.#pools.clear();
    this.#ending.clear();
  }

  #open({ backend, address }: Dialled): Pool {
    const dialer = this.#dialer;
    const dial = dialer.isStraight(address)
      ? undefined
      : (signal: AbortSignal) => dialer.dial({ backend, address }, signal);
    return {
      kept: new BackendAgent({ keepAlive: true, timeout: idleMs, maxFreeSockets: maxIdle }, dial),
      fresh: new BackendAgent({ keepAlive: false }, dial),
    };
  }

  #forgetEmpty(): void {
    for (const [backend, { kept, fresh }] of this.#pools) {
      if (!kept.isInUse && !fresh.isInUse) this.#pools.delete(backend);
    }
  }
}

function close({ kept, fresh }: Pool): void {
  kept.destroy();
  fresh.destroy();
}
