/**
 * Handles errors that no code has caught: the process logs and counts them, and keeps running.
 *
 * By default, Node.js would end the process, and with it the connections of every session. A stray error comes from one callback or
 * one dropped promise: the request, backend or connection that it belongs to is broken, and everything else still works. Documents
 * stay consistent, because each is written atomically and the process may be killed between any two writes anyway. The failed
 * request is answered with 500 (`core/http/gated-server.ts`). `berth_stray_errors_total` shows operators a process that fails
 * repeatedly, which they can restart at a convenient time.
 */
import { Counter } from 'prom-client';
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';

/** A timer can fail a thousand times a second; one log line a second is enough to find the defect. */
const lineEveryMs = 1_000;

type Kind = 'exception' | 'rejection';

interface Deps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Keeps uncaught errors from ending this process, until disposed. */
export function surviveStrayErrors({ clock, log, metrics }: Deps): Disposable {
  const counter = new Counter({
    name: 'berth_stray_errors_total',
    help: 'Uncaught errors. Each is a defect; the process kept running',
    labelNames: ['kind'],
    registers: [metrics],
  });
  for (const kind of ['exception', 'rejection'] as const) counter.inc({ kind }, 0);
  const lines = new RateLimitedLog(clock, log);
  const survive = (kind: Kind) => (error: unknown) => {
    counter.inc({ kind });
    lines.write(kind, error);
  };
  const onException = survive('exception');
  const onRejection = survive('rejection');
  process.on('uncaughtException', onException).on('unhandledRejection', onRejection);
  return {
    [Symbol.dispose]: () => {
      process.off('uncaughtException', onException).off('unhandledRejection', onRejection);
      lines[Symbol.dispose]();
    },
  };
}

/** Writes the first error at once. Of the errors in the following second, it writes the last one, with their count. */
class RateLimitedLog implements Disposable {
  readonly #clock: Clock;
  readonly #log: Log;
  #pause: Disposable | undefined;
  #unwritten: { readonly kind: Kind; readonly error: unknown; readonly count: number } | undefined;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  write(kind: Kind, error: unknown): void {
    this.#unwritten = { kind, error, count: (this.#unwritten?.count ?? 0) + 1 };
    if (!this.#pause) this.#flush();
  }

  [Symbol.dispose](): void {
    this.#pause?.[Symbol.dispose]();
  }

  #flush(): void {
    this.#pause = undefined;
    if (!this.#unwritten) return;
    const { kind, error, count } = this.#unwritten;
    this.#unwritten = undefined;
    this.#pause = this.#clock.after(lineEveryMs, () => this.#flush());
    try {
      this.#log.error({ err: error, kind, count }, 'Stray error, the process keeps running');
    } catch {
      // Writing the log has failed. The error is counted all the same.
    }
  }
}
