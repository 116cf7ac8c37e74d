/** Connections to backends that are kept open between requests, a pool for each backend. */
import { Agent } from 'node:http';
import type { Clock } from '../../core/clock/clock.ts';

/** Shorter than what servers grant (gunicorn 2 s, Node 5 s), so that they seldom close a connection under a request. */
export const idleMs = 1_500;

/** A burst leaves this many connections behind at most; more would only wait for their end. */
const maxIdle = 64;

/** What a container sent last may still be on its way when its end is known; then its connections lead nowhere. */
export const endedGraceMs = 5_000;

/** A pool without a connection costs a few hundred bytes: once a minute is often enough to let go of them. */
const sweepMs = 60_000;

export class Pools implements Disposable {
  readonly #clock: Clock;
  readonly #agents = new Map<string, Agent>();
  readonly #ending = new Set<Agent>();
  readonly #sweep: Disposable;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sweep = clock.every(sweepMs, () => this.#forgetEmpty());
  }

  /** The pool of a backend. */
  of(backend: string): Agent {
    let agent = this.#agents.get(backend);
    if (!agent) {
      agent = new Agent({ keepAlive: true, timeout: idleMs, maxFreeSockets: maxIdle });
      this.#agents.set(backend, agent);
    }
    return agent;
  }

  /** A backend has ended: its idle connections are closed now, and those in use when they had time to end by themselves. */
  drop(backend: string): void {
    const agent = this.#agents.get(backend);
    if (!agent) return;
    this.#agents.delete(backend);
    this.#ending.add(agent);
    for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
    this.#clock.after(endedGraceMs, () => {
      agent.destroy();
      this.#ending.delete(agent);
    });
  }

  [Symbol.dispose](): void {
    this.#sweep[Symbol.dispose]();
    for (const agent of [...this.#agents.values(), ...this.#ending]) agent.destroy();
    this.#agents.clear();
    this.#ending.clear();
  }

  #forgetEmpty(): void {
    for (const [backend, agent] of this.#agents) {
      const inUse = [agent.sockets, agent.freeSockets, agent.requests].some((each) => Object.keys(each).length > 0);
      if (!inUse) this.#agents.delete(backend);
    }
  }
}
