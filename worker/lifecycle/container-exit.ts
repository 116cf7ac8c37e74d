/** What is done when a container's process has ended. */
import type { TerminationKind } from '../../contract/statuses.ts';
import { finalize } from './finalize.ts';
import type { WorkerContext } from '../context.ts';
import type { ContainerState } from '../docker/containers.ts';
import type { Run } from './run.ts';

/**
 * Looks whether the container of a run still lives, and ends the run if it does not. Throws if the engine does not answer.
 *
 * @param saidCode - the exit code that the engine told, for a container that somebody has removed since
 */
export async function checkContainer(worker: WorkerContext, run: Run, saidCode?: number): Promise<void> {
  const { container } = run;
  if (!container || run.isFinalizing) return;
  const state = await worker.engine.containers.inspect(container.id);
  // While the start-up goes on, another container may have taken its place.
  if (run.container?.id !== container.id || state?.phase === 'running' || state?.phase === 'created') return;
  run.processDied();
  await run.endStartUp();
  if (run.container?.id !== container.id) return;
  const exitCode = state?.exitCode ?? saidCode ?? null;
  const failure = run.failure ?? (state?.outOfMemory ? outOfMemoryFailure(worker, run) : undefined);
  const fencedBy = state && (await howLeaseEnded(worker, run, state));
  if (fencedBy)
    worker.log.warn({ backend: run.id, kind: fencedBy }, 'Container ended by itself: its key was not renewed');
  void finalize(worker, run, {
    exitCode,
    failure,
    ...(fencedBy && { kind: fencedBy, reason: 'keyexpired' }),
    ...(exitCode === null && { reason: 'lost' }),
  });
}

/** How the container's init ended it because the lease of its key had run out, if it did. */
async function howLeaseEnded(
  { machineClock }: WorkerContext,
  run: Run,
  { endedAt }: ContainerState,
): Promise<TerminationKind | undefined> {
  if (!endedAt) return undefined;
  return await run.containerLease?.endedBy(machineClock.now().getTime() - endedAt.getTime());
}

/** For people: the backend used more memory than it may. */
export function outOfMemoryFailure({ settings }: WorkerContext, { backend }: Run): string {
  const limit = backend.limits.memoryBytes ?? settings.defaultMemoryBytes;
  return limit === undefined ? 'Used more memory than there is' : `Used more than its memory limit of ${limit} bytes`;
}
