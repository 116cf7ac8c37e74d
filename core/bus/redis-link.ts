import { TimeoutError, withTimeout } from '../async/with-timeout.ts';
import type { Log } from '../log/log.ts';
import { makeRedisClient } from './redis-client.ts';
import type { RedisClient, RedisUse } from './redis-client.ts';
import { parseRedisUrl } from './redis-url.ts';

/** Redis cannot be reached, or does not answer. What was asked may have been done all the same. */
export class RedisUnavailableError extends Error {
  override readonly name = 'RedisUnavailableError';
}

/** A connection to Redis that comes back by itself and knows whether it is there. */
export interface RedisLink extends AsyncDisposable {
  readonly client: RedisClient;
  readonly isReady: boolean;
  /**
   * Asks something. Rejects with `RedisUnavailableError` after a second or two at most: an outage is waited for in its first
   * second, since many are over by then, and later not at all.
   */
  ask<Answer>(question: (client: RedisClient) => Promise<Answer>): Promise<Answer>;
  /** Is called each time the connection has come to stand. */
  onReady(listener: () => void): void;
}

/** How long an answer may take. A healthy Redis needs less than a millisecond; somebody waits for this one. */
const answerLimit = { ms: 1_000, message: 'Redis did not answer in time' };

/** How long an outage is waited for: a Redis that restarts is back in less. */
const outageGraceMs = 1_000;

interface Outage {
  readonly sinceMs: number;
  /** Resolves when the outage, or the patience with it, is over. */
  readonly waited: Promise<void>;
  readonly end: () => void;
  isLogged: boolean;
}

/** Opens a connection; resolves when it stands, or after a second without: an absent Redis keeps nobody from starting. */
export async function openRedisLink(url: string, use: RedisUse, log: Log): Promise<RedisLink> {
  const target = parseRedisUrl(url);
  const closing = new AbortController();
  const client = await makeRedisClient(target, use, closing.signal);
  const link = new WatchedLink(client, closing, log.child({ redis: target.display, use }));
  await link.settle();
  return link;
}

class WatchedLink implements RedisLink {
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

  async settle(): Promise<void> {
    await this.#outage?.waited;
  }

  async ask<Answer>(question: (client: RedisClient) => Promise<Answer>): Promise<Answer> {
    if (!this.isReady) await this.settle();
    if (!this.isReady) throw new RedisUnavailableError(`Redis is away: ${this.#lastReason ?? 'it does not answer'}`);
    try {
      return await withTimeout(answerLimit, async () => await question(this.client));
    } catch (error) {
      // Not kept as the cause: errors of ioredis carry the command, at times with the password in it.
      throw new RedisUnavailableError(
        error instanceof TimeoutError ? error.message : `Redis did not answer: ${reasonOf(error)}`,
      );
    }
  }

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
    this.#log.warn({ reason: this.#lastReason }, 'Redis is away');
  }

  #onReady(): void {
    const outage = this.#outage;
    this.#outage = undefined;
    this.#lastReason = undefined;
    outage?.end();
    if (outage?.isLogged) this.#log.info({ awayMs: Math.round(performance.now() - outage.sinceMs) }, 'Redis is back');
  }
}

/** What an error says, and no more: errors of ioredis carry the command, at times with the password in it. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // In ioredis' words for a connection that has just broken, it tells the reader to set an option.
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
