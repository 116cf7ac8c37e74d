/** What is done when a container's process has ended. */
import { conclude } from './conclude.ts';
import type { WorkerContext } from './context.ts';
import type { Run } from './run.ts';

/**
 * Looks whether the container of a run still lives, and ends the run if it does not. Throws if the engine does not answer.
 *
 * @param saidCode - the exit code that the engine told, for a container that somebody has removed since
 */
export async function checkContainer(worker: WorkerContext, run: Run, saidCode?: number): Promise<void> {
  const { container } = run;
  if (!container || run.concluding) return;
  const state = await worker.engine.containers.inspect(container.id);
  // While the start-up goes on, another container may have taken its place.
  if (run.container?.id !== container.id || state?.phase === 'running' || state?.phase === 'created') return;
  run.cancelStartUp();
  run.markDied();
  await run.startUpOver;
  if (run.container?.id !== container.id) return;
  const exitCode = state?.exitCode ?? saidCode ?? null;
  const failure = run.failure ?? (state?.outOfMemory ? outOfMemoryFailure(worker, run) : undefined);
  void conclude(worker, run, { exitCode, failure, ...(exitCode === null && { reason: 'lost' }) });
}

/** For people: the backend used more memory than it may. */
export function outOfMemoryFailure({ settings }: WorkerContext, { backend }: Run): string {
  const limit = backend.limits.memoryBytes ?? settings.defaultMemoryBytes;
  return limit === undefined ? 'Used more memory than there is' : `Used more than its memory limit of ${limit} bytes`;
}
