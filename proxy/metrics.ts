/** One log line for each request, and the proxy's metrics. Neither contains a token or a path. */
import { Counter, Gauge, Histogram } from 'prom-client';
import type { ProxyErrorCode } from '../contract/proxy-errors.ts';
import type { Clock } from '../core/clock/clock.ts';
import { requestId } from '../core/http/request-id.ts';
import type { ErrorBoundary } from '../core/log/error-boundary.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import { AccessLogSample, traceOf } from './access-log.ts';
import { socketTraffic } from './backend-traffic.ts';
import type { BackendTraffic, SocketTraffic, OpenExchange } from './backend-traffic.ts';
import type { RequestContext } from './request-context.ts';
import { codeClasses, codeClassOf, ServiceMetrics } from './service-metrics.ts';

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
  readonly traffic: BackendTraffic;
  /** The service of a backend, `<account>/<service>`, as far as it is known. */
  readonly serviceOf: (backend: string) => string | undefined;
  /** The percentage of requests that are logged. Failed requests are always logged. */
  readonly accessLogPercent: number;
}

/** The beginning of a request. */
export interface Begun {
  readonly startedMs: number;
  /** The traffic of its connection before it. */
  readonly before: SocketTraffic;
}

/** A request that has ended. */
export interface EndedRequest {
  /** Its ID, created on demand. */
  id(): string;
  /** Its trace ID, read on demand. */
  trace(): string | undefined;
  readonly backend: string | undefined;
  /** The service of the backend, if it was looked up before. */
  readonly service?: string | undefined;
  readonly method: string | undefined;
  /** The status that the client received; `undefined` if there was no answer. */
  readonly status: number | undefined;
  /** The error with which the proxy answered. */
  readonly error: ProxyErrorCode | undefined;
  readonly startedMs: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** The proxy's metrics, registered until disposed. */
export class ProxyMetrics implements Disposable {
  readonly #deps: ProxyMetricsDeps;
  readonly #holds: Histogram;
  /** Requests by class of status. */
  readonly #counts: number[] = codeClasses.map(() => 0);
  readonly #services: ServiceMetrics;
  readonly #logged: AccessLogSample;

  constructor(deps: ProxyMetricsDeps) {
    this.#deps = deps;
    const registers = [deps.metrics];
    this.#services = new ServiceMetrics(deps.metrics);
    this.#logged = new AccessLogSample(deps.accessLogPercent);
    const counts = this.#counts;
    const requests = new Counter({
      name: names.requests,
      help: 'Requests that have ended, by class of status; "cut" had no answer',
      labelNames: ['code_class'],
      registers: [],
      collect() {
        this.reset();
        for (const [i, count] of counts.entries()) if (count > 0) this.inc({ code_class: codeClasses[i] ?? '' }, count);
      },
    });
    deps.metrics.registerMetric(requests);
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

  /** Counts and logs a request when it has ended, unless it was upgraded. */
  track(context: RequestContext): void {
    const { request, response, socket } = context;
    const { clock, errorBoundary } = this.#deps;
    const startedMs = clock.now().getTime();
    const before = socketTraffic(socket);
    context.begun = { startedMs, before };
    this.follow(context);
    const onClosed = errorBoundary.wrap(() => {
      this.unfollow(context);
      if (context.isUpgraded === true) return;
      const after = socketTraffic(socket);
      const ended = {
        id: () => requestId(request),
        trace: () => traceOf(request.headers.traceparent),
        backend: context.backend,
        method: request.method,
        status: response.headersSent ? response.statusCode : undefined,
        error: context.error,
        startedMs,
        sentBytes: after.sentBytes - before.sentBytes,
        receivedBytes: after.receivedBytes - before.receivedBytes,
      };
      this.ended(ended, after);
    });
    context.closed.addEventListener('abort', onClosed);
  }

  /** Counts the bytes of an open request or upgraded connection, until `unfollow`. */
  follow(open: OpenExchange): void {
    this.#deps.traffic.follow(open);
  }

  unfollow(open: OpenExchange): void {
    this.#deps.traffic.unfollow(open);
  }

  /** Counts and logs a request that has ended. `connection` is that of its client, if it was for a backend. */
  ended(request: EndedRequest, connection?: SocketTraffic): void {
    const { clock, log, serviceOf, traffic } = this.#deps;
    const { backend, method, status, error, sentBytes, receivedBytes } = request;
    const durationMs = clock.now().getTime() - request.startedMs;
    const codeClass = codeClassOf(status);
    this.#counts[codeClass] = (this.#counts[codeClass] ?? 0) + 1;
    if (backend !== undefined && connection) traffic.ended(backend, connection);
    const service = request.service ?? (backend === undefined ? undefined : serviceOf(backend));
    if (service !== undefined) this.#services.observe(service, request, durationMs);
    if (!log.isLevelEnabled('info') || !this.#logged.includes(request)) return;
    const fields = { backend, method, status, error, sentBytes, receivedBytes, durationMs };
    log.info({ request: request.id(), trace: request.trace(), ...fields }, 'Request ended');
  }

  /** Logs the cause of an error of the proxy, if there is one. */
  logError(fields: { id: string; backend: string | undefined }, code: ProxyErrorCode, cause: unknown): void {
    if (cause === undefined) return;
    const { log } = this.#deps;
    const line = { request: fields.id, backend: fields.backend, error: code, err: cause };
    if (code === 'unavailable') log.error(line, 'Request could not be served');
    else log.debug(line, 'Request could not be forwarded');
  }

  /** Observes how long a request was held. */
  observeHold(sinceMs: number): void {
    this.#holds.observe(Math.max(0, this.#deps.clock.now().getTime() - sinceMs) / 1_000);
  }

  [Symbol.dispose](): void {
    this.#services[Symbol.dispose]();
    for (const name of Object.values(names)) this.#deps.metrics.removeSingleMetric(name);
  }
}
