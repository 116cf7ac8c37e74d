import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { ProxyErrorCode } from '../../contract/proxy-errors.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { traceInLines } from '../access-log.ts';
import type { Connections } from '../connections.ts';
import type { ProxyMetrics } from '../metrics.ts';
import type { PlainRequest } from './request-head.ts';
import type { Target } from './target.ts';

export interface RecordDeps {
  readonly clock: Clock;
  readonly connections: Connections;
  readonly metrics: ProxyMetrics;
}

/** What is counted and logged of an exchange, from its beginning. */
export class ExchangeRecord {
  readonly #deps: RecordDeps;
  readonly #client: Socket;
  readonly #request: PlainRequest;
  readonly #backend: string;
  readonly #open: Disposable;
  readonly #startedMs: number;
  readonly #sentBefore: number;
  readonly #receivedBefore: number;
  #id: string | undefined;
  #error: ProxyErrorCode | undefined;

  constructor(deps: RecordDeps, client: Socket, { request, target }: { request: PlainRequest; target: Target }) {
    this.#deps = deps;
    this.#client = client;
    this.#request = request;
    this.#backend = target.backend;
    this.#open = deps.connections.open(target.backend, target.address.node);
    this.#startedMs = deps.clock.now().getTime();
    this.#sentBefore = client.bytesWritten;
    this.#receivedBefore = client.bytesRead;
  }

  /** The ID of the request, in the log and in the proxy's own answer. */
  get id(): string {
    return (this.#id ??= randomUUID());
  }

  /** The proxy answers with an error. */
  fail(code: ProxyErrorCode, cause: unknown): void {
    this.#error = code;
    this.#deps.metrics.logError({ id: this.id, backend: this.#backend }, code, cause);
  }

  /** The exchange has ended: with a status, unless the client has received none. */
  end(status: number | undefined): void {
    this.#open[Symbol.dispose]();
    this.#deps.metrics.ended({
      id: () => this.id,
      trace: () => traceInLines(this.#request.lines),
      backend: this.#backend,
      method: this.#request.method,
      status,
      error: this.#error,
      startedMs: this.#startedMs,
      sentBytes: this.#client.bytesWritten - this.#sentBefore,
      receivedBytes: this.#client.bytesRead - this.#receivedBefore,
    });
  }
}
