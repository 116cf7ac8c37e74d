/** How backends are stopped: softly, then hard, and until they are gone. */
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

/** How long the store may hold up a stop: long enough that new connections learn of it first, when it answers at all. */
const storeHoldsUpMs = 2_000;

/** An event may be lost: so often a container that was told to stop is looked at. */
const lookEveryMs = 1_000;

/**
 * Begins to stop a backend, or makes a soft stop hard. Asked for again, it does nothing. It goes on by itself until nothing
 * is left.
 */
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

/** Does what stands in a backend's document: a stop that was asked for, or an end that somebody else has written. */
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
  // A lease ends whether or not the store can be told. Otherwise nobody should be sent to what is about to end.
  if (reason !== 'keyexpired') {
    await settledWithin({ clock: worker.clock, ms: storeHoldsUpMs, signal: run.signal }, async () => await written);
  }
  if (run.stopKind === 'soft') {
    await signalUntilGone(worker, run, 'SIGTERM', run.hardStop);
    if (await isGoneInTime(worker, run)) return;
    harden(worker, run, reason);
  }
  await signalUntilGone(worker, run, 'SIGKILL');
}

/** Waits out the grace time, or until the stop becomes hard. */
async function isGoneInTime(worker: WorkerContext, run: Run): Promise<boolean> {
  const graceOver = new AbortController();
  using _timer = worker.clock.after(graceLeftMs(worker, run), () => graceOver.abort());
  const hurry = AbortSignal.any([run.hardStop, graceOver.signal, run.signal]);
  while (!hurry.aborted) {
    if (await isGone(worker, run, hurry)) return true;
  }
  return run.signal.aborted;
}

/** A stop that an earlier worker began has used up part of its grace. */
function graceLeftMs(worker: WorkerContext, run: Run): number {
  const graceMs = worker.settings.stopGraceSeconds * 1000;
  const begun = run.backend.history.findLast(({ status }) => status === 'terminating')?.time;
  if (!begun) return graceMs;
  return Math.min(Math.max(graceMs - (worker.clock.now().getTime() - begun.getTime()), 0), graceMs);
}

/** Sends a signal until the engine has taken it; SIGKILL until the container is gone. */
async function signalUntilGone(
  worker: WorkerContext,
  run: Run,
  signal: StopSignal,
  giveUp: AbortSignal = run.signal,
): Promise<void> {
  while (!run.isFinalizing && !run.signal.aborted && !giveUp.aborted) {
    try {
      await worker.engine.containers.signal(run.container?.id ?? '', signal);
      if (signal === 'SIGTERM') return;
    } catch (error) {
      worker.log.warn({ err: error, backend: run.id, signal }, 'Container cannot be signalled, trying again');
    }
    if (await isGone(worker, run, run.signal)) return;
  }
}

/** Waits until the container is gone, at most as long as it takes to look once more. */
async function isGone(worker: WorkerContext, run: Run, hurry: AbortSignal): Promise<boolean> {
  await settledWithin({ clock: worker.clock, ms: lookEveryMs, signal: hurry }, async () => await run.died);
  if (run.signal.aborted) return true;
  if (!hurry.aborted) {
    await checkContainer(worker, run).catch((error: unknown) => {
      worker.log.warn({ err: error, backend: run.id }, 'Container cannot be looked at, trying again');
    });
  }
  return run.isFinalizing;
}

/** The stop is asked for, and begun, in one step. An ended backend stays as it is. */
function begun(kind: TerminationKind, reason: TerminationReason, now: Date): BackendChange {
  return (backend) => (backend.live ? beginStop(requestStop(backend, kind, reason, now), now) : backend);
}
