import type { Clock } from '../core/clock/clock.ts';
import { renewEveryMs } from '../model/key.ts';
import type { Key } from '../model/key.ts';
import { SeenUnchanged } from './seen-unchanged.ts';

/** Between two looks at a key whose lease is over: a request that waits for a renewal notices it as soon as a person would. */
const pauseMs = 500;

/** A holder that lives renews within its period, also when it stood still and its first attempt failed. */
const looksAtLostKey = (renewEveryMs + 5_000) / pauseMs;

/**
 * The waiting of one request for the renewal of a key whose lease is over. The holder may live all the same: it, or this process,
 * may have stood still, or the store's clock may have been set. It counts looks at equal intervals, so a message must not cause one.
 */
export class LapseWait {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #seen = new SeenUnchanged();

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
  }

  /**
   * Whether the holder of a key has been watched for as long as a renewal may take, and is lost. If not, waits a little before the
   * next look. Throws the signal's reason when it aborts.
   */
  async isLost({ id, leaseUntil }: Key): Promise<boolean> {
    this.#seen.look([{ id, state: leaseUntil.getTime() }]);
    if (this.#seen.looksAt(id) > looksAtLostKey) return true;
    await this.#clock.sleep(pauseMs, this.#signal);
    return false;
  }
}
