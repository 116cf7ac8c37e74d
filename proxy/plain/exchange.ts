/** A plain request and its answer. */
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import { asProxyError, unreachableError } from '../errors.ts';
import type { ProxyError } from '../errors.ts';
import { isReplayable } from '../headers.ts';
import type { Lookup } from '../lookup.ts';
import { Answer } from './answer.ts';
import type { BackendConnection, BackendConnections, Opening } from './backend-connections.ts';
import { LengthBody, MalformedBody, noBody } from './body.ts';
import type { Body } from './body.ts';
import { ChunkedBody } from './chunked-body.ts';
import { nothing } from './channel.ts';
import type { Channel, ChannelUser } from './channel.ts';
import { sendError } from './error-answer.ts';
import { ExchangeRecord } from './exchange-record.ts';
import type { RecordDeps } from './exchange-record.ts';
import type { PlainRequest } from './request-head.ts';
import type { Target } from './target.ts';

export interface ExchangeDeps extends RecordDeps {
  readonly errorBoundary: ErrorBoundary;
  readonly lookup: Lookup;
  readonly backends: BackendConnections;
  /** Whether the proxy is closing: then further requests are handed over. */
  readonly isClosing: () => boolean;
}

/** A request and the backend that answers it. */
export interface PlainExchange {
  readonly request: PlainRequest;
  readonly target: Target;
  readonly nowMs: number;
}

/** The end of an exchange, for the client's connection. */
export interface ExchangeEnd {
  /** Whether the connection can carry another request. */
  readonly isReusable: boolean;
  /** Whether the whole request was read. */
  readonly isBodyRead: boolean;
}

/** The client of an exchange. */
export interface ClientSide {
  readonly channel: Channel;
  /** The exchange has ended. */
  onExchangeEnd(end: ExchangeEnd): void;
  /** Answers a request whose body is not valid, and closes the connection. */
  refuseBody(): void;
}

/** The user of the backend's channel during a request. The client's connection calls `onBody` and `abort`. */
export class Exchange implements ChannelUser {
  readonly #deps: ExchangeDeps;
  readonly #client: ClientSide;
  readonly #request: PlainRequest;
  readonly #target: Target;
  readonly #body: Body;
  readonly #answer: Answer;
  readonly #record: ExchangeRecord;
  /** The connection to the backend that is being opened. */
  #opening: Opening | undefined;
  #backend: BackendConnection | undefined;
  /** The part of the body that arrived with the head, until the head is sent. */
  #early: Buffer = nothing;
  #isRetried = false;
  #hasEnded = false;

  constructor(deps: ExchangeDeps, client: ClientSide, { request, target, nowMs }: PlainExchange) {
    this.#deps = deps;
    this.#client = client;
    this.#request = request;
    this.#target = target;
    this.#body = bodyOf(request.body);
    this.#answer = new Answer(request, { heads: target.answers, client: client.channel, isClosing: deps.isClosing });
    this.#record = new ExchangeRecord(deps, client.channel, { request, target, nowMs });
  }

  get backend(): string {
    return this.#target.backend;
  }

  /** Whether the client has more of the body to send. */
  get wantsBody(): boolean {
    return !this.#body.isComplete;
  }

