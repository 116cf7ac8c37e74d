/** The end of a backend: written, cleared up, forgotten. */
import type { TerminationKind, TerminationReason } from '../../contract/statuses.ts';
import { becomeTerminated, terminationOf, terminationFields } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { removeContainer } from './remove-container.ts';
import type { WorkerContext } from '../context.ts';
import { removeOwnMount } from './own-mounts.ts';
import type { Run } from './run.ts';

/** How a run ended, where nobody had asked for it. */
export interface Outcome {
  readonly exitCode: number | null;
  /** What went wrong, for people. */
  readonly failure?: string | undefined;
  readonly kind?: TerminationKind;
  readonly reason?: TerminationReason;
}

/** The engine may be away; the container does no harm meanwhile, so there is time. */
const removeAgainAfterMs = 2_000;

/**
 * The container of a run does not run, or never did: writes the end, removes what is left, and forgets the run. Only the first
 * call counts. Must not be awaited by the start-up itself.
 */
export function finalize(worker: WorkerContext, run: Run, outcome: Outcome): Promise<void> {
  return run.finalize(async () => {
    try {
      await finalizeOnce(worker, run, outcome);
    } catch (error) {
      if (worker.closing.aborted) return;
      worker.log.error({ err: error, backend: run.id }, 'End of a backend failed, the next pass tries again');
      worker.runs.delete(run.id);
      run.finish();
    }
  });
}

async function finalizeOnce(worker: WorkerContext, run: Run, outcome: Outcome): Promise<void> {
  const now = worker.clock.now();
  const failure = outcome.failure ?? run.failure;
  run.processDied();
  await run.endStartUp();
  // One that was not seen to start may run all the same, if the engine's answer was lost: it goes before its end is told.
  if (run.container && !run.container.started) await removeContainerOf(worker, run);
  run.containerGone();
  const wasReady = run.backend.readyAt !== undefined;
  let wasLive = false;
  const ended = await run.write((backend) => {
    wasLive = backend.live;
    return withEnd(withPeak(backend, run.peakMemoryBytes), { ...outcome, failure }, now);
  });
  if (ended && wasLive)
    worker.log.info({ backend: run.id, endedBy: 'worker', ...terminationFields(ended) }, 'Backend ended');
  else worker.log.info({ backend: run.id }, 'Container of an ended backend is removed');
  const last = ended?.history.at(-1);
  worker.metrics.terminated(last?.terminationReason ?? null);
  if (!wasReady) {
    const result = last?.terminationReason ? 'stopped' : 'failed';
    worker.metrics.spawned(result, (now.getTime() - run.backend.createdAt.getTime()) / 1000);
  }
  if (run.container?.started) await removeContainerOf(worker, run);
  if (!run.container) await removeOwnMount(worker, run.id);
  await run.containerLease?.remove().catch((error: unknown) => {
    worker.log.warn({ err: error, backend: run.id }, 'Lease folder cannot be removed, the next pass tries again');
  });
  if (run.address !== undefined) worker.engine.network.releaseAddress(run.address);
  worker.connections.forget(run.id);
  worker.runs.delete(run.id);
  run.finish();
}

function withEnd(backend: Backend, outcome: Outcome, now: Date): Backend {
  const asked = terminationOf(backend, outcome.exitCode);
  const failure = outcome.failure === undefined ? {} : { failure: outcome.failure };
  if (asked.kind !== null) return becomeTerminated(backend, { ...asked, ...failure }, now);
  return becomeTerminated(
    backend,
    { ...asked, kind: outcome.kind ?? null, reason: outcome.reason ?? null, ...failure },
    now,
  );
}

/** A backend with the most memory that was seen in use. Unchanged if more was seen before. */
export function withPeak(backend: Backend, peakMemoryBytes: number): Backend {
  return peakMemoryBytes > (backend.peakMemoryBytes ?? 0) ? { ...backend, peakMemoryBytes } : backend;
}

async function removeContainerOf(worker: WorkerContext, run: Run): Promise<void> {
  const { container } = run;
  if (!container) return;
  for (;;) {
    try {
      await removeContainer(worker, run.id, container.id);
      return;
    } catch (error) {
      worker.closing.throwIfAborted();
      worker.log.warn({ err: error, backend: run.id }, 'Container cannot be removed, trying again');
    }
    await worker.clock.sleep(removeAgainAfterMs, worker.closing);
  }
}
