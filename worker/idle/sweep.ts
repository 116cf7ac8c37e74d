/** Checks the limits of all backends every second: idle time, lifetime, start time, memory and CPU. */
import { sweepIdle } from '../../model/backend.ts';
import { settledOnClose } from '../close.ts';
import type { WorkerContext } from '../context.ts';
import type { Run } from '../lifecycle/run.ts';
import { applyStopRequest, stopBackend } from '../lifecycle/stop.ts';
import { CpuLimits } from '../usage/cpu-limit.ts';

/** Limits are given in seconds. */
const sweepEveryMs = 1_000;

/** A pass that is this late was delayed by more than a busy process: the process was frozen, or the time of day was set. */
const frozenMs = 5_000;

/** When this process was last frozen: during that time neither it nor a backend that it starts could make progress. */
export interface Freeze {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The data from which the idle time of a ready backend is computed. */
export interface Activity {
  readonly readyAt: Date;
  /** When the last known connection closed. */
  readonly closedAt: Date | undefined;
  /** When a client last got a URL, as far as the worker knows. */
  readonly touchedAt: Date | undefined;
  /** When this worker adopted the backend, if an earlier one started it. */
  readonly watchedSince: Date | undefined;
  /** Since when proxies have reported without a gap; `undefined` if none reports. */
  readonly reportedSince: Date | undefined;
  readonly isOpen: boolean;
}

/** Sweeps until disposed. A measurement that takes longer than the period delays the next one, but not the time limits. */
export function beginSweeping(worker: WorkerContext): AsyncDisposable {
  const cpuLimits = new CpuLimits(worker);
  let measuring: Promise<void> | undefined;
  let dueMs = worker.clock.now().getTime() + sweepEveryMs;
  let freeze: Freeze | undefined;
  /** Idle backends whose stop is being written. */
  const stopping = new Set<Run>();
  const timer = worker.clock.every(sweepEveryMs, () => {
    const nowMs = worker.clock.now().getTime();
    if (nowMs - dueMs >= frozenMs) freeze = { fromMs: dueMs, untilMs: nowMs };
    dueMs = nowMs + sweepEveryMs;
    sweep(worker, { freeze, stopping });
    measuring ??= measureAll(worker, cpuLimits).finally(() => {
      measuring = undefined;
    });
  });
  return {
    [Symbol.asyncDispose]: async () => {
      timer[Symbol.dispose]();
      await settledOnClose(measuring);
    },
  };
}

/** Makes one pass over the limits that depend on time alone. */
function sweep(worker: WorkerContext, { freeze, stopping }: { freeze: Freeze | undefined; stopping: Set<Run> }): void {
  const now = worker.clock.now();
  const { startTimeoutSeconds } = worker.settings;
  worker.connections.expireSilent(now);
  for (const run of worker.runs.values()) {
    if (run.stopKind || run.isFinalizing) continue;
    const { readyAt, lifetimeLimitSeconds } = run.backend;
    if (isStartOverdue(run, startTimeoutSeconds, { now, freeze })) {
      run.fail(whyOverdue(run, startTimeoutSeconds));
      stopBackend(worker, run, 'hard', 'startuptimeout');
    } else if (readyAt && isPastLifetime(readyAt, lifetimeLimitSeconds, now)) {
      stopBackend(worker, run, 'soft', 'swept');
    } else if (isIdle(worker, run)) {
      stopIdle(worker, run, stopping);
    }
  }
}

/** Whether the start of a backend has exceeded its time limit, without its pauses. */
export function isStartOverdue(
  run: Pick<Run, 'backend' | 'isStartTimePaused' | 'pausedMs'>,
  startTimeoutSeconds: number,
  { now, freeze }: { readonly now: Date; readonly freeze?: Freeze | undefined },
): boolean {
  if (run.backend.readyAt !== undefined || run.isStartTimePaused) return false;
  const createdMs = run.backend.createdAt.getTime();
  const frozenForMs = freeze ? Math.max(freeze.untilMs - Math.max(freeze.fromMs, createdMs), 0) : 0;
  return now.getTime() - createdMs - run.pausedMs - frozenForMs >= startTimeoutSeconds * 1000;
}

/** The reason for users: the exit code of a container that was killed for this does not explain it. */
function whyOverdue({ container, port, backend }: Run, startTimeoutSeconds: number): string {
  if (!container?.started) return `The container did not start within ${startTimeoutSeconds} seconds`;
  const limit = `The container did not become ready within ${startTimeoutSeconds} seconds`;
  const { startProblem } = backend;
  return startProblem === undefined ? `${limit}: nothing listened on port ${port}` : `${limit}: it ${startProblem}`;
}

/** Whether a backend has reached its lifetime limit, which counts from `ready`. */
export function isPastLifetime(readyAt: Date, lifetimeLimitSeconds: number | undefined, now: Date): boolean {
  return lifetimeLimitSeconds !== undefined && now.getTime() - readyAt.getTime() >= lifetimeLimitSeconds * 1000;
}

/** Whether a backend is idle as far as this worker knows: a client may have got a URL a moment ago. */
function isIdle({ connections }: WorkerContext, run: Run): boolean {
  const { readyAt, touchedAt, maxIdleSeconds } = run.backend;
  if (!readyAt) return false;
  const activity = {
    readyAt,
    closedAt: connections.closedAt(run.id),
    touchedAt,
    watchedSince: run.watchedSince,
    reportedSince: connections.reportedSince,
    isOpen: connections.isOpen(run.id),
  };
  // Judged at the time of the last reports: after that a client may have connected.
  const { reportedUntil } = connections;
  return reportedUntil !== undefined && isIdleTooLong(activity, maxIdleSeconds, reportedUntil);
}

/** Whether a backend has been idle for its limit. */
export function isIdleTooLong(activity: Activity, maxIdleSeconds: number, now: Date): boolean {
  const since = idleSince(activity);
  return since !== undefined && now.getTime() - since.getTime() >= maxIdleSeconds * 1000;
}

/**
 * Since when a backend has been idle; `undefined` while it has a connection or no proxy reports. What happened while no proxy
 * reported is unknown, so the idle time begins again when a proxy reports again.
 */
export function idleSince(activity: Activity): Date | undefined {
  if (activity.isOpen || !activity.reportedSince) return undefined;
  const { readyAt, closedAt, touchedAt, watchedSince, reportedSince } = activity;
  return new Date(
    Math.max(...[readyAt, closedAt, touchedAt, watchedSince, reportedSince].map((time) => time?.getTime() ?? 0)),
  );
}

/**
 * Stops an idle backend in the background, if the store agrees: connects since then are written there. While the store does not
 * answer, a client may still connect.
 */
function stopIdle(worker: WorkerContext, run: Run, stopping: Set<Run>): void {
  const { touchedAt } = run.backend;
  const now = worker.clock.now();
  if (stopping.has(run)) return;
  stopping.add(run);
  void run
    .write((backend) => (isIdle(worker, run) ? sweepIdle(backend, touchedAt, now) : backend))
    .then((backend) => applyStopRequest(worker, run, backend))
    // The worker is closing: the next worker continues.
    .catch(() => {})
    .finally(() => stopping.delete(run));
}

async function measureAll(worker: WorkerContext, cpuLimits: CpuLimits): Promise<void> {
  await Promise.all(
    Array.from(worker.runs.values(), async (run) => {
      if (run.isFinalizing) return;
      await cpuLimits.check(run).catch((error: unknown) => {
        if (!run.signal.aborted) worker.log.debug({ err: error, backend: run.id }, 'Cannot measure a backend');
      });
    }),
  );
}
