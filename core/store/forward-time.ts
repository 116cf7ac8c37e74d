import type { LocalClocks } from './local-clocks.ts';

/**
 * The time of day of this machine, made fit for leases: it never runs backwards. While the machine's clock is behind what was
 * answered before, since it was set back, it runs at half speed until they meet: leases of the dead still end.
 *
 * A clock that is set forward is followed at once, so that what is written has the right time. That ends no lease wrongly: a
 * lease is judged by what was watched for a while, and its holder renews within that while.
 */
export class ForwardTime {
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
