/** A plain request and its answer. */
import { randomUUID } from 'node:crypto';
import type { ProxyErrorCode } from '../../contract/proxy-errors.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import type { Connections } from '../connections.ts';
import { ProxyError, asProxyError, unreachableError } from '../errors.ts';
import type { Lookup } from '../lookup.ts';
import { traceInLines } from '../access-log.ts';
import type { ProxyMetrics } from '../metrics.ts';
import { Answer } from './answer.ts';
import type { BackendConnection, BackendConnections } from './backend-connections.ts';
import { LengthBody, MalformedBody } from './body.ts';
import type { Body } from './body.ts';
import { ChunkedBody } from './chunked-body.ts';
import type { ClientSide } from './client-side.ts';
import { sendError } from './error-answer.ts';
import type { PlainRequest } from './request-head.ts';
import type { Target } from './target.ts';

export interface ExchangeDeps {
  readonly clock: Clock;
  readonly errorBoundary: ErrorBoundary;
  readonly lookup: Lookup;
  readonly connections: Connections;
  readonly metrics: ProxyMetrics;
  readonly backends: BackendConnections;
}

const nothing = Buffer.alloc(0);

const ended = new Error('The request has ended');

/** What is sent in one text with its head: above, it costs less to write the bytes apart. */
const maxShortBytes = 12 * 1024;

export class Exchange {
  readonly #deps: ExchangeDeps;
  readonly #client: ClientSide;
  readonly #request: PlainRequest;
  readonly #target: Target;
  readonly #body: Body;
  readonly #answer: Answer;
  readonly #count: Disposable;
  readonly #startedMs: number;
  readonly #before: { readonly sent: number; readonly received: number };
  /** Ends the connect to the backend. */
  #connecting: AbortController | undefined;
  #backend: BackendConnection | undefined;
  /** The part of the body that arrived with the head, until the head is sent. */
  #early: Buffer = nothing;
  #isRetried = false;
  #isOver = false;
  #id: string | undefined;
  #error: ProxyErrorCode | undefined;

  constructor(deps: ExchangeDeps, client: ClientSide, { request, target }: { request: PlainRequest; target: Target }) {
    this.#deps = deps;
    this.#client = client;
    this.#request = request;
    this.#target = target;
    this.#body = request.body === 'chunked' ? new ChunkedBody({ isLenient: false }) : new LengthBody(request.body);
    this.#answer = new Answer(request, target.view, client.channel);
    this.#count = deps.connections.open(target.backend, target.address.node);
    this.#startedMs = deps.clock.now().getTime();
    const { socket } = client.channel;
    this.#before = { sent: socket.bytesWritten, received: socket.bytesRead };
  }

  /** Whether the client has more of the body to send. */
  get wantsBody(): boolean {
    return !this.#body.isComplete;
  }

  /** Whether the answer has begun. */
  get hasAnswered(): boolean {
    return this.#answer.status !== undefined;
  }

