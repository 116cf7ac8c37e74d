import type { JobHandlers } from './queue.ts';

/** How a run ended. `interrupted`: its consumer was leaving. */
export type Outcome = { kind: 'done' } | { kind: 'interrupted' } | { kind: 'failed'; error: unknown };

/** Runs jobs, a bounded number at a time, until disposed. */
export class Consumer implements AsyncDisposable {
  readonly #handlers: JobHandlers;
  readonly #concurrency: number;
  readonly #abort = new AbortController();
  readonly #running = new Set<Promise<Outcome>>();

  constructor(handlers: JobHandlers, concurrency: number) {
    this.#handlers = handlers;
    this.#concurrency = concurrency;
  }

  get hasRoom(): boolean {
    return this.#running.size < this.#concurrency && !this.#abort.signal.aborted;
  }

  async run(name: string, payload: unknown): Promise<Outcome> {
    const run = this.#attempt(name, payload);
    this.#running.add(run);
    const outcome = await run;
    this.#running.delete(run);
    return outcome;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort(new Error('The consumer is closing'));
    await Promise.all(this.#running);
  }

  async #attempt(name: string, payload: unknown): Promise<Outcome> {
    const { signal } = this.#abort;
    try {
      // A handler begins on its own stack, not within the call that added the job.
      await Promise.resolve();
      await this.#handlers.run(name, payload, signal);
      return { kind: 'done' };
    } catch (error) {
      return signal.aborted ? { kind: 'interrupted' } : { kind: 'failed', error };
    }
  }
}
