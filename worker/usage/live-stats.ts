/** The live usage of backends, once a second. All listeners of a backend share one measurement. */
import type { MetricsRecord } from '../../contract/backend.ts';
import { abortable } from '../../core/async/abortable.ts';
import type { Engine } from '../docker/engine.ts';
import type { ContainerUsage } from '../docker/stats.ts';
import type { Run } from '../lifecycle/run.ts';

export class LiveStats {
  readonly #engine: Pick<Engine, 'followStats'>;
  readonly #sources = new Map<Run, Source>();

  constructor(engine: Pick<Engine, 'followStats'>) {
    this.#engine = engine;
  }

  /**
   * Yields records of a backend's usage until it has ended. The first batch is empty and comes as soon as the engine answers. A slow
   * listener misses records. Throws an `EngineError`, and the signal's reason when it aborts.
   */
  async *follow(run: Run, signal: AbortSignal): AsyncGenerator<MetricsRecord[], void, void> {
    const source = this.#join(run);
    try {
      await abortable(source.opened, signal);
      yield [];
      for (;;) {
        const record = await abortable(source.next, signal);
        if (!record) return;
        yield [record];
      }
    } finally {
      this.#leave(run, source);
    }
  }

  #join(run: Run): Source {
    const known = this.#sources.get(run);
    const source = known ?? new Source(this.#engine, run);
    this.#sources.set(run, source);
    source.listeners += 1;
    return source;
  }

  #leave(run: Run, source: Source): void {
    source.listeners -= 1;
    if (source.listeners > 0) return;
    source.stop();
    if (this.#sources.get(run) === source) this.#sources.delete(run);
  }
}

/** The measurement of one backend. */
class Source {
  listeners = 0;
  /** Rejects if the engine does not answer. */
  readonly opened: Promise<void>;
  readonly #opened = Promise.withResolvers<void>();
  readonly #stopping = new AbortController();
  #next = Promise.withResolvers<MetricsRecord | undefined>();

  constructor(engine: Pick<Engine, 'followStats'>, run: Run) {
    this.opened = this.#opened.promise;
    // Listeners handle it; there may be none at the moment.
    this.opened.catch(() => {});
    void this.#read(engine, run);
  }

  /** The next record; none if the backend has ended. */
  get next(): Promise<MetricsRecord | undefined> {
    return this.#next.promise;
  }

  stop(): void {
    this.#stopping.abort(new Error('No listener is left'));
  }

  async #read(engine: Pick<Engine, 'followStats'>, run: Run): Promise<void> {
    const signal = AbortSignal.any([this.#stopping.signal, run.exitedSignal, run.signal]);
    try {
      const usages = await engine.followStats(run.id, signal);
      this.#opened.resolve();
      let before: ContainerUsage | undefined;
      for await (const usage of usages) {
        if (before) this.#publish(metricsRecord(run.id, before, usage));
        before = usage;
      }
      this.#end(undefined);
    } catch (error) {
      this.#end(signal.aborted ? undefined : error);
    }
  }

  #publish(record: MetricsRecord): void {
    const { resolve } = this.#next;
    this.#next = Promise.withResolvers();
    resolve(record);
  }

  #end(problem: unknown): void {
    this.#next.promise.catch(() => {});
    if (problem === undefined) {
      this.#opened.resolve();
      this.#next.resolve(undefined);
    } else {
      this.#opened.reject(problem);
      this.#next.reject(problem);
    }
  }
}

/** The CPU time used between two measurements, and the memory at the second one. */
function metricsRecord(backend: string, before: ContainerUsage, now: ContainerUsage): MetricsRecord {
  return {
    backend_id: backend,
    cpu_used: Math.max(now.cpuNanoseconds - before.cpuNanoseconds, 0),
    sys_cpu: Math.max(now.hostCpuNanoseconds - before.hostCpuNanoseconds, 0),
    mem_used: now.memoryBytes,
    mem_limit: now.memoryLimitBytes,
    mem_available: Math.max(now.memoryLimitBytes - now.memoryBytes, 0),
  };
}
