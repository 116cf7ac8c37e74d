/** Stops backends: softly, then hard, until their containers have exited. */
import type { TerminationKind, TerminationReason } from '../../contract/statuses.ts';
import { settledWithin } from '../../core/async/with-timeout.ts';
import { beginStop, requestStop } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import type { BackendChange } from '../../model/change-backend.ts';
import { finalize } from './finalize.ts';
import type { WorkerContext } from '../context.ts';
import type { StopSignal } from '../docker/containers.ts';
import { checkContainer } from './container-exit.ts';
import type { Run } from './run.ts';

/** How long a stop waits until it is stored: a store that answers has it by then, so that no new client connects to the backend. */
const storeWaitMs = 2_000;

/** How often a container that is being stopped is inspected, because an event may be lost. */
const inspectEveryMs = 1_000;

/** Begins to stop a backend, or makes a soft stop hard; a repeated call does nothing. The stop continues in the background. */
export function stopBackend(worker: WorkerContext, run: Run, kind: TerminationKind, reason: TerminationReason): void {
  if (run.isFinalizing || run.signal.aborted) return;
  if (run.stopKind) {
    if (kind === 'hard') harden(worker, run, reason);
    return;
  }
  run.beginStop(kind);
  worker.log.info({ backend: run.id, kind, reason }, 'Backend is being stopped');
  void stop(worker, run, kind, reason).catch((error: unknown) => {
    if (!run.signal.aborted) worker.log.error({ err: error, backend: run.id }, 'Stop failed');
  });
}

/** Carries out the stop in a backend's document: a requested one, or an end that another component has written. */
export function applyStopRequest(worker: WorkerContext, run: Run, backend: Backend | undefined): void {
  if (!backend?.live) stopBackend(worker, run, 'hard', 'lost');
  else if (backend.stop) stopBackend(worker, run, backend.stop.kind, backend.stop.reason);
}

function harden(worker: WorkerContext, run: Run, reason: TerminationReason): void {
  if (run.stopKind === 'hard') return;
  void run.write(begun('hard', reason, worker.clock.now()));
  run.hardenStop();
}

async function stop(worker: WorkerContext, run: Run, kind: TerminationKind, reason: TerminationReason): Promise<void> {
  const written = run.write(begun(kind, reason, worker.clock.now()));
  await run.endStartUp();
  if (!run.container?.started) {
    void finalize(worker, run, { exitCode: null });
    return;
  }
  // A lease ends whether or not the store answers. Otherwise no client should be sent to a backend that is about to end.
  if (reason !== 'keyexpired') {
    await settledWithin({ clock: worker.clock, ms: storeWaitMs, signal: run.signal }, async () => await written);
  }
  if (run.stopKind === 'soft') {
    // A program may quit at once on a second request.
    if (!(await run.containerLease?.hasAskedToStop())) await signalUntilExited(worker, run, 'stop', run.hardStop);
    if (await exitsInTime(worker, run)) return;
    harden(worker, run, reason);
  }
  await signalUntilExited(worker, run, 'SIGKILL');
}

/** Waits for the exit until the grace time has passed or the stop becomes hard. */
async function exitsInTime(worker: WorkerContext, run: Run): Promise<boolean> {
  const grace = new AbortController();
  using _timer = worker.clock.after(graceLeftMs(worker, run), () => grace.abort());
  const hurry = AbortSignal.any([run.hardStop, grace.signal, run.signal]);
  while (!hurry.aborted) {
    if (await waitForExit(worker, run, hurry)) return true;
  }
  if (run.hardStop.aborted || run.signal.aborted) return run.signal.aborted;
  // It may have exited in time, and this is not handled yet.
  const limit = { clock: worker.clock, ms: inspectEveryMs, signal: run.hardStop };
  await settledWithin(limit, async () => await checkContainer(worker, run));
  return run.isFinalizing || run.signal.aborted;
}

/**
 * The rest of the grace time. It counts from the signal, which the engine may accept long after the stop was requested. If an earlier
 * worker began the stop, the time of the signal is unknown, and the grace time counts from the request.
 */
function graceLeftMs(worker: WorkerContext, run: Run): number {
  const graceMs = worker.settings.stopGraceSeconds * 1000;
  const begun = run.backend.history.findLast(({ status }) => status === 'terminating')?.time;
  if (!begun || !run.watchedSince || begun >= run.watchedSince) return graceMs;
  return Math.min(Math.max(graceMs - (worker.clock.now().getTime() - begun.getTime()), 0), graceMs);
}

/** Sends the stop signal until the engine accepts it, and SIGKILL until the container has exited. */
async function signalUntilExited(
  worker: WorkerContext,
  run: Run,
  signal: StopSignal,
  giveUp: AbortSignal = run.signal,
): Promise<void> {
  while (!run.isFinalizing && !run.signal.aborted && !giveUp.aborted) {
    try {
      await worker.engine.containers.signal(run.container?.id ?? '', signal);
      if (signal === 'stop') return;
    } catch (error) {
      worker.log.warn({ err: error, backend: run.id, signal }, 'Cannot signal the container, trying again');
    }
    if (await waitForExit(worker, run, run.signal)) return;
  }
}

/** Waits for the exit of the container until its next inspection is due, then inspects it. */
async function waitForExit(worker: WorkerContext, run: Run, hurry: AbortSignal): Promise<boolean> {
  await worker.clock.sleep(inspectEveryMs, AbortSignal.any([hurry, run.exitedSignal])).catch(() => {});
  if (run.signal.aborted) return true;
  if (!hurry.aborted) {
    await checkContainer(worker, run).catch((error: unknown) => {
      worker.log.warn({ err: error, backend: run.id }, 'Cannot inspect the container, trying again');
    });
  }
  return run.isFinalizing;
}

/** Requests and begins the stop in one step. Leaves an ended backend as it is. */
function begun(kind: TerminationKind, reason: TerminationReason, now: Date): BackendChange {
  return (backend) => (backend.live ? beginStop(requestStop(backend, kind, reason, now), now) : backend);
}
