import type { ManualClock } from '../../../core/clock/testing/manual-clock.ts';
import type { GcEvent, GcSummary } from '../../../registry/gc/events.ts';
import type { TestRegistry } from './registry.ts';

/** Runs one garbage collection of a registry to its end. */
export async function collect(registry: TestRegistry, isDry = false) {
  const events: GcEvent[] = [];
  for await (const event of registry.collector.collect({ isDry }, new AbortController().signal)) events.push(event);
  return { events, summary: events.at(-1) as GcSummary };
}

/** Advances the clock until the work is done, so that a push that waits for the removal of bytes can time out. */
export async function advanceUntilDone<R>(clock: ManualClock, work: Promise<R>): Promise<R> {
  const progress = { isDone: false };
  void work.finally(() => (progress.isDone = true));
  while (!progress.isDone) await clock.advance(20);
  return await work;
}
