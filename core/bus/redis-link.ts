import { TimeoutError, withTimeout } from '../async/with-timeout.ts';
import type { Log } from '../log/log.ts';
import { makeRedisClient } from './redis-client.ts';
import type { RedisClient, RedisUse } from './redis-client.ts';
import { parseRedisUrl } from './redis-url.ts';

/** Redis cannot be reached, or does not answer. A command may have been executed all the same. */
export class RedisUnavailableError extends Error {
  override readonly name = 'RedisUnavailableError';
}

/** How long an answer may take. A healthy Redis needs less than a millisecond, and a request waits for the answer. */
const answerLimit = { ms: 1_000, message: 'Redis did not answer in time' };

/** How long commands wait during an outage: a restart of Redis takes less. */
const outageGraceMs = 1_000;

interface Outage {
  readonly sinceMs: number;
  /** Resolves when the outage or its grace period has ended. */
  readonly waited: Promise<void>;
  readonly end: () => void;
  isLogged: boolean;
}

/** Opens a connection. Resolves when it is ready, or after a second: processes also start without Redis. */
export async function openRedisLink(url: string, use: RedisUse, log: Log): Promise<RedisLink> {
  const target = parseRedisUrl(url);
  const closing = new AbortController();
  const client = await makeRedisClient(target, use, closing.signal);
  const link = new RedisLink(client, closing, log.child({ redis: target.display, use }));
  await link.settle();
  return link;
}

/** A connection to Redis that reconnects by itself. */
export class RedisLink implements AsyncDisposable {
  readonly client: RedisClient;
  readonly #closing: AbortController;
  readonly #log: Log;
  #outage: Outage | undefined = beginOutage();
  #lastReason: string | undefined;

  constructor(client: RedisClient, closing: AbortController, log: Log) {
    this.client = client;
    this.#closing = closing;
    this.#log = log;
    client.on('error', (error: Error) => (this.#lastReason = reasonOf(error)));
    client.on('close', () => this.#onClose());
    client.on('ready', () => this.#onReady());
  }

  get isReady(): boolean {
    return this.client.status === 'ready';
  }

  /** Resolves when the connection is ready, or has been unavailable for a second. */
  async settle(): Promise<void> {
    await this.#outage?.waited;
  }

  /**
   * Sends a command. Rejects with `RedisUnavailableError` after two seconds at most. It waits for the end of an outage only during
   * the first second of the outage, in which many outages end.
   */
  async request<Answer>(send: (client: RedisClient) => Promise<Answer>): Promise<Answer> {
    if (!this.isReady) await this.settle();
    if (!this.isReady)
      throw new RedisUnavailableError(`Redis is unavailable: ${this.#lastReason ?? 'it does not answer'}`);
    try {
      return await withTimeout(answerLimit, async () => await send(this.client));
    } catch (error) {
      // No `cause`: errors of ioredis contain the command, sometimes with the password.
      throw new RedisUnavailableError(
        error instanceof TimeoutError ? error.message : `Redis did not answer: ${reasonOf(error)}`,
      );
    }
  }

  /** The listener is called each time the connection is ready. */
  onReady(listener: () => void): void {
    this.client.on('ready', listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#outage?.end();
    this.client.disconnect();
  }

  #onClose(): void {
    if (this.#closing.signal.aborted) return;
    this.#outage ??= beginOutage();
    if (this.#outage.isLogged) return;
    this.#outage.isLogged = true;
    this.#log.warn({ reason: this.#lastReason }, 'Redis is unavailable');
  }

  #onReady(): void {
    const outage = this.#outage;
    this.#outage = undefined;
    this.#lastReason = undefined;
    outage?.end();
    if (outage?.isLogged)
      this.#log.info({ outageMs: Math.round(performance.now() - outage.sinceMs) }, 'Redis is available again');
  }
}

/** The message of an error without its other fields: errors of ioredis contain the command, sometimes with the password. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // The message of ioredis for a connection that has just broken recommends an option.
  if (error.message.includes('enableOfflineQueue')) return 'the connection is lost';
  return error.message || ((error as NodeJS.ErrnoException).code ?? error.name);
}

function beginOutage(): Outage {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, outageGraceMs);
  const end = () => {
    clearTimeout(timer);
    resolve();
  };
  return { sinceMs: performance.now(), waited: promise, end, isLogged: false };
}
