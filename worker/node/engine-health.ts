/** Checks regularly whether the engine of this node answers: a deadlocked engine does not report it. */
import { TimeoutError, withTimeout } from '../../core/async/with-timeout.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import { EngineError } from '../docker/engine-error.ts';
import type { Engine } from '../docker/engine.ts';

const checkEveryMs = 5_000;

/** A busy engine answers within a second or two; a slower one should get no more work. */
const answerLimitMs = 10_000;

export interface EngineHealthDeps {
  readonly engine: Pick<Engine, 'ping'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Checks the engine until disposed. Before the first check, the engine counts as healthy. */
export class EngineHealth implements AsyncDisposable {
  readonly #deps: EngineHealthDeps;
  readonly #closing = new AbortController();
  readonly #listeners = new Set<() => void>();
  readonly #checking: Promise<void>;
  #problem: EngineError | undefined;

  constructor(deps: EngineHealthDeps) {
    this.#deps = deps;
    this.#checking = this.#checkRepeatedly();
  }

  /** The reason why no backend can be started now; `undefined` while the engine answers. */
  get problem(): EngineError | undefined {
    return this.#problem;
  }

  /** Calls the listener whenever the engine stops answering or answers again. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listeners.clear();
    this.#closing.abort();
    await this.#checking;
  }

  async #checkRepeatedly(): Promise<void> {
    for (;;) {
      await this.#deps.clock.sleep(checkEveryMs, this.#closing.signal).catch(() => {});
      if (this.#closing.signal.aborted) return;
      const problem = await this.#check();
      if (this.#closing.signal.aborted) return;
      if ((problem === undefined) !== (this.#problem === undefined)) this.#change(problem);
    }
  }

  async #check(): Promise<EngineError | undefined> {
    const { clock, engine } = this.#deps;
    try {
      const limit = { clock, ms: answerLimitMs, signal: this.#closing.signal };
      await withTimeout(limit, async (signal) => await engine.ping(signal));
      return undefined;
    } catch (error) {
      const isLate = error instanceof TimeoutError;
      const how = isLate ? `has not answered for ${answerLimitMs / 1000} seconds` : 'does not answer';
      return new EngineError(
        'unavailable',
        `The Docker Engine of this node ${how}, so no backend is started here; if it stays like that, restart the engine`,
        { cause: error },
      );
    }
  }

  #change(problem: EngineError | undefined): void {
    const { log } = this.#deps;
    this.#problem = problem;
    if (problem) log.error({ err: problem }, 'Docker Engine does not answer, no backends are claimed until it does');
    else log.info('Docker Engine answers again');
    for (const listener of this.#listeners) listener();
  }
}
