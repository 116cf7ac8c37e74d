/** One log line for each request, and the proxy's metrics. Neither contains a token or a path. */
import { Counter, Gauge, Histogram } from 'prom-client';
import type { ProxyErrorCode } from '../contract/proxy-errors.ts';
import type { Clock } from '../core/clock/clock.ts';
import { requestId } from '../core/http/request-id.ts';
import type { ErrorBoundary } from '../core/log/error-boundary.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { RequestContext } from './request-context.ts';

/** A container starts in a third of a second if its node has the image, and in minutes if the node has to pull it. */
const holdBucketsSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

const names = {
  requests: 'berth_proxy_requests_total',
  holds: 'berth_proxy_hold_seconds',
  open: 'berth_proxy_open_connections',
};

interface ProxyMetricsDeps {
  readonly log: Log;
  readonly errorBoundary: ErrorBoundary;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly openConnections: () => number;
}

/** The proxy's metrics, registered until disposed. */
export class ProxyMetrics implements Disposable {
  readonly #deps: ProxyMetricsDeps;
  readonly #requests: Counter<'code_class'>;
  readonly #holds: Histogram;

  constructor(deps: ProxyMetricsDeps) {
    this.#deps = deps;
    const registers = [deps.metrics];
    this.#requests = new Counter({
      name: names.requests,
      help: 'Requests that have ended, by class of status; "cut" had no answer',
      labelNames: ['code_class'],
      registers,
    });
    this.#holds = new Histogram({
      name: names.holds,
      help: 'How long requests waited for their backend to be ready',
      buckets: holdBucketsSeconds,
      registers,
    });
    const open = new Gauge({
      name: names.open,
      help: 'Requests and upgraded connections that are open now',
      registers: [],
      collect() {
        this.set(deps.openConnections());
      },
    });
    deps.metrics.registerMetric(open);
  }

  /** Counts and logs a request when it has ended. */
  track(context: RequestContext): void {
    const { errorBoundary, clock, log } = this.#deps;
    const { request } = context;
    const { socket } = request;
    const startedMs = clock.now().getTime();
    const before = { sent: socket.bytesWritten, received: socket.bytesRead };
    const onClosed = errorBoundary.wrap(() => {
      const status = context.status();
      this.#requests.inc({ code_class: status === undefined ? 'cut' : `${Math.floor(status / 100)}xx` });
      log.info(
        {
          request: requestId(request),
          backend: context.backend,
          method: request.method,
          status,
          error: context.error,
          durationMs: clock.now().getTime() - startedMs,
          sentBytes: socket.bytesWritten - before.sent,
          receivedBytes: socket.bytesRead - before.received,
        },
        'Request ended',
      );
    });
    context.closed.addEventListener('abort', onClosed);
  }

  /** Logs the cause of an error of the proxy, if there is one. */
  logError({ request, backend }: RequestContext, code: ProxyErrorCode, cause: unknown): void {
    if (cause === undefined) return;
    const { log } = this.#deps;
    const fields = { request: requestId(request), backend, error: code, err: cause };
    if (code === 'unavailable') log.error(fields, 'Request could not be served');
    else log.debug(fields, 'Request could not be forwarded');
  }

  /** Observes how long a request was held. */
  observeHold(sinceMs: number): void {
    this.#holds.observe(Math.max(0, this.#deps.clock.now().getTime() - sinceMs) / 1_000);
  }

  [Symbol.dispose](): void {
    for (const name of Object.values(names)) this.#deps.metrics.removeSingleMetric(name);
  }
}
