import { BroadcastChannel } from 'node:worker_threads';
import type { Log } from '../log/log.ts';
import type { Bus, Topic } from './bus.ts';

type Listener = (message: unknown) => void;

interface Delivery {
  readonly topic: string;
  readonly message: unknown;
  /** The listeners at the time of publishing. */
  readonly listeners: readonly Subscription[];
}

interface Subscription {
  readonly listener: Listener;
}

export interface InProcessBusOptions {
  readonly log: Log;
  /** The bus of this name, which several threads of this process open. Default: a bus of this thread alone. */
  readonly name?: string;
}

/** Opens a bus within this process. Messages are parsed when they are published, and delivered in that order. */
export function openInProcessBus(options: InProcessBusOptions): Bus {
  return new InProcessBus(options);
}

/** A message on its way to the other threads. */
interface Passed {
  readonly topic: string;
  readonly message: unknown;
}

class InProcessBus implements Bus {
  readonly #log: Log;
  readonly #otherThreads: BroadcastChannel | undefined;
  readonly #subscriptions = new Map<string, Set<Subscription>>();
  #deliveries: Delivery[] = [];
  #closed = false;

  constructor({ log, name }: InProcessBusOptions) {
    this.#log = log;
    if (name === undefined) return;
    this.#otherThreads = new BroadcastChannel(name);
    this.#otherThreads.onmessage = (event) => {
      const { topic, message } = event.data as Passed;
      this.#add(topic, message);
    };
    // It must not keep its process running.
    this.#otherThreads.unref();
  }

  async ping(): Promise<void> {
    this.#assertOpen();
  }

  async publish<Message>(topic: Topic<Message>, message: Message): Promise<void> {
    this.#assertOpen();
    const parsed = topic.message.parse(message);
    this.#otherThreads?.postMessage({ topic: topic.name, message: parsed } satisfies Passed);
    this.#add(topic.name, parsed);
  }

  async subscribe<Message>(topic: Topic<Message>, listener: (message: Message) => void): Promise<AsyncDisposable> {
    this.#assertOpen();
    const subscription: Subscription = { listener: listener as Listener };
    let subscriptions = this.#subscriptions.get(topic.name);
    if (!subscriptions) this.#subscriptions.set(topic.name, (subscriptions = new Set()));
    subscriptions.add(subscription);
    return {
      [Symbol.asyncDispose]: async () => {
        this.#subscriptions.get(topic.name)?.delete(subscription);
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#otherThreads?.close();
    this.#subscriptions.clear();
  }

  #add(topic: string, message: unknown): void {
    const listeners = [...(this.#subscriptions.get(topic) ?? [])];
    if (listeners.length === 0) return;
    this.#deliveries.push({ topic, message, listeners });
    // Not a microtask: listeners that publish to each other must not block the event loop.
    if (this.#deliveries.length === 1) setImmediate(() => this.#deliver());
  }

  #deliver(): void {
    const deliveries = this.#deliveries;
    this.#deliveries = [];
    for (const { topic, message, listeners } of deliveries) {
      for (const subscription of listeners) {
        if (this.#subscriptions.get(topic)?.has(subscription)) this.#notify(subscription, topic, message);
      }
    }
  }

  #notify(subscription: Subscription, topic: string, message: unknown): void {
    try {
      subscription.listener(message);
    } catch (error) {
      this.#log.error({ err: error, topic }, 'A bus listener failed');
    }
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error('The bus is closed');
  }
}
