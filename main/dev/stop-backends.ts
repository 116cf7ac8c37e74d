/** Stops all backends of a development server that is stopping. */
import type { BerthClient } from '../../client/index.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { devAccount } from './own-paths.ts';
import type { Report } from './report.ts';

/** Longer than the grace time, after which a container that ignores SIGTERM is killed. */
const maxWaitMs = 60_000;

const pollMs = 100;

/** Sends SIGTERM to a backend. A backend that has already ended is not an error. */
export async function stopBackend(client: BerthClient, id: string, signal: AbortSignal): Promise<void> {
  await client.stop(id, { signal }).catch(() => signal.throwIfAborted());
}

/** Stops all backends and waits until they have ended. */
export async function stopBackends({
  client,
  report,
  clock,
}: {
  readonly client: BerthClient;
  readonly report: Report;
  readonly clock: Clock;
}): Promise<void> {
  const signal = AbortSignal.timeout(maxWaitMs);
  const stopped = new Set<string>();
  for (;;) {
    const running = await Array.fromAsync(client.runningBackends(devAccount, { signal }));
    if (stopped.size === 0) report({ event: 'stopping', backends: running.length });
    if (running.length === 0) return;
    // A concurrent connect request may have spawned another backend.
    const others = running.filter(({ id }) => !stopped.has(id));
    await Promise.all(others.map(({ id }) => stopBackend(client, id, signal)));
    for (const { id } of others) stopped.add(id);
    await clock.sleep(pollMs, signal);
  }
}
