/** Handles the exit of a container's process. */
import type { TerminationKind } from '../../contract/statuses.ts';
import { finalize } from './finalize.ts';
import type { WorkerContext } from '../context.ts';
import type { ContainerState } from '../docker/containers.ts';
import { isEngineError } from '../docker/engine-error.ts';
import type { Run } from './run.ts';

/**
 * Inspects the container of a run, and finalizes the run if it has exited. Throws if the engine does not answer.
 *
 * @param reportedCode - if the engine has reported the exit: its code (`null` if unknown), in case the container cannot be inspected
 */
export async function checkContainer(worker: WorkerContext, run: Run, reportedCode?: number | null): Promise<void> {
  const { container } = run;
  if (!container || run.isFinalizing) return;
  const state = await worker.engine.containers.inspect(container.id).catch((error: unknown) => {
    if (reportedCode === undefined || !isEngineError(error, 'refused')) throw error;
    return undefined;
  });
  // During the start-up, another container may have replaced it.
  if (run.container?.id !== container.id || state?.phase === 'running' || state?.phase === 'created') return;
  run.processExited();
  await run.endStartUp();
  if (run.container?.id !== container.id) return;
  const exitCode = state?.exitCode ?? reportedCode ?? null;
  const failure =
    run.failure ??
    (state?.outOfMemory ? outOfMemoryFailure(worker, run) : undefined) ??
    foreignImageFailure(worker, run, exitCode);
  const fencedBy = state && (await howLeaseEnded(worker, run, state));
  if (fencedBy)
    worker.log.warn(
      { backend: run.id, kind: fencedBy },
      'The container enforced the lease of its key, which was not renewed',
    );
  void finalize(worker, run, {
    exitCode,
    failure,
    ...(fencedBy && { kind: fencedBy, reason: 'keyexpired' }),
    ...(exitCode === null && { reason: 'lost' }),
  });
}

/** How the container's init ended it because the lease of its key had ended; `undefined` if it did not. */
async function howLeaseEnded(
  { machineClock }: WorkerContext,
  run: Run,
  { endedAt }: ContainerState,
): Promise<TerminationKind | undefined> {
  if (!endedAt) return undefined;
  return await run.containerLease?.endedBy(machineClock.now().getTime() - endedAt.getTime());
}

/** Older architectures whose programs most of these processors run, too. */
const alsoRuns: Readonly<Record<string, string>> = { amd64: '386', arm64: 'arm' };

/** The message for users that an image is for another architecture. With an emulator it may still run, and end for another reason. */
function foreignImageFailure({ engine }: WorkerContext, run: Run, exitCode: number | null): string | undefined {
  const { image, backend } = run;
  if (backend.readyAt !== undefined || run.stopKind !== undefined || !exitCode || !image?.architecture)
    return undefined;
  if ([engine.architecture, alsoRuns[engine.architecture]].includes(image.architecture)) return undefined;
  const change = `build it with "--platform linux/${engine.architecture}"`;
  return `The container exited with code ${exitCode}. Its image is for ${image.architecture}, and this machine is ${engine.architecture}: ${change}`;
}

/** The message for users that a backend exceeded its memory limit. */
export function outOfMemoryFailure({ settings }: WorkerContext, { backend }: Run): string {
  const limit = backend.limits.memoryBytes ?? settings.defaultMemoryBytes;
  return limit === undefined ? 'Used more memory than there is' : `Used more than its memory limit of ${limit} bytes`;
}
