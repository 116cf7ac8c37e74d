import type { Clock } from '../clock/clock.ts';

/** Runs a task periodically, one run at a time. Disposing stops that and waits for the current run. */
export class PeriodicTask implements AsyncDisposable {
  readonly #task: () => Promise<void>;
  readonly #timer: Disposable;
  #running: Promise<void> | undefined;

  /** @param task - must log its own errors: errors of a periodic run are dropped */
  constructor(clock: Clock, periodMs: number, task: () => Promise<void>) {
    this.#task = task;
    this.#timer = clock.every(periodMs, () => void this.run().catch(() => {}));
  }

  /** Runs the task now. A call during a run waits for that run. Rejects with the task's error. */
  async run(): Promise<void> {
    this.#running ??= this.#task().finally(() => (this.#running = undefined));
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer[Symbol.dispose]();
    await this.#running?.catch(() => {});
  }
}
