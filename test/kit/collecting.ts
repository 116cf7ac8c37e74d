import type { ManualClock } from '../../core/clock/manual-clock.ts';
import type { TestRegistry } from './registry.ts';

/** Has a registry collect garbage once, to the end. */
export async function collect({ collector }: TestRegistry): Promise<void> {
  for await (const _event of collector.collect({ isDry: false }, new AbortController().signal));
}

/** Time goes by until something is done: a pusher that waits for bytes to be removed gives up only then. */
export async function patiently<R>(clock: ManualClock, work: Promise<R>): Promise<R> {
  const progress = { isDone: false };
  void work.finally(() => (progress.isDone = true));
  while (!progress.isDone) await clock.advance(20);
  return await work;
}
