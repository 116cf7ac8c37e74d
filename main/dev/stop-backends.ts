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
  const running = await calls.running(signal);
  report({ event: 'stopping', backends: running.length });
  await Promise.all(running.map(({ id }) => calls.stop(id, signal)));
  while ((await calls.running(signal)).length > 0) await clock.sleep(lookEveryMs, signal);
}
