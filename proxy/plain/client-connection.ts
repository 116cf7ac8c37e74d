/** The connection of a client, until a request on it is not plain. */
import { randomUUID } from 'node:crypto';
import type { NewConnection } from '../../core/http/gated-server.ts';
import { headersTimeoutMs, keepAliveTimeoutMs } from '../../core/http/listener.ts';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import { asProxyError } from '../errors.ts';
import type { ProxyError } from '../errors.ts';
import { Channel } from './channel.ts';
import type { ChannelUser } from './channel.ts';
import type { ExchangeEnd } from './client-side.ts';
import { sendError } from './error-answer.ts';
import { Exchange } from './exchange.ts';
import type { ExchangeDeps } from './exchange.ts';
import { isStartOfPlainHead, readRequestHead } from './request-head.ts';
import type { PlainRequest } from './request-head.ts';
import type { Target, Targets } from './target.ts';

/** Longer heads are rare, and Node's HTTP server limits them. */
const maxHeadBytes = 16 * 1024;

/** A head that arrives in more parts is read by Node's HTTP server, which does not begin anew with each part. */
const maxHeadParts = 16;

/** What is read of further requests before the answer to the current one has ended. */
const maxPendingBytes = 64 * 1024;

/** What is read, and for how long, after an answer to a request that has not ended, so that the client can read the answer. */
const maxRestBytes = 8 * 1024 * 1024;
const maxRestMs = 5_000;

const headEnd = Buffer.from('\r\n\r\n');

interface Deps extends ExchangeDeps {
  readonly errorBoundary: ErrorBoundary;
  /** Whether the proxy closes: then no further request is plain. */
  readonly isClosing: () => boolean;
  /** Called when this does not have the connection any more. */
  readonly onGone: (connection: ClientConnection) => void;
}

/** A request, its target, and the bytes from its head on. */
type FindArguments = [
  request: PlainRequest,
  finding: Promise<Target | undefined>,
  read: { readonly bytes: Buffer; readonly headBytes: number },
];

export class ClientConnection implements ChannelUser {
  readonly #deps: Deps;
  readonly #connection: NewConnection;
  readonly #channel: Channel;
  readonly #targets: Targets;
  readonly #find: (...args: FindArguments) => void;
  #exchange: Exchange | undefined;
  /** Bytes that wait: the beginning of a head, or requests after the current one. */
  #pending: Buffer | undefined;
  #headParts = 0;
  #state: 'new' | 'idle' | 'finding' | 'busy' | 'lingering' | 'gone' = 'new';
  #sinceMs: number;
  #restBytes = 0;

