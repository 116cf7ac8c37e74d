/**
 * Pulls on which nothing moves. Each holds a file and the part that it is sending, and a client need do nothing to hold them.
 * A few of them are clients that are busy with something else; when there are many, those that stand still make room for others,
 * and an honest client goes on with a range where it stopped.
 */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../core/clock/clock.ts';

/** So many pulls at a time are nobody's concern: with a megabyte or two each, they are half of what a process should have. */
const manyPulls = 128;

/** Twice as long as web servers usually wait between two parts. */
const patienceMs = 120_000;

const lookEveryMs = 10_000;

interface Pull {
  readonly response: ServerResponse;
  /** What had been handed to the system when it last moved: parts of up to a megabyte. */
  sentBytes: number;
  movedAt: Date;
}

export class PullWatch {
  readonly #clock: Clock;
  readonly #pulls = new Set<Pull>();
  #look: Disposable | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Watches an answer until disposed. */
  watch(response: ServerResponse): Disposable {
    const pull = { response, sentBytes: -1, movedAt: this.#clock.now() };
    this.#pulls.add(pull);
    this.#look ??= this.#clock.every(lookEveryMs, () => this.#cutThoseThatStand());
    return {
      [Symbol.dispose]: () => {
        this.#pulls.delete(pull);
        if (this.#pulls.size > 0) return;
        this.#look?.[Symbol.dispose]();
        this.#look = undefined;
      },
    };
  }

  #cutThoseThatStand(): void {
    const now = this.#clock.now();
    for (const pull of this.#pulls) {
      const sentBytes = pull.response.socket?.bytesWritten ?? 0;
      if (sentBytes === pull.sentBytes) continue;
      pull.sentBytes = sentBytes;
      pull.movedAt = now;
    }
    if (this.#pulls.size <= manyPulls) return;
    for (const { response, movedAt } of this.#pulls) {
      if (now.getTime() - movedAt.getTime() >= patienceMs) response.destroy();
    }
  }
}
