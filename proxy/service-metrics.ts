/**
 * Requests, latency and bytes by service, counted in plain numbers that become series when metrics are read: prom-client would look up
 * each series by its labels with each request, which costs more than all other counting and logging of a small request.
 */
import { Counter } from 'prom-client';
import type { Metric } from 'prom-client';
import type { Metrics } from '../core/metrics/metrics.ts';

/**
 * The largest number of services with their own series, in the order of their first requests. A platform may have thousands, each with
 * dozens of series. The rest shares the label `other`.
 */
export const maxServices = 100;

/** Not a name of a service, which contains a slash. */
const otherServices = 'other';

/** From answers out of memory to answers that a user waits for. Few, to limit the number of series. */
const latencyBucketsSeconds = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 60];

const names = {
  latency: 'berth_proxy_request_seconds',
  sent: 'berth_proxy_sent_bytes_total',
  received: 'berth_proxy_received_bytes_total',
};

/** Classes of statuses, by their first digit. The first one is for requests without an answer. */
export const codeClasses: readonly string[] = ['cut', '1xx', '2xx', '3xx', '4xx', '5xx', '6xx', '7xx', '8xx', '9xx'];

/** The index of the class of a status in `codeClasses`. */
export function codeClassOf(status: number | undefined): number {
  return status === undefined ? 0 : Math.trunc(status / 100);
}

/** The status of an upgraded connection, whose duration is no latency. */
export const switchingProtocols = 101;

/** The outcome of a request to a backend. */
export interface Traffic {
  /** The status of the answer; `undefined` if there was none. */
  readonly status: number | undefined;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** How long requests took. */
interface Latencies {
  /** The number of requests in each bucket, without those in smaller buckets. The last one has no limit. */
  readonly buckets: number[];
  seconds: number;
}

/** The counts of one service. */
interface Series {
  sentBytes: number;
  receivedBytes: number;
  /** By class of status. */
  readonly latencies: (Latencies | undefined)[];
}

/** Metrics by service, registered until disposed. */
export class ServiceMetrics implements Disposable {
  readonly #metrics: Metrics;
  readonly #series = new Map<string, Series>();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
    metrics.registerMetric(this.#counter(names.sent, 'Bytes sent to clients, by service', 'sentBytes'));
    metrics.registerMetric(this.#counter(names.received, 'Bytes received from clients, by service', 'receivedBytes'));
    // A registry uses nothing else of a metric (the type has all methods of the four kinds).
    metrics.registerMetric({ name: names.latency, get: async () => this.#histogram() } as unknown as Metric);
  }

  /** Counts a request to a service, `<account>/<service>`. */
  observe(service: string, { status, sentBytes, receivedBytes }: Traffic, durationMs: number): void {
    const series = this.#series.get(service) ?? this.#add(service);
    series.sentBytes += Math.max(0, sentBytes);
    series.receivedBytes += Math.max(0, receivedBytes);
    if (status === switchingProtocols) return;
    const seconds = Math.max(0, durationMs) / 1_000;
    const latencies = (series.latencies[codeClassOf(status)] ??= newLatencies());
    let i = 0;
    while (seconds > (latencyBucketsSeconds[i] ?? Infinity)) i += 1;
    latencies.buckets[i] = (latencies.buckets[i] ?? 0) + 1;
    latencies.seconds += seconds;
  }

  [Symbol.dispose](): void {
    for (const name of Object.values(names)) this.#metrics.removeSingleMetric(name);
  }

  #add(service: string): Series {
    const label = this.#series.size < maxServices ? service : otherServices;
    const series = this.#series.get(label) ?? {
      sentBytes: 0,
      receivedBytes: 0,
      latencies: codeClasses.map(() => undefined),
    };
    this.#series.set(label, series);
    return series;
  }

  #counter(name: string, help: string, bytes: 'sentBytes' | 'receivedBytes'): Counter<'service'> {
    const all = this.#series;
    return new Counter({
      name,
      help,
      labelNames: ['service'],
      registers: [],
      collect() {
        this.reset();
        for (const [service, series] of all) this.inc({ service }, series[bytes]);
      },
    });
  }

  #histogram(): object {
    const values = [...this.#series].flatMap(([service, { latencies }]) =>
      latencies.flatMap((each, i) => (each ? valuesOf(each, { service, code_class: codeClasses[i] ?? '' }) : [])),
    );
    const help =
      'How long requests took from their head to the end of their answer, by service and class of status; without upgraded connections';
    return { name: names.latency, help, type: 'histogram', aggregator: 'sum', values };
  }
}

function newLatencies(): Latencies {
  return { buckets: [...latencyBucketsSeconds.map(() => 0), 0], seconds: 0 };
}

/** The values of a histogram: each bucket includes those before it. */
function valuesOf({ buckets, seconds }: Latencies, labels: Readonly<Record<string, string>>): object[] {
  let count = 0;
  const ofBuckets = buckets.map((inBucket, i) => {
    count += inBucket;
    const le = latencyBucketsSeconds[i] ?? '+Inf';
    return { labels: { le, ...labels }, value: count, metricName: `${names.latency}_bucket` };
  });
  const sum = { labels, value: seconds, metricName: `${names.latency}_sum` };
  return [...ofBuckets, sum, { labels, value: count, metricName: `${names.latency}_count` }];
}
