/**
 * The port to messages that matter only now. They may be lost and may come twice; the truth stands in the store.
 */
import type { ZodType } from 'zod';

/** What is told on one subject. */
export interface Topic<Message> {
  readonly name: string;
  readonly message: ZodType<Message>;
}

export interface Bus extends AsyncDisposable {
  ping(): Promise<void>;

  /**
   * Tells everyone who listens now, the sender's own process included. Never waits for listeners; never throws for them.
   * Throws a `ZodError` if the message does not fit its topic. Listeners of one process may share the object they get.
   */
  publish<Message>(topic: Topic<Message>, message: Message): Promise<void>;

  /** Listens until disposed. Messages of one publisher come in their order. A listener that throws is logged, and goes on. */
  subscribe<Message>(topic: Topic<Message>, listener: (message: Message) => void): Promise<AsyncDisposable>;
}