  /** Sends the request. Returns how many of the bytes after its head belong to it. */
  start(bytes: Buffer): number {
    const parts: Buffer[] = [];
    const used = this.#readBody(bytes, (part) => parts.push(part));
    if (this.#isOver) return used;
    const pooled = this.#deps.backends.take(this.#target.backend);
    if (pooled) {
      this.#send(pooled, parts);
      return used;
    }
    this.#early = Buffer.concat(parts);
    if (this.wantsBody) this.#client.channel.pause();
    void this.#connect();
    return used;
  }

  /** Sends more of the body. Returns how many of the bytes belong to it. */
  onBody(bytes: Buffer): number {
    const backend = this.#backend?.channel;
    const { channel } = this.#client;
    const used = this.#readBody(bytes, (part) => backend && channel.pass(part, backend));
    if (backend && !this.#isOver) channel.waitFor(backend);
    return used;
  }

  /** Ends everything, because the client has disconnected or the proxy closes. */
  abort(): void {
    this.#connecting?.abort(ended);
    this.#backend?.channel.destroy();
    this.#finish();
  }

  #readBody(bytes: Buffer, pass: (part: Buffer) => void): number {
    try {
      return this.#body.read(bytes, pass);
    } catch (error) {
      if (!(error instanceof MalformedBody)) throw error;
      this.#backend?.channel.destroy();
      this.#connecting?.abort(ended);
      if (this.hasAnswered) this.#client.channel.destroy();
      else this.#client.refuse();
      this.#finish();
      return bytes.length;
    }
  }

  async #connect(): Promise<void> {
    const { channel } = this.#client;
    this.#connecting = new AbortController();
    try {
      const connection = await this.#deps.backends.connect(this.#target, this.#connecting.signal);
      if (this.#isOver) {
        connection.channel.destroy();
        return;
      }
      if (this.wantsBody) channel.resume();
      this.#send(connection, [this.#early]);
      this.#early = nothing;
    } catch (error) {
      if (!this.#isOver) await this.#fail(error instanceof ProxyError ? error : unreachableError(error));
    }
  }

  #send(connection: BackendConnection, parts: readonly Buffer[]): void {
    this.#backend = connection;
    const { channel } = connection;
    channel.user = {
      onBytes: (bytes) => this.#onAnswer(connection, bytes),
      onEnd: () => this.#onBackendEnd(connection),
      onClose: (error) => this.#onBackendEnd(connection, error ?? new Error('The backend closed the connection')),
    };
    const bytes = parts.reduce((sum, { length }) => sum + length, 0);
    if (bytes <= maxShortBytes) {
      let text = this.#target.head;
      if (bytes > 0) for (const part of parts) text += part.toString('latin1');
      channel.write(text);
    } else {
      channel.write(this.#target.head);
      channel.socket.write(Buffer.concat(parts));
    }
    if (this.wantsBody) this.#client.channel.waitFor(channel);
  }

  #onAnswer(backend: BackendConnection, bytes: Buffer): void {
    if (backend !== this.#backend || this.#isOver) return;
    try {
      this.#answer.read(bytes, backend.channel);
    } catch (error) {
      backend.channel.destroy();
      void this.#fail(unreachableError(error));
      return;
    }
    if (this.#answer.isComplete) this.#complete(backend);
    else backend.channel.waitFor(this.#client.channel);
  }

  /** The whole answer was read. The exchange has ended when the client's side has it. */
  #complete(backend: BackendConnection): void {
    const { channel } = this.#client;
    if (!this.#answer.isReusable || !this.#body.isComplete) {
      this.#backend = undefined;
      backend.channel.destroy();
    } else if (!channel.isFlushed) {
      // Its buffer may still be written.
      backend.channel.pause();
    }
    channel.whenFlushed(() => {
      if (this.#isOver) return;
      if (this.#backend) this.#deps.backends.keep(this.#backend);
      this.#backend = undefined;
      this.#finish();
    });
  }

  /** The backend has closed its side, or the connection, which comes with an error if it was reset. */
  #onBackendEnd(backend: BackendConnection, error?: Error): void {
    if (backend !== this.#backend || this.#isOver || this.#answer.isComplete) return;
    this.#backend = undefined;
    backend.channel.destroy();
    if (!error && this.#answer.endWithConnection()) {
      this.#complete(backend);
      return;
    }
    if (backend.isUsed && !this.#answer.hasBegun && !this.#isRetried && this.#isReplayable) {
      this.#isRetried = true;
      void this.#connect();
      return;
    }
    void this.#fail(unreachableError(error ?? new Error('The connection ended without a whole answer')));
  }

  /** Whether sending the request twice has the same effect as sending it once. */
  get #isReplayable(): boolean {
    const { method, body } = this.#request;
    return (method === 'GET' || method === 'HEAD') && body === 0;
  }

  /** Answers with an error, or cuts an answer that has begun. */
  async #fail(cause: ProxyError): Promise<void> {
    this.#backend?.channel.destroy();
    this.#backend = undefined;
    const { lookup, metrics } = this.#deps;
    const { channel } = this.#client;
    if (this.hasAnswered) {
      channel.destroy();
      this.#finish();
      return;
    }
    const error = await lookup.explain(this.#target.backend, cause).catch(asProxyError);
    if (this.#isOver) return;
    const id = (this.#id ??= randomUUID());
    this.#error = error.code;
    metrics.logError({ id, backend: this.#target.backend }, error.code, error.cause);
    const isComplete = this.#body.isComplete && !this.#request.isLast;
    this.#answer.replaceWith(sendError(channel, this.#request, { code: error.code, id, isComplete }));
    channel.whenFlushed(() => this.#finish());
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#count[Symbol.dispose]();
    const { socket } = this.#client.channel;
    this.#deps.metrics.ended({
      id: () => (this.#id ??= randomUUID()),
      trace: () => traceInLines(this.#request.lines),
      backend: this.#target.backend,
      method: this.#request.method,
      status: this.#answer.status,
      error: this.#error,
      startedMs: this.#startedMs,
      sentBytes: socket.bytesWritten - this.#before.sent,
      receivedBytes: socket.bytesRead - this.#before.received,
    });
    const isBodyRead = this.#body.isComplete;
    this.#client.onEnd({ isReusable: isBodyRead && !this.#answer.isLast, isBodyRead });
  }
}
