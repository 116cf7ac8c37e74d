/** Stops all backends at the end of a development server, which has started them. */
import type { Clock } from '../../core/clock/clock.ts';
import type { ApiCalls } from './api-calls.ts';
import type { Report } from './report.ts';

/** A container that ignores SIGTERM is killed after the grace time, so this is longer than any that a person waits for. */
const maxWaitMs = 60_000;

const lookEveryMs = 100;

/** Stops all backends and waits until they have ended. */
export async function stopBackends({
  calls,
  report,
  clock,
}: {
  readonly calls: ApiCalls;
  readonly report: Report;
  readonly clock: Clock;
}): Promise<void> {
  const signal = AbortSignal.timeout(maxWaitMs);
  const stopped = new Set<string>();
  for (;;) {
    const running = await calls.running(signal);
    if (stopped.size === 0) report({ event: 'stopping', backends: running.length });
    if (running.length === 0) return;
    // A connect request that was under way may have spawned another one.
    const others = running.filter(({ id }) => !stopped.has(id));
    await Promise.all(others.map(({ id }) => calls.stop(id, signal)));
    for (const { id } of others) stopped.add(id);
    await clock.sleep(lookEveryMs, signal);
  }
}
