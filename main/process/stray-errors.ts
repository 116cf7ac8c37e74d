/**
 * What a process does with an error that no code has caught: it writes it to the log, counts it and goes on.
 *
 * Node would end the process, and with it every session of every account. An error that strays comes from one callback or one
 * dropped promise; what it belonged to (a request, a backend, a connection) is broken, and the rest is as it was. Documents do
 * not suffer: each is written at once and whole, and a process may be killed between any two writes. The request behind such an
 * error is answered with 500 where it failed (`core/http/answer-faults.ts`). An operator sees a process that fails again and
 * again by `berth_stray_errors_total`, and may restart it at a better time.
 */
import { Counter } from 'prom-client';
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';

/** A timer that fails may do so a thousand times a second; one line for all of them is enough to find it. */
const lineEveryMs = 1_000;

type Kind = 'exception' | 'rejection';

interface Deps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** From now on, and until disposed, errors that no code has caught do not end this process. */
export function surviveStrayErrors({ clock, log, metrics }: Deps): Disposable {
  const counter = new Counter({
    name: 'berth_stray_errors_total',
    help: 'Errors that no code caught. Each is a defect; the process went on',
    labelNames: ['kind'],
    registers: [metrics],
  });
  for (const kind of ['exception', 'rejection'] as const) counter.inc({ kind }, 0);
  const lines = new PacedLines(clock, log);
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

/** Writes the first error at once; of those that follow within a second, the last one with their number. */
class PacedLines implements Disposable {
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
      this.#log.error({ err: error, kind, count }, 'Stray error, the process goes on');
    } catch {
      // A log that cannot be written is counted all the same.
    }
  }
}
