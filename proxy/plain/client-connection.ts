/** The connection of a client, until a request on it is not plain. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../core/clock/clock.ts';
import type { NewConnection } from '../../core/http/gated-server.ts';
import { headersTimeoutMs, keepAliveTimeoutMs } from '../../core/http/listener.ts';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import { ProxyError, asProxyError } from '../errors.ts';
import { Channel, nothing } from './channel.ts';
import type { ChannelUser } from './channel.ts';
import { sendError } from './error-answer.ts';
import { Exchange } from './exchange.ts';
import type { ClientSide, ExchangeDeps, ExchangeEnd, PlainExchange } from './exchange.ts';
import { HeadReader } from './head-reader.ts';
import type { Target, Targets } from './target.ts';

/** How much of further requests is read before the answer to the current one has ended. */
const maxPendingBytes = 64 * 1024;

/** How much of a request is read after its answer, and for how long, so that the client can read the answer. */
const maxRestBytes = 8 * 1024 * 1024;
const maxRestMs = 5_000;

interface Deps extends ExchangeDeps {
  readonly clock: Clock;
  readonly errorBoundary: ErrorBoundary;
  /** Called when the connection was closed or handed over. */
  readonly onGone: (connection: ClientConnection) => void;
}

export class ClientConnection implements ChannelUser, ClientSide {
  readonly channel: Channel;
  readonly #deps: Deps;
  readonly #connection: NewConnection;
  readonly #targets: Targets;
  readonly #heads = new HeadReader();
  #exchange: Exchange | undefined;
  /** Bytes that are not read yet: the beginning of a head, or requests after the current one. */
  #pending: Buffer | undefined;
  #state: 'new' | 'idle' | 'head' | 'finding' | 'busy' | 'lingering' | 'gone' = 'new';
  /** When `closeIfSilent` first saw the current state. */
  #sinceMs: number | undefined;
  #restBytes = 0;

  constructor(connection: NewConnection, targets: Targets, deps: Deps) {
    this.#deps = deps;
    this.#connection = connection;
    this.#targets = targets;
    this.channel = Channel.of(connection.socket, this, deps.errorBoundary);
  }

  /** Whether a request is in progress. */
  get isBusy(): boolean {
    return this.#state === 'busy' || this.#state === 'finding';
  }

  /** The backend of the request in progress. */
  get backend(): string | undefined {
    return this.#exchange?.backend;
  }

