import { KeyedMutex } from '../async/keyed-mutex.ts';

/** Operations under way: changes of one document one after the other, and all of them finished before closing. */
export class Turns {
  readonly #changes = new KeyedMutex();
  readonly #operations = new Set<Promise<unknown>>();

  /** Runs a change after those of the same document that were asked for before, so that they do not spin against each other. */
  async inTurn<R>(document: string, change: () => Promise<R>): Promise<R> {
    return await this.tracked(this.#changes.run(document, change));
  }

  /** An operation that is waited for before closing. */
  async tracked<R>(operation: Promise<R>): Promise<R> {
    this.#operations.add(operation);
    try {
      return await operation;
    } finally {
      this.#operations.delete(operation);
    }
  }

  /** Resolves when all that was asked for so far is done, changes that wait for their turn included. */
  async done(): Promise<void> {
    await Promise.allSettled(this.#operations);
  }
}
