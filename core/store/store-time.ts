/** The clocks of this machine. */
export interface LocalClocks {
  /** Milliseconds since an arbitrary moment; not affected when the clock is set. */
  steadyMs(): number;
  wallMs(): number;
}

export const ownClocks: LocalClocks = { steadyMs: () => performance.now(), wallMs: () => Date.now() };

/**
 * The time of day of this machine, which never goes back, as leases need. After the machine's clock was set back, this time runs at
 * half speed until the clock has caught up, so that leases of dead holders still expire.
 *
 * When the clock is set forward, this time follows at once, so that documents have the right time. That ends no lease wrongly: a
 * lease counts as lost only after it was watched for as long as it lasts, and its holder renews it within that time.
 */
export class MonotonicTime {
  readonly #clocks: LocalClocks;
  #lastMs: number;
  #lastSteadyMs: number;

  constructor(clocks: LocalClocks) {
    this.#clocks = clocks;
    this.#lastMs = clocks.wallMs();
    this.#lastSteadyMs = clocks.steadyMs();
  }

  now(): Date {
    const steadyMs = this.#clocks.steadyMs();
    const slowMs = this.#lastMs + (steadyMs - this.#lastSteadyMs) / 2;
    const wallMs = this.#clocks.wallMs();
    this.#lastMs = wallMs >= this.#lastMs ? wallMs : slowMs;
    this.#lastSteadyMs = steadyMs;
    return new Date(Math.floor(this.#lastMs));
  }
}

/** How long a measurement is valid. With a large drift of 500 ppm, clocks are 2.5 ms apart after this time. */
const freshMs = 5_000;

/** A measurement that took longer is too inexact to be used more than once. */
const sharpRoundTripMs = 200;

/** The steady clock stops while a machine sleeps: a larger difference to the wall clock shows that. */
const sleptMs = 1_000;

interface Measurement {
  readonly serverMs: number;
  readonly steadyMs: number;
  readonly wallMs: number;
  readonly roundTripMs: number;
}

/**
 * The time of a server, computed from this machine's steady clock and compared with the server every few seconds of use. Its error
 * is at most half a round trip (100 ms, usually under 1 ms), plus 1 ms for the server's resolution and 2.5 ms for drift. It may go
 * back by that error after a comparison, or when another server becomes the primary.
 */
export class ServerTime {
  readonly #read: () => Promise<Date>;
  readonly #clocks: LocalClocks;
  #last: Measurement | undefined;
  #measuring: Promise<Measurement> | undefined;

  /** @param read - reads the time of the server */
  constructor(read: () => Promise<Date>, clocks: LocalClocks = ownClocks) {
    this.#read = read;
    this.#clocks = clocks;
  }

  /** Rejects as `read` does, if there is no valid measurement. */
  async now(): Promise<Date> {
    const measured = this.#last && this.#isFresh(this.#last) ? this.#last : await this.#measureOnce();
    return new Date(Math.round(measured.serverMs + this.#clocks.steadyMs() - measured.steadyMs));
  }

  #isFresh({ steadyMs, wallMs, roundTripMs }: Measurement): boolean {
    const steadyAge = this.#clocks.steadyMs() - steadyMs;
    const wallAge = this.#clocks.wallMs() - wallMs;
    return steadyAge < freshMs && roundTripMs <= sharpRoundTripMs && Math.abs(wallAge - steadyAge) < sleptMs;
  }

  /** Concurrent callers share one measurement. */
  async #measureOnce(): Promise<Measurement> {
    this.#measuring ??= this.#measure().finally(() => (this.#measuring = undefined));
    return await this.#measuring;
  }

  async #measure(): Promise<Measurement> {
    const before = this.#clocks.steadyMs();
    const server = await this.#read();
    const roundTripMs = this.#clocks.steadyMs() - before;
    const steadyMs = before + roundTripMs / 2;
    this.#last = { serverMs: server.getTime(), steadyMs, wallMs: this.#clocks.wallMs() - roundTripMs / 2, roundTripMs };
    return this.#last;
  }
}
