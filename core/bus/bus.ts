/** The port for transient messages. They may be lost or arrive twice; the store holds the state. */
import type { ZodType } from 'zod';
import type { Log } from '../log/log.ts';

/** A kind of message. */
export interface Topic<Message> {
  readonly name: string;
  readonly message: ZodType<Message>;
}

export interface Bus extends AsyncDisposable {
  ping(): Promise<void>;

  /**
   * Publishes a message to the current listeners, including those of this process. Does not wait for listeners, and ignores their
   * errors. Throws a `ZodError` if the message does not match its topic. Listeners of one process may share the message object.
   */
  publish<Message>(topic: Topic<Message>, message: Message): Promise<void>;

  /** Listens until disposed. Messages of one publisher arrive in order. An error of a listener is logged, and it stays subscribed. */
  subscribe<Message>(topic: Topic<Message>, listener: (message: Message) => void): Promise<AsyncDisposable>;
}

/** Calls a listener, and logs its error. */
export function notifyListener(log: Log, topic: string, notify: () => void): void {
  try {
    notify();
  } catch (error) {
    log.error({ err: error, topic }, 'A bus listener failed');
  }
}
