/** The clocks of this process. */
export interface LocalClocks {
  /** Milliseconds from some moment on, which no one sets. */
  steadyMs(): number;
  wallMs(): number;
}

export const ownClocks: LocalClocks = { steadyMs: () => performance.now(), wallMs: () => Date.now() };

/**
 * The time of day of this machine, made fit for leases: it never runs backwards. While the machine's clock is behind what was
 * answered before, since it was set back, it runs at half speed until they meet: leases of the dead still end.
 *
 * A clock that is set forward is followed at once, so that what is written has the right time. That ends no lease wrongly: a
 * lease is judged by what was watched for a while, and its holder renews within that while.
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

/** How long a measurement serves. Clocks that drift by 500 ppm, which is a lot, are 2.5 ms apart by then. */
const freshMs = 5_000;

/** A measurement that took longer is too blurred to serve more than once. */
const sharpRoundTripMs = 200;

/** A machine that slept has a steady clock that stood still meanwhile; its wall clock gives that away. */
const sleptMs = 1_000;

interface Measurement {
  readonly serverMs: number;
  readonly steadyMs: number;
  readonly wallMs: number;
  readonly roundTripMs: number;
}

/**
 * Knows a server's time from its own steady clock, compared with the server's every few seconds of use. It is off by half a
 * round trip at most (100 ms, usually under 1), plus 1 ms for the server's resolution and 2.5 ms for drift. So it may go
 * back by as much when it is compared again, or when another server takes over as primary.
 */
export class ServerTime {
  readonly #ask: () => Promise<Date>;
  readonly #clocks: LocalClocks;
  #last: Measurement | undefined;
  #measuring: Promise<Measurement> | undefined;

  /** `ask` gets the time from the server. */
  constructor(ask: () => Promise<Date>, clocks: LocalClocks = ownClocks) {
    this.#ask = ask;
    this.#clocks = clocks;
  }

  /** Rejects as `ask` does, if there is no measurement to go by. */
  async now(): Promise<Date> {
    const measured = this.#last && this.#isFresh(this.#last) ? this.#last : await this.#measureOnce();
    return new Date(Math.round(measured.serverMs + this.#clocks.steadyMs() - measured.steadyMs));
  }

  #isFresh({ steadyMs, wallMs, roundTripMs }: Measurement): boolean {
    const steadyAge = this.#clocks.steadyMs() - steadyMs;
    const wallAge = this.#clocks.wallMs() - wallMs;
    return steadyAge < freshMs && roundTripMs <= sharpRoundTripMs && Math.abs(wallAge - steadyAge) < sleptMs;
  }

  /** Those who ask at the same time share one measurement. */
  async #measureOnce(): Promise<Measurement> {
    this.#measuring ??= this.#measure().finally(() => (this.#measuring = undefined));
    return await this.#measuring;
  }

  async #measure(): Promise<Measurement> {
    const before = this.#clocks.steadyMs();
    const server = await this.#ask();
    const roundTripMs = this.#clocks.steadyMs() - before;
    const steadyMs = before + roundTripMs / 2;
    this.#last = { serverMs: server.getTime(), steadyMs, wallMs: this.#clocks.wallMs() - roundTripMs / 2, roundTripMs };
    return this.#last;
  }
}
