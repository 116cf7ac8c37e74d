/** Messages between processes, with publish and subscribe of Redis. */
import type { Log } from '../log/log.ts';
import { notifyListener } from './bus.ts';
import type { Bus, Topic } from './bus.ts';
import type { RedisClient } from './redis-client.ts';
import { RedisUnavailableError, openRedisLink, reasonOf } from './redis-link.ts';
import type { RedisLink } from './redis-link.ts';

export interface RedisBusOptions {
  /** See `redis-url.ts`. */
  readonly url: string;
  /** Prefix of every channel name. Default: `berth`. */
  readonly prefix?: string;
  readonly log: Log;
}

/** How often a subscriber pings Redis: this detects a machine that has crashed, which closes no connection. */
const heartbeatMs = 10_000;

interface Subscription {
  readonly listener: (message: unknown) => void;
  /** Set when Redis has confirmed the subscription: earlier messages are not delivered to this listener. */
  isListening: boolean;
}

interface Channel {
  readonly topic: Topic<unknown>;
  readonly subscriptions: Set<Subscription>;
}

/**
 * Opens a bus on Redis. While Redis is unavailable, messages are lost and publishers do not wait; afterwards, subscriptions are
 * restored. Every message goes through Redis, so the publishing process also receives it once.
 */
export async function openRedisBus({ url, prefix = 'berth', log }: RedisBusOptions): Promise<Bus> {
  await using opening = new AsyncDisposableStack();
  const [publisher, subscriber] = await Promise.all([
    openRedisLink(url, 'request', log),
    openRedisLink(url, 'subscribe', log),
  ]);
  opening.use(publisher);
  opening.use(subscriber);
  const bus = new RedisBus({ publisher, subscriber, prefix, log });
  opening.move();
  return bus;
}

class RedisBus implements Bus {
  readonly #publisher: RedisLink;
  readonly #subscriber: RedisLink;
  readonly #prefix: string;
  readonly #log: Log;
  readonly #channels = new Map<string, Channel>();
  readonly #heartbeat: NodeJS.Timeout;
  #isLosingMessages = false;
  #closed = false;

  constructor(parts: { publisher: RedisLink; subscriber: RedisLink; prefix: string; log: Log }) {
    this.#publisher = parts.publisher;
    this.#subscriber = parts.subscriber;
    this.#prefix = parts.prefix;
    this.#log = parts.log;
    this.#subscriber.client.on('message', (channel: string, text: string) => this.#onMessage(channel, text));
    this.#subscriber.onReady(() => void this.#subscribe([...this.#channels.keys()]));
    this.#heartbeat = setInterval(() => void this.#beat(), heartbeatMs);
    this.#heartbeat.unref();
  }

  async ping(): Promise<void> {
    this.#assertOpen();
    await Promise.all([
      this.#publisher.request(async (client) => await client.ping()),
      this.#subscriber.request(async (client) => await client.ping()),
    ]);
  }

  async publish<Message>(topic: Topic<Message>, message: Message): Promise<void> {
    this.#assertOpen();
    const text = JSON.stringify(topic.message.parse(message));
    try {
      await this.#publish(this.#nameOf(topic), text);
      this.#isLosingMessages = false;
    } catch (error) {
      if (this.#closed || this.#isLosingMessages) return;
      this.#isLosingMessages = true;
      this.#log.warn({ topic: topic.name, reason: reasonOf(error) }, 'Bus messages are being lost');
    }
  }

  async subscribe<Message>(topic: Topic<Message>, listener: (message: Message) => void): Promise<AsyncDisposable> {
    this.#assertOpen();
    const name = this.#nameOf(topic);
    const subscription = { listener, isListening: false } as Subscription;
    let channel = this.#channels.get(name);
    if (!channel) this.#channels.set(name, (channel = { topic, subscriptions: new Set() }));
    channel.subscriptions.add(subscription);
    // Also for a channel that has listeners: after the answer, all earlier messages have been delivered.
    await this.#subscribe([name]);
    subscription.isListening = true;
    return { [Symbol.asyncDispose]: async () => await this.#unsubscribe(name, subscription) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearInterval(this.#heartbeat);
    this.#channels.clear();
    await Promise.all([this.#publisher[Symbol.asyncDispose](), this.#subscriber[Symbol.asyncDispose]()]);
  }

  /** Writes messages to the socket in the order of the calls. Fails at once during an outage. */
  async #publish(channel: string, text: string): Promise<void> {
    if (!this.#publisher.isReady) throw new RedisUnavailableError('Redis is unavailable');
    await this.#publisher.request(async (client) => await publishTo(client, channel, text));
  }

  async #unsubscribe(name: string, subscription: Subscription): Promise<void> {
    const subscriptions = this.#channels.get(name)?.subscriptions;
    if (!subscriptions?.delete(subscription) || subscriptions.size > 0) return;
    this.#channels.delete(name);
    // If Redis is unavailable, it has lost the subscription anyway.
    await this.#subscriber.client.unsubscribe(name).catch(() => {});
  }

  /** Subscribes to channels. Does nothing during an outage, after which all subscriptions are restored. */
  async #subscribe(names: readonly string[]): Promise<void> {
    if (names.length === 0 || !this.#subscriber.isReady) return;
    try {
      await this.#subscriber.request(async (client) => await client.subscribe(...names));
    } catch (error) {
      if (this.#closed || !this.#subscriber.isReady) return;
      this.#log.error({ channels: names, reason: reasonOf(error) }, 'Redis rejected a subscription');
    }
  }

  /** ioredis closes and reopens a connection on which an answer is overdue. */
  async #beat(): Promise<void> {
    if (this.#subscriber.isReady) await this.#subscriber.client.ping().catch(() => {});
  }

  #onMessage(name: string, text: string): void {
    const channel = this.#channels.get(name);
    if (!channel) return;
    const { topic, subscriptions } = channel;
    const message = readMessage(topic, text);
    if (!message.success) {
      this.#log.warn({ topic: topic.name, reason: message.reason }, 'Dropped a malformed bus message');
      return;
    }
    for (const { isListening, listener } of subscriptions) {
      if (isListening) notifyListener(this.#log, topic.name, () => listener(message.data));
    }
  }

  #nameOf(topic: { readonly name: string }): string {
    return `${this.#prefix}:bus:${topic.name}`;
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error('The bus is closed');
  }
}

/** In a cluster, messages sent through different nodes could overtake each other. A script is always sent to the node of its key. */
async function publishTo(client: RedisClient, channel: string, text: string): Promise<unknown> {
  if (!client.isCluster) return await client.publish(channel, text);
  return await client.eval(`return redis.call('PUBLISH', KEYS[1], ARGV[1])`, 1, channel, text);
}

function readMessage(
  topic: Topic<unknown>,
  text: string,
): { success: true; data: unknown } | { success: false; reason: string } {
  try {
    return { success: true, data: topic.message.parse(JSON.parse(text)) };
  } catch (error) {
    return { success: false, reason: reasonOf(error) };
  }
}
