/** What is looked at every second: who is idle, who has run long enough, who does not become ready, what is used. */
import type { WorkerContext } from './context.ts';
import { isIdleTooLong, isPastLifetime } from './idle.ts';
import { Meter } from './meter.ts';
import type { Run } from './run.ts';
import { terminate } from './terminate.ts';
import { closeWithinMs, upTo } from './up-to.ts';

/** So that a limit is kept to the second. */
const sweepEveryMs = 1_000;

/** Sweeps until disposed. A pass that takes longer than its period is not overtaken by the next one. */
export function beginSweeping(worker: WorkerContext): AsyncDisposable {
  const meter = new Meter(worker);
  let pass: Promise<void> | undefined;
  const timer = worker.clock.every(sweepEveryMs, () => {
    sweep(worker);
    pass ??= measureAll(worker, meter).finally(() => {
      pass = undefined;
    });
  });
  return {
    [Symbol.asyncDispose]: async () => {
      timer[Symbol.dispose]();
      if (pass) await upTo(closeWithinMs, pass);
    },
  };
}

/** One pass over the limits that follow from the time alone. */
function sweep(worker: WorkerContext): void {
  const now = worker.clock.now();
  worker.connections.forgetSilent(now);
  for (const run of worker.runs.values()) {
    if (run.stopping || run.concluding) continue;
    if (isStartOverdue(run, worker.settings.startTimeoutSeconds, now)) {
      terminate(worker, run, 'hard', 'startuptimeout');
    } else if (hasRunLongEnough(worker, run, now)) {
      terminate(worker, run, 'soft', 'swept');
    }
  }
}

/** Whether a backend should have become ready by now. Fetching the image has a limit of its own. */
export function isStartOverdue(
  run: Pick<Run, 'backend' | 'pulling' | 'pulledMs'>,
  startTimeoutSeconds: number,
  now: Date,
): boolean {
  if (run.backend.readyAt !== undefined || run.pulling) return false;
  return now.getTime() - run.backend.createdAt.getTime() - run.pulledMs >= startTimeoutSeconds * 1000;
}

function hasRunLongEnough({ connections }: WorkerContext, run: Run, now: Date): boolean {
  const { readyAt, maxIdleSeconds, lifetimeLimitSeconds } = run.backend;
  if (!readyAt) return false;
  if (isPastLifetime(readyAt, lifetimeLimitSeconds, now)) return true;
  const facts = {
    readyAt,
    closedAt: connections.closedAt(run.id),
    touchedAt: run.touchedAt,
    hearingSince: connections.hearingSince,
    isOpen: connections.isOpen(run.id),
  };
  // What proxies have not told about yet is not known: in the silence of the last second somebody may have come.
  const { heardUntil } = connections;
  return heardUntil !== undefined && isIdleTooLong(facts, maxIdleSeconds, heardUntil);
}

async function measureAll(worker: WorkerContext, meter: Meter): Promise<void> {
  await Promise.all(
    Array.from(worker.runs.values(), async (run) => {
      if (run.concluding) return;
      await meter.measure(run).catch((error: unknown) => {
        if (!run.signal.aborted) worker.log.debug({ err: error, backend: run.id }, 'Backend cannot be measured');
      });
    }),
  );
}
