/** Keeps connections to backends open between requests, in a pool for each backend. */
import type { Clock } from '../../core/clock/clock.ts';
import { BackendAgent } from './backend-agent.ts';
import type { Dialer, Dialled } from './dial.ts';

/** Shorter than the keep-alive time of servers (gunicorn 2 s, Node 5 s), so that they seldom close a connection during a request. */
export const idleMs = 1_500;

/**
 * The largest number of idle connections to one backend. Up to this many concurrent clients need no new connection for each request,
 * which would cost ten times the request. Each takes 3 KB, for at most `idleMs` after a burst.
 */
export const maxIdle = 1_024;

/** The last bytes of a container may arrive after the message that it has ended, but not later than this. */
export const endedGraceMs = 5_000;

/** A pool without a connection takes a few hundred bytes, so deleting them once a minute is enough. */
const sweepMs = 60_000;

/** The connections to one backend. */
interface Pool {
  readonly kept: BackendAgent;
  /** For requests that must not use a connection that was used before. */
  readonly fresh: BackendAgent;
}

export class Pools implements Disposable {
  readonly #clock: Clock;
  readonly #dialer: Dialer;
  readonly #pools = new Map<string, Pool>();
  readonly #ending = new Set<Pool>();
  readonly #sweep: Disposable;

  constructor({ clock, dialer }: { readonly clock: Clock; readonly dialer: Dialer }) {
    this.#clock = clock;
    this.#dialer = dialer;
    this.#sweep = clock.every(sweepMs, () => this.#deleteEmpty());
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

  /** Closes the connections of a backend that has ended: idle ones at once, others after a grace period. */
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
    const dial = (signal: AbortSignal) => this.#dialer.dial({ backend, address }, signal);
    return {
      kept: new BackendAgent({ keepAlive: true, timeout: idleMs, maxFreeSockets: maxIdle }, dial),
      fresh: new BackendAgent({ keepAlive: false }, dial),
    };
  }

  #deleteEmpty(): void {
    for (const [backend, { kept, fresh }] of this.#pools) {
      if (!kept.isInUse && !fresh.isInUse) this.#pools.delete(backend);
    }
  }
}

function close({ kept, fresh }: Pool): void {
  kept.destroy();
  fresh.destroy();
}