  onBytes(bytes: Buffer): void {
    if (this.#state === 'busy' && this.#exchange?.wantsBody) {
      const used = this.#exchange.onBody(bytes);
      if (used < bytes.length) this.#keep(bytes.subarray(used));
    } else if (this.#state === 'busy' || this.#state === 'finding') this.#keep(bytes);
    else if (this.#state === 'lingering') this.#drop(bytes);
    else if (this.#state !== 'gone') this.#readHead(this.#takePending(bytes));
  }

  onEnd(): void {
    this.channel.destroy();
  }

  onClose(): void {
    this.#leave();
    this.#exchange?.abort();
  }

  /** Closes the connection if it was silent for too long. */
  closeIfSilent(nowMs: number): void {
    const silentMs = nowMs - (this.#sinceMs ??= nowMs);
    const isInHead = this.#state === 'new' || this.#state === 'head';
    if (isInHead && silentMs > headersTimeoutMs) this.#refuse('head-too-slow');
    else if (this.#state === 'idle' && silentMs > keepAliveTimeoutMs) this.channel.destroy();
    else if (this.#state === 'lingering' && silentMs > maxRestMs) this.channel.destroy();
  }

  /** Closes the connection, and with it the request in progress. */
  destroy(): void {
    this.channel.destroy();
  }

  #readHead(bytes: Buffer): void {
    const request = this.#deps.isClosing() ? undefined : this.#heads.read(bytes);
    if (request === 'unfinished') {
      this.#pending = Buffer.from(bytes);
      if (this.#state === 'idle') this.#enter('head');
      return;
    }
    const nowMs = this.#deps.clock.now().getTime();
    const target = request && this.#targets.of(request, nowMs);
    if (!request || !target) {
      this.#handOver(bytes);
      return;
    }
    this.#connection.count(1);
    if (target instanceof Promise) this.#find({ request, nowMs }, target, bytes);
    else this.#begin({ request, target, nowMs }, bytes);
  }

  #find(read: Omit<PlainExchange, 'target'>, finding: Promise<Target | undefined>, bytes: Buffer): void {
    this.#state = 'finding';
    this.#pending = Buffer.from(bytes);
    const find = async () => {
      const found = await finding.catch(asProxyError);
      if (this.#state !== 'finding') return;
      // If many bytes arrived meanwhile, it was paused.
      this.channel.resume();
      if (found instanceof ProxyError) this.#fail(read, found);
      else if (found) this.#begin({ ...read, target: found }, this.#takePending());
      else {
        this.#handOver(this.#takePending());
        // Node's server counts the request itself, before the end of this turn of the event loop.
        setImmediate(() => this.#connection.count(-1));
      }
    };
    this.#deps.errorBoundary.wrap(find, () => this.destroy())();
  }

  /** Answers a request without a backend with an error, and closes the connection, which counts as busy until then. */
  #fail({ request, nowMs }: Omit<PlainExchange, 'target'>, { code, cause }: ProxyError): void {
    const { metrics } = this.#deps;
    const id = randomUUID();
    metrics.logError({ id, backend: undefined }, code, cause);
    const { status } = sendError(this.channel, request, { code, id, isComplete: false });
    const ended = { method: request.method, status, error: code, startedMs: nowMs, sentBytes: 0, receivedBytes: 0 };
    metrics.ended({ ...ended, id: () => id, trace: () => undefined, backend: undefined });
    this.#linger(request.body === 0);
  }

  /** Starts an exchange with the bytes from its head on. */
  #begin(exchange: PlainExchange, bytes: Buffer): void {
    this.#state = 'busy';
    this.#exchange = new Exchange(this.#deps, this, exchange);
    const { headBytes } = this.#heads;
    const rest = bytes.length === headBytes ? nothing : bytes.subarray(headBytes);
    const used = this.#exchange.start(rest);
    if (used < rest.length) this.#keep(rest.subarray(used));
  }

  onExchangeEnd({ isReusable, isBodyRead }: ExchangeEnd): void {
    this.#exchange = undefined;
    this.#connection.count(-1);
    if (this.#state === 'gone' || this.channel.socket.destroyed) return;
    if (this.channel.socket.isPaused()) this.channel.resume();
    if (!isReusable) {
      this.#linger(isBodyRead);
      return;
    }
    this.#enter('idle');
    if (this.#pending) this.#readHead(this.#takePending());
  }

  refuseBody(): void {
    this.#refuse('malformed');
  }

  /** Closes the connection when the client has read the answer. A reset while the client still sends could discard the answer. */
  #linger(isBodyRead: boolean): void {
    this.#enter('lingering');
    if (isBodyRead) this.channel.close();
    else this.channel.end();
  }

  #keep(bytes: Buffer): void {
    this.#pending = this.#pending ? Buffer.concat([this.#pending, bytes]) : Buffer.from(bytes);
    if (this.#pending.length > maxPendingBytes) this.channel.pause();
  }

  /** Returns the pending bytes, followed by `more`. */
  #takePending(more?: Buffer): Buffer {
    const pending = this.#pending;
    this.#pending = undefined;
    if (!pending) return more ?? nothing;
    return more ? Buffer.concat([pending, more]) : pending;
  }

  #drop({ length }: Buffer): void {
    this.#restBytes += length;
    if (this.#restBytes > maxRestBytes) this.channel.destroy();
  }

  #handOver(bytes: Buffer): void {
    this.#leave();
    this.channel.release(bytes);
    this.#connection.handOver();
  }

  #refuse(problem: 'malformed' | 'head-too-slow'): void {
    this.#leave();
    this.channel.flush();
    this.#connection.refuse(problem);
  }

  #leave(): void {
    this.#state = 'gone';
    this.#deps.onGone(this);
  }

  #enter(state: 'idle' | 'head' | 'lingering'): void {
    this.#state = state;
    this.#sinceMs = undefined;
  }
}
