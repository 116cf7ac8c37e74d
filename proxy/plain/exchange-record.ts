import { randomUUID } from 'node:crypto';
import type { ProxyErrorCode } from '../../contract/proxy-errors.ts';
import { traceInLines } from '../access-log.ts';
import type { Connections } from '../connections.ts';
import type { EndedRequest, ProxyMetrics } from '../metrics.ts';
import type { Channel } from './channel.ts';
import type { PlainRequest } from './request-head.ts';
import type { Target } from './target.ts';

export interface RecordDeps {
  readonly connections: Connections;
  readonly metrics: ProxyMetrics;
}

interface Begun {
  readonly request: PlainRequest;
  readonly target: Target;
  readonly nowMs: number;
}

/** Counts and logs an exchange. */
export class ExchangeRecord implements EndedRequest {
  readonly #deps: RecordDeps;
  readonly #client: Channel;
  readonly #request: PlainRequest;
  readonly #sentBefore: number;
  readonly #receivedBefore: number;
  readonly backend: string;
  readonly service: string | undefined;
  readonly startedMs: number;
  status: number | undefined;
  error: ProxyErrorCode | undefined;
  #id: string | undefined;

  constructor(deps: RecordDeps, client: Channel, { request, target, nowMs }: Begun) {
    this.#deps = deps;
    this.#client = client;
    this.#request = request;
    this.backend = target.backend;
    this.service = target.service;
    this.startedMs = nowMs;
    this.#sentBefore = client.sentBytes;
    this.#receivedBefore = client.receivedBytes;
    deps.connections.begin(target.backend, target.address.node);
  }

  get method(): string {
    return this.#request.method;
  }

  get sentBytes(): number {
    return this.#client.sentBytes - this.#sentBefore;
  }

  /** Without the bytes that arrived together with the head. */
  get receivedBytes(): number {
    return this.#client.receivedBytes - this.#receivedBefore;
  }

  /** The ID of the request, in the log and in the proxy's own answer. */
  id(): string {
    return (this.#id ??= randomUUID());
  }

  trace(): string | undefined {
    return traceInLines(this.#request.lines);
  }

  /** Records that the proxy answers with an error. */
  fail(code: ProxyErrorCode, cause: unknown): void {
    this.error = code;
    this.#deps.metrics.logError({ id: this.id(), backend: this.backend }, code, cause);
  }

  /** Records the end of the exchange, with the status that the client has received, if any. */
  end(status: number | undefined): void {
    this.status = status;
    this.#deps.connections.end(this.backend);
    this.#deps.metrics.ended(this, this.#client);
  }
}
