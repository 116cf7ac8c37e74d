/** An upgraded connection, from the answer to its request until both sides are closed. */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Connections } from './connections.ts';
import type { SpliceUser } from './forward/splice.ts';
import { traceOf } from './access-log.ts';
import { socketTraffic } from './backend-traffic.ts';
import type { ProxyMetrics } from './metrics.ts';
import type { RequestContext } from './request-context.ts';
import { switchingProtocols } from './service-metrics.ts';

interface Deps {
  readonly connections: Connections;
  readonly metrics: ProxyMetrics;
  /** Called when the client's side is closed. */
  readonly onClientClosed: (upgraded: UpgradedConnection) => void;
}

/**
 * Counts as open until both sides are closed, and is logged as a request when the client's side is. Thousands may be open for hours, so
 * it keeps only the logged parts of its request.
 */
export class UpgradedConnection implements SpliceUser {
  readonly backend: string;
  /** The client's side. */
  readonly socket: Socket;
  readonly #deps: Deps;
  readonly #method: string | undefined;
  readonly #trace: string | undefined;
  readonly #startedMs: number;
  readonly #sentBefore: number;
  readonly #receivedBefore: number;
  #onClientClosed: (() => void) | undefined;

  /** @param deps - one object for all connections */
  constructor({ request, socket, begun }: RequestContext, backend: string, deps: Deps) {
    this.backend = backend;
    this.socket = socket;
    this.#deps = deps;
    this.#method = request.method;
    this.#trace = traceOf(request.headers.traceparent);
    this.#startedMs = begun?.startedMs ?? 0;
    this.#sentBefore = begun?.before.sentBytes ?? 0;
    this.#receivedBefore = begun?.before.receivedBytes ?? 0;
    deps.connections.begin(backend, undefined);
    deps.metrics.follow(this);
  }

  /** Resolves when the client's side is closed. */
  async clientClosed(): Promise<void> {
    if (!this.socket.closed) await new Promise<void>((resolve) => (this.#onClientClosed = resolve));
  }

  onClientClosed(): void {
    const { metrics, onClientClosed } = this.#deps;
    metrics.unfollow(this);
    const connection = socketTraffic(this.socket);
    const request = {
      id: () => randomUUID(),
      trace: () => this.#trace,
      backend: this.backend,
      method: this.#method,
      status: switchingProtocols,
      error: undefined,
      startedMs: this.#startedMs,
      sentBytes: connection.sentBytes - this.#sentBefore,
      receivedBytes: connection.receivedBytes - this.#receivedBefore,
    };
    metrics.ended(request, connection);
    onClientClosed(this);
    this.#onClientClosed?.();
  }

  onClosed(): void {
    this.#deps.connections.end(this.backend);
  }
}