  constructor(connection: NewConnection, targets: Targets, deps: Deps) {
    this.#deps = deps;
    this.#connection = connection;
    this.#targets = targets;
    this.#find = deps.errorBoundary.wrap(
      (...args: FindArguments) => this.#findTarget(...args),
      () => this.destroy(),
    );
    this.#sinceMs = deps.clock.now().getTime();
    this.#channel = Channel.of(connection.socket, this, deps.errorBoundary);
  }

  /** Whether a request is in progress. */
  get isBusy(): boolean {
    return this.#state === 'busy';
  }

  onBytes(bytes: Buffer): void {
    if (this.#state === 'busy' && this.#exchange?.wantsBody) {
      const used = this.#exchange.onBody(bytes);
      if (used < bytes.length) this.#keep(bytes.subarray(used));
    } else if (this.#state === 'busy' || this.#state === 'finding') this.#keep(bytes);
    else if (this.#state === 'lingering') this.#drop(bytes);
    else if (this.#state !== 'gone') this.#readHead(this.#taken(bytes));
  }

  onEnd(): void {
    this.#channel.destroy();
  }

  onClose(): void {
    this.#leave();
    this.#exchange?.abort();
  }

  /** Closes the connection if it was silent for too long. */
  closeIfSilent(nowMs: number): void {
    const silentMs = nowMs - this.#sinceMs;
    const isInHead = this.#state === 'new' || (this.#state === 'idle' && this.#pending !== undefined);
    if (isInHead && silentMs > headersTimeoutMs) this.#refuse('head-too-slow');
    else if (this.#state === 'idle' && silentMs > keepAliveTimeoutMs) this.#channel.destroy();
    else if (this.#state === 'lingering' && silentMs > maxRestMs) this.#channel.destroy();
  }

  /** Closes the connection, and with it the request in progress. */
  destroy(): void {
    this.#channel.destroy();
  }

  #readHead(bytes: Buffer): void {
    const end = bytes.indexOf(headEnd);
    if (this.#deps.isClosing() || end > maxHeadBytes) {
      this.#handOver(bytes);
      return;
    }
    if (end < 0) {
      this.#waitForHead(bytes);
      return;
    }
    const request = readRequestHead(bytes.toString('latin1', 0, end + headEnd.length));
    const target = request && this.#targets.of(request);
    if (!request || !target) this.#handOver(bytes);
    else if (target instanceof Promise) this.#find(request, target, { bytes, headBytes: end + headEnd.length });
    else this.#begin(request, target, bytes.subarray(end + headEnd.length));
  }

  #waitForHead(bytes: Buffer): void {
    this.#headParts += 1;
    const mayBePlain = bytes.length <= maxHeadBytes && this.#headParts <= maxHeadParts;
    if (!mayBePlain || !isStartOfPlainHead(bytes.toString('latin1'))) {
      this.#handOver(bytes);
      return;
    }
    if (this.#headParts === 1 && this.#state === 'idle') this.#sinceMs = this.#nowMs();
    this.#pending = Buffer.from(bytes);
  }

  async #findTarget(...[request, finding, { bytes, headBytes }]: FindArguments): Promise<void> {
    this.#state = 'finding';
    this.#pending = Buffer.from(bytes);
    const startedMs = this.#nowMs();
    let target: Target | undefined;
    try {
      target = await finding;
    } catch (error) {
      if (!this.#isGone()) this.#fail(request, asProxyError(error), startedMs);
      return;
    }
    if (this.#isGone()) return;
    const all = this.#taken();
    if (target) this.#begin(request, target, all.subarray(headBytes));
    else this.#handOver(all);
  }

  /** Answers a request without a backend with an error, and closes the connection. */
  #fail(request: PlainRequest, { code, cause }: ProxyError, startedMs: number): void {
    const { metrics } = this.#deps;
    const id = randomUUID();
    metrics.logError({ id, backend: undefined }, code, cause);
    const { status } = sendError(this.#channel, request, { code, id, isComplete: false });
    const { method } = request;
    metrics.ended({
      id: () => id,
      trace: () => undefined,
      backend: undefined,
      method,
      status,
      error: code,
      startedMs,
      ...noBytes,
    });
    this.#linger(request.body === 0);
  }

  #begin(request: PlainRequest, target: Target, rest: Buffer): void {
    this.#state = 'busy';
    this.#headParts = 0;
    this.#connection.count(1);
    const client = {
      channel: this.#channel,
      onEnd: (end: ExchangeEnd) => this.#onExchangeEnd(end),
      refuse: () => this.#refuse('malformed'),
    };
    this.#exchange = new Exchange(this.#deps, client, { request, target });
    const used = this.#exchange.start(rest);
    if (used < rest.length) this.#keep(rest.subarray(used));
  }

  #onExchangeEnd({ isReusable, isBodyRead }: ExchangeEnd): void {
    this.#exchange = undefined;
    this.#connection.count(-1);
    if (this.#isGone() || this.#channel.socket.destroyed) return;
    this.#sinceMs = this.#nowMs();
    if (this.#channel.socket.isPaused()) this.#channel.resume();
    if (!isReusable) {
      this.#linger(isBodyRead);
      return;
    }
    this.#state = 'idle';
    if (this.#pending) this.#readHead(this.#taken());
  }

  /** Closes the connection when the client has read the answer: if it still sends, a reset could take the answer from it. */
  #linger(isBodyRead: boolean): void {
    this.#state = 'lingering';
    this.#sinceMs = this.#nowMs();
    if (isBodyRead) this.#channel.socket.destroySoon();
    else this.#channel.socket.end();
  }

  #keep(bytes: Buffer): void {
    this.#pending = this.#pending ? Buffer.concat([this.#pending, bytes]) : Buffer.from(bytes);
    if (this.#pending.length > maxPendingBytes) this.#channel.pause();
  }

  /** What waits, and more. */
  #taken(more?: Buffer): Buffer {
    const pending = this.#pending;
    this.#pending = undefined;
    if (!pending) return more ?? nothing;
    return more ? Buffer.concat([pending, more]) : pending;
  }

  #drop({ length }: Buffer): void {
    this.#restBytes += length;
    if (this.#restBytes > maxRestBytes) this.#channel.destroy();
  }

  #handOver(bytes: Buffer): void {
    this.#leave();
    this.#channel.release(bytes);
    this.#connection.handOver();
  }

  #refuse(problem: 'malformed' | 'head-too-slow'): void {
    this.#leave();
    this.#connection.refuse(problem);
  }

  #isGone(): boolean {
    return this.#state === 'gone';
  }

  #leave(): void {
    this.#state = 'gone';
    this.#deps.onGone(this);
  }

  #nowMs(): number {
    return this.#deps.clock.now().getTime();
  }
}

const nothing = Buffer.alloc(0);

const noBytes = { sentBytes: 0, receivedBytes: 0 };
