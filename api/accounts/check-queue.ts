import { ApiError } from '../../model/api-error.ts';

/** When a check that finds no room should be tried again: about as long as a full queue takes. */
const retryAfterSeconds = 5;

/**
 * Bounds how many checks of passwords wait in this process. Two run at a time, each on a core for 160 ms: more guesses than that would
 * make all users wait, however many networks they come from.
 */
export class CheckQueue {
  #open = 0;

  /** Runs a check if fewer than `room` wait or run. Throws `TooManyRequests`, and what the check throws. */
  async run<Result>(room: number, check: () => Promise<Result>): Promise<Result> {
    if (this.#open >= room) {
      throw new ApiError('TooManyRequests', 'Too many users log in at this moment, try again', { retryAfterSeconds });
    }
    this.#open += 1;
    try {
      return await check();
    } finally {
      this.#open -= 1;
    }
  }
}
