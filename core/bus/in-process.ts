import { MessageChannel } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import type { Log } from '../log/log.ts';
import { notifyListener } from './bus.ts';
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
  /** In every thread but the first: the port to the first thread, from `connect`. */
  readonly port?: MessagePort;
}

/** The bus in its first thread. */
export interface SharedBus extends Bus {
  /** Connects another thread of this process. The port must be transferred to it. */
  connect(): MessagePort;
}

/** Opens a bus within this process. Messages are parsed when they are published, and delivered in that order. */
export function openInProcessBus(options: InProcessBusOptions): SharedBus {
  return new InProcessBus(options);
}

/** A message between threads. */
interface Forwarded {
  readonly topic: string;
  readonly message: unknown;
}

/**
 * The threads form a star: the first thread forwards the messages of the others. A `BroadcastChannel` would need no first thread, but
 * the first message that it receives loads Node's client for `fetch`: 36 ms of CPU time and 13 MB of memory in each thread.
 */
class InProcessBus implements SharedBus {
  readonly #log: Log;
  readonly #ports = new Set<MessagePort>();
  readonly #subscriptions = new Map<string, Set<Subscription>>();
  #deliveries: Delivery[] = [];
  #closed = false;

  constructor({ log, port }: InProcessBusOptions) {
    this.#log = log;
    if (port) this.#listen(port);
  }

  connect(): MessagePort {
    this.#assertOpen();
    const { port1, port2 } = new MessageChannel();
    this.#listen(port1);
    return port2;
  }

  #listen(port: MessagePort): void {
    this.#ports.add(port);
    // Emitted when the thread at the other end has ended.
    port.on('close', () => this.#ports.delete(port));
    port.on('message', (forwarded: Forwarded) => {
      this.#forward(forwarded, port);
      this.#add(forwarded.topic, forwarded.message);
    });
    // A port must not keep the process running.
    port.unref();
  }

  /** Sends a message to the other threads, except to its sender. */
  #forward(message: Forwarded, from?: MessagePort): void {
    for (const port of this.#ports) if (port !== from) port.postMessage(message);
  }

  async ping(): Promise<void> {
    this.#assertOpen();
  }

  async publish<Message>(topic: Topic<Message>, message: Message): Promise<void> {
    this.#assertOpen();
    const parsed = topic.message.parse(message);
    this.#forward({ topic: topic.name, message: parsed });
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
    for (const port of this.#ports) port.close();
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
        if (!this.#subscriptions.get(topic)?.has(subscription)) continue;
        notifyListener(this.#log, topic, () => subscription.listener(message));
      }
    }
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error('The bus is closed');
  }
}
