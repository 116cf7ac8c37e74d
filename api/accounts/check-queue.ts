import { ApiError } from '../../model/api-error.ts';

/** When a client should retry after it found the queue full: a full queue takes about this long. */
const retryAfterSeconds = 5;

/**
 * Bounds how many checks of passwords wait in this process. Two run at a time, each on a core for 160 ms: without the bound, guesses
 * from many networks would delay the log-ins of all users.
 */
export class CheckQueue {
  #open = 0;

  /** Runs a check if fewer than `capacity` checks wait or run. Throws `TooManyRequests`, and what the check throws. */
  async run<Result>(capacity: number, check: () => Promise<Result>): Promise<Result> {
    if (this.#open >= capacity) {
      throw new ApiError('TooManyRequests', 'Too many users are logging in, try again', { retryAfterSeconds });
    }
    this.#open += 1;
    try {
      return await check();
    } finally {
      this.#open -= 1;
    }
  }
}
