import type { ManualClock } from '../../../core/clock/manual-clock.ts';
import type { GcEvent, GcSummary } from '../../../registry/gc/events.ts';
import type { TestRegistry } from './registry.ts';

/** Has a registry collect garbage once, to the end. */
export async function collect(registry: TestRegistry, isDry = false) {
  const events: GcEvent[] = [];
  for await (const event of registry.collector.collect({ isDry }, new AbortController().signal)) events.push(event);
  return { events, summary: events.at(-1) as GcSummary };
}

/** Time goes by until something is done: a pusher that waits for bytes to be removed gives up only then. */
export async function patiently<R>(clock: ManualClock, work: Promise<R>): Promise<R> {
  const progress = { isDone: false };
  void work.finally(() => (progress.isDone = true));
  while (!progress.isDone) await clock.advance(20);
  return await work;
}