  /** Whether the answer has begun. */
  get #hasAnswered(): boolean {
    return this.#answer.status !== undefined;
  }

  /** Sends the request. Returns how many of the bytes after its head belong to it. */
  start(bytes: Buffer): number {
    const parts: Buffer[] = [];
    const used = bytes.length === 0 ? 0 : this.#readBody(bytes, (part) => parts.push(part));
    if (this.#hasEnded) return used;
    const pooled = this.#deps.backends.take(this.#target.backend);
    if (pooled) {
      this.#send(pooled, parts);
      return used;
    }
    if (parts.length > 0) this.#early = Buffer.concat(parts);
    if (this.wantsBody) this.#client.channel.pause();
    void this.#connect();
    return used;
  }

  /** Sends more of the body. Returns how many of the bytes belong to it. */
  onBody(bytes: Buffer): number {
    const backend = this.#backend?.channel;
    const { channel } = this.#client;
    const used = this.#readBody(bytes, (part) => backend && channel.pass(part, backend));
    if (backend && !this.#hasEnded) channel.waitFor(backend);
    return used;
  }

  /** Ends the exchange, because the client has disconnected or the proxy closes. */
  abort(): void {
    this.#opening?.cancel();
    if (this.#backend) this.#backend.discard();
    this.#finish();
  }

  #readBody(bytes: Buffer, pass: (part: Buffer) => void): number {
    try {
      return this.#body.read(bytes, pass);
    } catch (error) {
      if (!(error instanceof MalformedBody)) throw error;
      if (this.#backend) this.#backend.discard();
      this.#opening?.cancel();
      if (this.#hasAnswered) this.#client.channel.destroy();
      else this.#client.refuseBody();
      this.#finish();
      return bytes.length;
    }
  }

  async #connect(): Promise<void> {
    const { channel } = this.#client;
    try {
      this.#opening = this.#deps.backends.open(this.#target);
      const connection = await this.#opening.opened;
      if (this.#hasEnded) {
        connection.discard();
        return;
      }
      if (this.wantsBody) channel.resume();
      this.#send(connection, [this.#early]);
      this.#early = nothing;
    } catch (error) {
      if (!this.#hasEnded) await this.#fail(unreachableError(error));
    }
  }

  #send(connection: BackendConnection, parts: readonly Buffer[]): void {
    this.#backend = connection;
    const { channel } = connection;
    channel.user = this;
    channel.writeWith(this.#target.head, parts);
    if (this.wantsBody) this.#client.channel.waitFor(channel);
  }

  /** The backend has sent bytes. */
  onBytes(bytes: Buffer): void {
    const backend = this.#backend;
    if (!backend || this.#hasEnded) return;
    try {
      this.#answer.read(bytes, backend.channel);
    } catch (error) {
      backend.discard();
      void this.#fail(unreachableError(error));
      return;
    }
    if (this.#answer.isComplete) this.#complete(backend);
    else backend.channel.waitFor(this.#client.channel);
  }

  /** The whole answer was read. The exchange ends when the client's connection has accepted it. */
  #complete(backend: BackendConnection): void {
    const { channel } = this.#client;
    // Whatever is left of the body would be written before the next request, and from a buffer into which the client's channel reads on.
    const hasSentBody = this.#body.isComplete && backend.channel.isFree;
    if (!this.#answer.isReusable || !hasSentBody) {
      this.#backend = undefined;
      backend.discard();
    } else if (channel.isFree) {
      this.#backend = undefined;
      this.#deps.backends.keep(backend);
    } else {
      // The client's connection may still write from its read buffer.
      backend.channel.pause();
    }
    channel.whenFlushed(() => this.#release());
  }

  #release(): void {
    if (this.#hasEnded) return;
    if (this.#backend) this.#deps.backends.keep(this.#backend);
    this.#backend = undefined;
    this.#finish();
  }

  /** The backend has closed its side. */
  onEnd(): void {
    this.#onBackendEnd();
  }

  /** The connection to the backend is closed. */
  onClose(error: Error | undefined): void {
    this.#onBackendEnd(error ?? new Error('The backend closed the connection'));
  }

  #onBackendEnd(error?: Error): void {
    const backend = this.#backend;
    const { method, body } = this.#request;
    if (!backend || this.#hasEnded || this.#answer.isComplete) return;
    this.#backend = undefined;
    backend.discard();
    if (!error && this.#answer.endWithConnection()) {
      this.#complete(backend);
      return;
    }
    if (backend.isUsed && !this.#answer.hasBegun && !this.#isRetried && isReplayable(method, body !== 0)) {
      this.#isRetried = true;
      void this.#connect();
      return;
    }
    void this.#fail(unreachableError(error ?? new Error('The connection ended without a whole answer')));
  }

  /** Answers with an error, or cuts an answer that has begun. */
  async #fail(cause: ProxyError): Promise<void> {
    if (this.#backend) this.#backend.discard();
    this.#backend = undefined;
    const { lookup } = this.#deps;
    const { channel } = this.#client;
    if (this.#hasAnswered) {
      channel.destroy();
      this.#finish();
      return;
    }
    const error = await lookup.explain(this.#target.backend, cause).catch(asProxyError);
    if (this.#hasEnded) return;
    this.#record.fail(error.code, error.cause);
    const isComplete = this.#body.isComplete && !this.#request.isLast;
    this.#answer.replaceWith(
      sendError(channel, this.#request, { code: error.code, id: this.#record.id(), isComplete }),
    );
    channel.whenFlushed(() => this.#finish());
  }

  #finish(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#record.end(this.#answer.status);
    const isBodyRead = this.#body.isComplete;
    this.#client.onExchangeEnd({ isReusable: isBodyRead && !this.#answer.isLast, isBodyRead });
  }
}

function bodyOf(body: PlainRequest['body']): Body {
  if (body === 0) return noBody;
  return body === 'chunked' ? new ChunkedBody({ isLenient: false }) : new LengthBody(body);
}
