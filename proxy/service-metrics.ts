/** Requests, latency and bytes by service. */
import { Counter, Histogram } from 'prom-client';
import type { Metrics } from '../core/metrics/metrics.ts';

/**
 * The most services with series of their own, in the order of their first requests. A platform may have thousands, each with dozens of
 * series. The rest shares the label `other`.
 */
export const maxServices = 100;

/** No account or service has this name: theirs are joined by a slash. */
const otherServices = 'other';

/** From an answer out of memory to one that a user waits for, few enough to keep the number of series small. */
const latencyBucketsSeconds = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 60];

const names = {
  latency: 'berth_proxy_request_seconds',
  sent: 'berth_proxy_sent_bytes_total',
  received: 'berth_proxy_received_bytes_total',
};

/** Traffic with a backend that has ended. */
export interface Traffic {
  /** `2xx` and so on, or `cut`. */
  readonly codeClass: string;
  /** An upgraded connection, whose duration is no latency. */
  readonly isUpgraded: boolean;
  readonly durationMs: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** The series of one service. To find them by their labels takes longer than to count. */
interface Series {
  readonly sent: Counter.Internal;
  readonly received: Counter.Internal;
  readonly latencies: Map<string, Histogram.Internal<'service' | 'code_class'>>;
}

/** Metrics by service, registered until disposed. */
export class ServiceMetrics implements Disposable {
  readonly #metrics: Metrics;
  readonly #latency: Histogram<'service' | 'code_class'>;
  readonly #sent: Counter<'service'>;
  readonly #received: Counter<'service'>;
  readonly #series = new Map<string, Series>();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
    const registers = [metrics];
    this.#latency = new Histogram({
      name: names.latency,
      help: 'How long requests took from their head to the end of their answer, by service and class of status; without upgraded connections',
      labelNames: ['service', 'code_class'],
      buckets: latencyBucketsSeconds,
      registers,
    });
    this.#sent = new Counter({
      name: names.sent,
      help: 'Bytes sent to clients, by service',
      labelNames: ['service'],
      registers,
    });
    this.#received = new Counter({
      name: names.received,
      help: 'Bytes received from clients, by service',
      labelNames: ['service'],
      registers,
    });
  }

  /** Counts what a request to a service, `<account>/<service>`, has caused. */
  observe(service: string, { codeClass, isUpgraded, durationMs, sentBytes, receivedBytes }: Traffic): void {
    const label = this.#series.has(service) || this.#series.size < maxServices ? service : otherServices;
    const { sent, received, latencies } = this.#series.get(label) ?? this.#add(label);
    sent.inc(Math.max(0, sentBytes));
    received.inc(Math.max(0, receivedBytes));
    if (isUpgraded) return;
    let latency = latencies.get(codeClass);
    if (!latency) {
      latency = this.#latency.labels({ service: label, code_class: codeClass });
      latencies.set(codeClass, latency);
    }
    latency.observe(Math.max(0, durationMs) / 1_000);
  }

  [Symbol.dispose](): void {
    for (const name of Object.values(names)) this.#metrics.removeSingleMetric(name);
  }

  #add(service: string): Series {
    const labels = { service };
    const series: Series = {
      sent: this.#sent.labels(labels),
      received: this.#received.labels(labels),
      latencies: new Map(),
    };
    this.#series.set(service, series);
    return series;
  }
}
