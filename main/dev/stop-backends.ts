/** Stops all backends of a development server that is stopping. */
import type { BerthClient } from '../../client/index.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { devAccount } from './own-paths.ts';
import type { Report } from './report.ts';

/** How long an engine on a busy machine may take to kill a container whose grace time is over. */
const maxKillMs = 30_000;

const pollMs = 100;

/** Sends SIGTERM to a backend. A backend that has already ended is not an error. */
export async function stopBackend(client: BerthClient, id: string, signal: AbortSignal): Promise<void> {
  await client.stop(id, { signal }).catch(() => signal.throwIfAborted());
}

interface StopBackends {
  readonly client: BerthClient;
  readonly report: Report;
  readonly clock: Clock;
  /** The time after which a container that ignores SIGTERM is killed. */
  readonly graceSeconds: number;
}

/** Stops all backends and waits until they have ended. Reports those that do not end in time. */
export async function stopBackends({ graceSeconds, ...stop }: StopBackends): Promise<void> {
  const signal = AbortSignal.timeout(graceSeconds * 1000 + maxKillMs);
  const stopped = new Set<string>();
  try {
    await stopUntilNoneRuns(stop, stopped, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    stop.report({ event: 'warning', problem: `These backends did not end in time: ${[...stopped].join(', ')}` });
  }
}

async function stopUntilNoneRuns(
  { client, report, clock }: Omit<StopBackends, 'graceSeconds'>,
  stopped: Set<string>,
  signal: AbortSignal,
): Promise<void> {
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
