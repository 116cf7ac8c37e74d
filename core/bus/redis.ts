/** Messages between processes, by publish and subscribe of a Redis. */
import type { Log } from '../log/log.ts';
import type { Bus, Topic } from './bus.ts';
import type { RedisClient } from './redis-client.ts';
import { RedisUnavailableError, openRedisLink, reasonOf } from './redis-link.ts';
import type { RedisLink } from './redis-link.ts';

export interface RedisBusOptions {
  /** See `redis-url.ts`. */
  readonly url: string;
  /** Leads the name of every channel. Default `berth`. */
  readonly prefix?: string;
  readonly log: Log;
}

/** How often a subscriber asks whether Redis is still there: nothing else would tell it that a machine has vanished. */
const heartbeatMs = 10_000;

interface Subscription {
  readonly listener: (message: unknown) => void;
  /** Once Redis has confirmed it: what was published before is not for this listener. */
  isListening: boolean;
}

interface Channel {
  readonly topic: Topic<unknown>;
  readonly subscriptions: Set<Subscription>;
}

/**
 * Opens a bus on a Redis. While that is away, messages are lost and nobody is kept waiting; those who listen, listen again
 * when it is back. Every message goes through Redis, so the sender's own process gets it once, as all others do.
 */
export async function openRedisBus({ url, prefix = 'berth', log }: RedisBusOptions): Promise<Bus> {
  await using opening = new AsyncDisposableStack();
  const [publisher, subscriber] = await Promise.all([
    openRedisLink(url, 'ask', log),
    openRedisLink(url, 'listen', log),
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
  #isLosing = false;
  #closed = false;

  constructor(parts: { publisher: RedisLink; subscriber: RedisLink; prefix: string; log: Log }) {
    this.#publisher = parts.publisher;
    this.#subscriber = parts.subscriber;
    this.#prefix = parts.prefix;
    this.#log = parts.log;
    this.#subscriber.client.on('message', (channel: string, text: string) => this.#onMessage(channel, text));
    this.#subscriber.onReady(() => void this.#subscribeAnew());
    this.#heartbeat = setInterval(() => void this.#beat(), heartbeatMs);
    this.#heartbeat.unref();
  }

  async ping(): Promise<void> {
    this.#assertOpen();
    await Promise.all([
      this.#publisher.ask(async (client) => await client.ping()),
      this.#subscriber.ask(async (client) => await client.ping()),
    ]);
  }

  async publish<Message>(topic: Topic<Message>, message: Message): Promise<void> {
    this.#assertOpen();
    const text = JSON.stringify(topic.message.parse(message));
    try {
      await this.#publish(this.#nameOf(topic), text);
      this.#isLosing = false;
    } catch (error) {
      if (this.#closed || this.#isLosing) return;
      this.#isLosing = true;
      this.#log.warn({ topic: topic.name, reason: reasonOf(error) }, 'Messages on the bus are lost');
    }
  }

  async subscribe<Message>(topic: Topic<Message>, listener: (message: Message) => void): Promise<AsyncDisposable> {
    this.#assertOpen();
    const name = this.#nameOf(topic);
    const subscription = { listener, isListening: false } as Subscription;
    let channel = this.#channels.get(name);
    if (!channel) this.#channels.set(name, (channel = { topic, subscriptions: new Set() }));
    channel.subscriptions.add(subscription);
    // Also where others listen to it already: the answer says that all that was published before has been told.
    await this.#subscribe([name]);
    subscription.isListening = true;
    return { [Symbol.asyncDispose]: async () => await this.#leave(name, subscription) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearInterval(this.#heartbeat);
    this.#channels.clear();
    await Promise.all([this.#publisher[Symbol.asyncDispose](), this.#subscriber[Symbol.asyncDispose]()]);
  }

  /** Messages reach the socket in the order of the calls, and none waits for an outage to end. */
  async #publish(channel: string, text: string): Promise<void> {
    if (!this.#publisher.isReady) throw new RedisUnavailableError('Redis is away');
    await this.#publisher.ask(async (client) => await publishTo(client, channel, text));
  }

  async #leave(name: string, subscription: Subscription): Promise<void> {
    const subscriptions = this.#channels.get(name)?.subscriptions;
    if (!subscriptions?.delete(subscription) || subscriptions.size > 0) return;
    this.#channels.delete(name);
    // A Redis that is away has forgotten the channel anyway.
    await this.#subscriber.client.unsubscribe(name).catch(() => {});
  }

  async #subscribeAnew(): Promise<void> {
    await this.#subscribe([...this.#channels.keys()]);
  }

  /** Subscribes, or leaves it to the moment when Redis is back. */
  async #subscribe(names: readonly string[]): Promise<void> {
    if (names.length === 0 || !this.#subscriber.isReady) return;
    try {
      await this.#subscriber.ask(async (client) => await client.subscribe(...names));
    } catch (error) {
      if (this.#closed || !this.#subscriber.isReady) return;
      this.#log.error({ channels: names, reason: reasonOf(error) }, 'Redis did not take a subscription');
    }
  }

  /** A connection on which an answer is overdue is torn down, and made anew. */
  async #beat(): Promise<void> {
    if (this.#subscriber.isReady) await this.#subscriber.client.ping().catch(() => {});
  }

  #onMessage(name: string, text: string): void {
    const channel = this.#channels.get(name);
    if (!channel) return;
    const { topic, subscriptions } = channel;
    const message = readMessage(topic, text);
    if (!message.success) {
      this.#log.warn({ topic: topic.name, reason: message.reason }, 'A malformed message on the bus was dropped');
      return;
    }
    for (const { isListening, listener } of subscriptions) {
      if (isListening) this.#tell(listener, topic, message.data);
    }
  }

  #tell(listener: Subscription['listener'], topic: Topic<unknown>, message: unknown): void {
    try {
      listener(message);
    } catch (error) {
      this.#log.error({ err: error, topic: topic.name }, 'A listener of the bus threw');
    }
  }

  #nameOf(topic: { readonly name: string }): string {
    return `${this.#prefix}:bus:${topic.name}`;
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error('The bus is closed');
  }
}

/** In a cluster each message would leave from any node, and overtake others: a script goes to the node of its key. */
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
