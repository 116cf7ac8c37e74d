/** What is seen of the proxy from outside: one log line a request, and figures. Neither ever holds a token or a path. */
import { Counter, Gauge, Histogram } from 'prom-client';
import type { ProxyErrorCode } from '../contract/proxy-errors.ts';
import type { Clock } from '../core/clock/clock.ts';
import { requestId } from '../core/http/request-id.ts';
import type { LastCatch } from '../core/log/last-catch.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { Exchange } from './exchange.ts';

/** A container starts in a third of a second when all is at hand, and in minutes when its image must come first. */
const holdBucketsSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

const names = {
  requests: 'berth_proxy_requests_total',
  holds: 'berth_proxy_hold_seconds',
  open: 'berth_proxy_open_connections',
};

/** The proxy's figures, registered until disposed. */
export class Observer implements Disposable {
  readonly #log: Log;
  readonly #caught: LastCatch;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #requests: Counter<'code_class'>;
  readonly #holds: Histogram;

  constructor(deps: { log: Log; caught: LastCatch; clock: Clock; metrics: Metrics; openConnections: () => number }) {
    this.#log = deps.log;
    this.#caught = deps.caught;
    this.#clock = deps.clock;
    this.#metrics = deps.metrics;
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

  /** Writes the line of an exchange when it has ended. */
  follow(exchange: Exchange): void {
    const { request } = exchange;
    const { socket } = request;
    const startedMs = this.#clock.now().getTime();
    const before = { sent: socket.bytesWritten, received: socket.bytesRead };
    const onClosed = this.#caught.around(() => {
      const status = exchange.status();
      this.#requests.inc({ code_class: status === undefined ? 'cut' : `${Math.floor(status / 100)}xx` });
      this.#log.info(
        {
          request: requestId(request),
          backend: exchange.backend,
          method: request.method,
          status,
          error: exchange.error,
          durationMs: this.#clock.now().getTime() - startedMs,
          sentBytes: socket.bytesWritten - before.sent,
          receivedBytes: socket.bytesRead - before.received,
        },
        'Request ended',
      );
    });
    exchange.closed.addEventListener('abort', onClosed);
  }

  /** An error of the proxy's own that has a cause to look for. */
  failed(exchange: Exchange, code: ProxyErrorCode, cause: unknown): void {
    if (cause === undefined) return;
    const facts = { request: requestId(exchange.request), backend: exchange.backend, error: code, err: cause };
    if (code === 'unavailable') this.#log.error(facts, 'Request could not be served');
    else this.#log.debug(facts, 'Request could not be forwarded');
  }

  /** A request has waited for its backend. */
  held(sinceMs: number): void {
    this.#holds.observe(Math.max(0, this.#clock.now().getTime() - sinceMs) / 1_000);
  }

  [Symbol.dispose](): void {
    for (const name of Object.values(names)) this.#metrics.removeSingleMetric(name);
  }
}
