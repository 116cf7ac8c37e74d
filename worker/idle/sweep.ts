/** What is looked at every second: who is idle, who has run long enough, who does not become ready, what is used. */
import { settledWithin } from '../../core/async/with-timeout.ts';
import { sweepIdle } from '../../model/backend.ts';
import type { WorkerContext } from '../context.ts';
import { isIdleTooLong, isPastLifetime } from './idle.ts';
import { CpuLimits } from '../usage/cpu-limit.ts';
import type { Run } from '../lifecycle/run.ts';
import { closeWithinMs } from '../settings.ts';
import { applyStopRequest, stopBackend } from '../lifecycle/stop.ts';

/** So that a limit is kept to the second. */
const sweepEveryMs = 1_000;

/** A pass that is this late was held up by more than a busy process: the process stood still, or the time of day was set. */
const stoodStillMs = 5_000;

/** When this process last stood still: nothing could start then, neither what it runs nor what waited for it. */
export interface Stillness {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Sweeps until disposed. A pass that takes longer than its period is not overtaken by the next one. */
export function beginSweeping(worker: WorkerContext): AsyncDisposable {
  const cpuLimits = new CpuLimits(worker);
  let pass: Promise<void> | undefined;
  let dueMs = worker.clock.now().getTime() + sweepEveryMs;
  let still: Stillness | undefined;
  /** Idle backends whose stop is being written. */
  const stopping = new Set<Run>();
  const timer = worker.clock.every(sweepEveryMs, () => {
    const nowMs = worker.clock.now().getTime();
    if (nowMs - dueMs >= stoodStillMs) still = { fromMs: dueMs, untilMs: nowMs };
    dueMs = nowMs + sweepEveryMs;
    sweep(worker, { still, stopping });
    pass ??= measureAll(worker, cpuLimits).finally(() => {
      pass = undefined;
    });
  });
  return {
    [Symbol.asyncDispose]: async () => {
      timer[Symbol.dispose]();
      await settledWithin({ ms: closeWithinMs }, async () => await pass);
    },
  };
}

/** One pass over the limits that follow from the time alone. */
function sweep(worker: WorkerContext, { still, stopping }: { still: Stillness | undefined; stopping: Set<Run> }): void {
  const now = worker.clock.now();
  worker.connections.forgetSilent(now);
  for (const run of worker.runs.values()) {
    if (run.stopKind || run.isFinalizing) continue;
    if (isStartOverdue(run, worker.settings.startTimeoutSeconds, { now, still })) {
      run.fail(whyOverdue(run, worker.settings.startTimeoutSeconds));
      stopBackend(worker, run, 'hard', 'startuptimeout');
    } else if (isPastItsLifetime(run, now)) {
      stopBackend(worker, run, 'soft', 'swept');
    } else if (isIdle(worker, run)) {
      stopIdle(worker, run, stopping);
    }
  }
}

/** Whether a backend should have become ready by now. Fetching the image has a limit of its own. */
export function isStartOverdue(
  run: Pick<Run, 'backend' | 'isPulling' | 'pulledMs'>,
  startTimeoutSeconds: number,
  { now, still }: { readonly now: Date; readonly still?: Stillness | undefined },
): boolean {
  if (run.backend.readyAt !== undefined || run.isPulling) return false;
  const createdMs = run.backend.createdAt.getTime();
  const stillMs = still ? Math.max(still.untilMs - Math.max(still.fromMs, createdMs), 0) : 0;
  return now.getTime() - createdMs - run.pulledMs - stillMs >= startTimeoutSeconds * 1000;
}

/** For people: the exit code of a container that was killed for it says nothing. */
function whyOverdue({ container, backend }: Run, startTimeoutSeconds: number): string {
  if (!container?.started) return `The container did not start within ${startTimeoutSeconds} seconds`;
  const limit = `The container did not become ready within ${startTimeoutSeconds} seconds`;
  return `${limit}: nothing listened on port ${backend.port}`;
}

function isPastItsLifetime({ backend: { readyAt, lifetimeLimitSeconds } }: Run, now: Date): boolean {
  return readyAt !== undefined && isPastLifetime(readyAt, lifetimeLimitSeconds, now);
}

/** As far as this worker knows: a connection may have been given out a moment ago. */
function isIdle({ connections }: WorkerContext, run: Run): boolean {
  const { readyAt, touchedAt, maxIdleSeconds } = run.backend;
  if (!readyAt) return false;
  const facts = {
    readyAt,
    closedAt: connections.closedAt(run.id),
    touchedAt,
    watchedSince: run.watchedSince,
    hearingSince: connections.hearingSince,
    isOpen: connections.isOpen(run.id),
  };
  // What proxies have not told about yet is not known: in the silence of the last second somebody may have come.
  const { heardUntil } = connections;
  return heardUntil !== undefined && isIdleTooLong(facts, maxIdleSeconds, heardUntil);
}

/**
 * Stops an idle backend, if the store agrees: a connection that was given out since is written there. Goes on by itself. While
 * the store is away, a client may come.
 */
function stopIdle(worker: WorkerContext, run: Run, stopping: Set<Run>): void {
  const { touchedAt } = run.backend;
  const now = worker.clock.now();
  if (stopping.has(run)) return;
  stopping.add(run);
  void run
    .write((backend) => (isIdle(worker, run) ? sweepIdle(backend, touchedAt, now) : backend))
    .then((backend) => applyStopRequest(worker, run, backend))
    // The worker closes: the next one goes on.
    .catch(() => {})
    .finally(() => stopping.delete(run));
}

async function measureAll(worker: WorkerContext, cpuLimits: CpuLimits): Promise<void> {
  await Promise.all(
    Array.from(worker.runs.values(), async (run) => {
      if (run.isFinalizing) return;
      await cpuLimits.check(run).catch((error: unknown) => {
        if (!run.signal.aborted) worker.log.debug({ err: error, backend: run.id }, 'Backend cannot be measured');
      });
    }),
  );
}
