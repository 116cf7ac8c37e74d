import type { Clock } from '../clock/clock.ts';

/** Runs a task periodically, one run at a time. Disposing stops that and waits for the current run. */
export class PeriodicTask implements AsyncDisposable {
  readonly #task: () => Promise<void>;
  readonly #timer: Disposable;
  #running: Promise<void> | undefined;

  /** @param task - logs its own errors: those of a periodic run are dropped */
  constructor(clock: Clock, periodMs: number, task: () => Promise<void>) {
    this.#task = task;
    this.#timer = clock.every(periodMs, () => void this.run().catch(() => {}));
  }

  /** Runs the task now. A call during a run waits for that run. Rejects with what the task throws. */
  async run(): Promise<void> {
    this.#running ??= this.#task().finally(() => (this.#running = undefined));
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer[Symbol.dispose]();
    await this.#running?.catch(() => {});
  }
}
