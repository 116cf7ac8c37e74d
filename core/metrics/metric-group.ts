import { Counter, Gauge, Histogram } from 'prom-client';
import type { Metrics } from './metrics.ts';

/** The metrics of one part of a process. Disposing removes them, so that a later part of the same kind can register its own. */
export class MetricGroup implements Disposable {
  readonly #metrics: Metrics;
  readonly #names: string[] = [];

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  counter<Label extends string = never>(name: string, help: string, ...labelNames: Label[]): Counter<Label> {
    return new Counter({ help, labelNames, ...this.#register(name) });
  }

  histogram<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    buckets: number[],
  ): Histogram<Label> {
    return new Histogram({ help, labelNames, buckets, ...this.#register(name) });
  }

  /** @param collect - sets its value whenever metrics are collected */
  gauge<Label extends string = never>(
    name: string,
    help: string,
    collect?: (gauge: Gauge<Label>) => void,
    ...labelNames: Label[]
  ): Gauge<Label> {
    return new Gauge({
      help,
      labelNames,
      ...this.#register(name),
      ...(collect && {
        collect() {
          collect(this);
        },
      }),
    });
  }

  [Symbol.dispose](): void {
    for (const name of this.#names) this.#metrics.removeSingleMetric(name);
  }

  #register(name: string) {
    this.#names.push(name);
    return { name, registers: [this.#metrics] };
  }
}
