import type { Bus, Topic } from '../core/bus/bus.ts';
import type { Log } from '../core/log/log.ts';

/**
 * Publishes a change in a repository, after it is stored. Does not wait, and an unavailable bus fails no push: subscribers find
 * the change in the store.
 */
export function publishEvent<Message>(
  { bus, log }: { readonly bus: Bus; readonly log: Log },
  topic: Topic<Message>,
  message: NoInfer<Message>,
): void {
  bus.publish(topic, message).catch((error: unknown) => {
    log.warn(
      { err: error, topic: topic.name },
      'Cannot publish a change in the registry, subscribers find it in the store',
    );
  });
}
