import type { Bus, Topic } from '../core/bus/bus.ts';
import type { Log } from '../core/log/log.ts';

/**
 * Tells the rest of the platform what has changed in a repository, once the store has it. Nobody waits for it, and a bus that
 * is away refuses no push: whoever listens is late or finds it in the store.
 */
export function tell<Message>(
  { bus, log }: { readonly bus: Bus; readonly log: Log },
  topic: Topic<Message>,
  message: NoInfer<Message>,
): void {
  bus.publish(topic, message).catch((error: unknown) => {
    log.warn({ err: error, topic: topic.name }, 'A change in the registry cannot be told');
  });
}
