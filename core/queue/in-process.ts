/** Jobs within this process. */
import type { Clock } from '../clock/clock.ts';
import type { Log } from '../log/log.ts';
import { Line } from './in-process-line.ts';
import type { AddOptions, ConsumerOptions, JobHandlers, JobKind, Queue } from './queue.ts';

/** Opens a queue that lives and ends with this process. */
export function openInProcessQueue(options: { clock: Clock; log: Log }): Queue {
  return new InProcessQueue(options.clock, options.log);
}

class InProcessQueue implements Queue {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #lines = new Map<string, Line>();
  #closed = false;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  async ping(): Promise<void> {
    this.#assertOpen();
  }

  async add<Payload>(queue: string, kind: JobKind<Payload>, payload: Payload, options: AddOptions): Promise<void> {
    this.#assertOpen();
    const { id, priority = 'normal' } = options;
    this.#line(queue).add(id, { name: kind.name, payload: kind.payload.parse(payload), priority });
  }

  async consume(queue: string, handlers: JobHandlers, options: ConsumerOptions): Promise<AsyncDisposable> {
    this.#assertOpen();
    return this.#line(queue).consume(handlers, options.concurrency);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await Promise.all(Array.from(this.#lines.values(), (line) => line[Symbol.asyncDispose]()));
  }

  #line(queue: string): Line {
    let line = this.#lines.get(queue);
    if (!line) this.#lines.set(queue, (line = new Line(this.#clock, this.#log.child({ queue }))));
    return line;
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error('The queue is closed');
  }
}
