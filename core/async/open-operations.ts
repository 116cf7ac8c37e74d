import { settledWithin } from './with-timeout.ts';
import type { TimeLimit } from './with-timeout.ts';

/**
 * Each operation has its own, much shorter limits. A database driver that never settles an operation must not keep the process
 * from ending.
 */
const settleLimitMs = 30_000;

/** Operations that are under way, for an owner that waits for them when it closes. */
export class OpenOperations {
  readonly #open = new Set<Promise<unknown>>();

  async run<R>(operation: () => Promise<R>): Promise<R> {
    const running = operation();
    this.#open.add(running);
    try {
      return await running;
    } finally {
      this.#open.delete(running);
    }
  }

  /** Resolves when all operations that were started before have settled, or after the limit. Never rejects. */
  async settled(limit: TimeLimit = { ms: settleLimitMs }): Promise<void> {
    await settledWithin(limit, async () => await Promise.allSettled(this.#open));
  }
}
