/** Ends a backend on this node: writes its end, and removes its container and folders. */
import type { TerminationKind, TerminationReason } from '../../contract/statuses.ts';
import { becomeTerminated, terminationOf, terminationFields } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { removeContainer } from './remove-container.ts';
import type { WorkerContext } from '../context.ts';
import { removeOwnMount } from './mounts.ts';
import type { Run } from './run.ts';

/** How a run ended, unless its stop was requested. */
export interface Outcome {
  readonly exitCode: number | null;
  /** The cause, for users. */
  readonly failure?: string | undefined;
  readonly kind?: TerminationKind;
  readonly reason?: TerminationReason;
}

/** The engine may be restarting. The container does not run, so there is no hurry. */
const removeRetryMs = 2_000;

/**
 * Writes the end of a run whose container has exited or was never started, removes its leftovers, and deletes the run. Only the
 * first call counts. The start-up itself must not await it.
 */
export function finalize(worker: WorkerContext, run: Run, outcome: Outcome): Promise<void> {
  return run.finalize(async () => {
    try {
      await finalizeOnce(worker, run, outcome);
    } catch (error) {
      if (worker.closing.aborted) return;
      worker.log.error({ err: error, backend: run.id }, 'Cannot finalize a backend, the next pass tries again');
      worker.runs.delete(run.id);
      run.finish();
    }
  });
}

async function finalizeOnce(worker: WorkerContext, run: Run, outcome: Outcome): Promise<void> {
  const now = worker.clock.now();
  const failure = outcome.failure ?? run.failure;
  run.processExited();
  await run.endStartUp();
  // If the engine's answer was lost, the container may run: it is removed before the end is published.
  if (run.container && !run.container.started) await removeContainerOf(worker, run);
  run.containerGone();
  const wasReady = run.backend.readyAt !== undefined;
  let wasLive = false;
  const ended = await run.write((backend) => {
    wasLive = backend.live;
    // The time of this write: proxies poll for backends that have ended recently.
    return withEnd(withPeak(backend, run.peakMemoryBytes), { ...outcome, failure }, worker.clock.now());
  });
  if (ended && wasLive)
    worker.log.info({ backend: run.id, endedBy: 'worker', ...terminationFields(ended) }, 'Backend ended');
  else worker.log.info({ backend: run.id }, 'Removing the container of an ended backend');
  const last = ended?.history.at(-1);
  worker.metrics.terminated(last?.terminationReason ?? null);
  if (!wasReady) {
    const result = last?.terminationReason ? 'stopped' : 'failed';
    worker.metrics.spawned(result, (now.getTime() - run.backend.createdAt.getTime()) / 1000);
  }
  if (run.container?.started) await removeContainerOf(worker, run);
  if (!run.container) await removeOwnMount(worker, run.id);
  await run.containerLease?.remove().catch((error: unknown) => {
    worker.log.warn({ err: error, backend: run.id }, 'Cannot remove the lease folder, the next pass tries again');
  });
  await releaseEgress(worker, run);
  if (run.address !== undefined) worker.engine.network.addresses.release(run.address);
  worker.connections.delete(run.id);
  worker.runs.delete(run.id);
  run.finish();
}

/** Deletes the firewall rules for the address of a run, which the run no longer uses. Never rejects. */
export async function releaseEgress({ firewall, log }: WorkerContext, run: Run): Promise<void> {
  if (run.address === undefined) return;
  await firewall.release(run.address).catch((error: unknown) => {
    log.warn({ err: error, backend: run.id }, 'Cannot delete the firewall rules of an address that is no longer used');
  });
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

/** A backend with this peak of memory usage, unless a higher one was written before. */
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
      worker.log.warn({ err: error, backend: run.id }, 'Cannot remove the container, trying again');
    }
    await worker.clock.sleep(removeRetryMs, worker.closing);
  }
}
