/** Level-triggered: compares the store and the engine with the runs of this worker, and repairs the differences. */
import { backends } from '../../model/backend.ts';
import { adopt } from './adopt.ts';
import { removeContainer } from '../lifecycle/remove-container.ts';
import type { WorkerContext } from '../context.ts';
import type { ListedContainer } from '../docker/containers.ts';
import { isEngineError } from '../docker/engine-error.ts';
import { checkContainer } from '../lifecycle/container-exit.ts';
import { claimWaiting } from '../scheduling/claim.ts';
import { applyStopRequest } from '../lifecycle/stop.ts';

/** Makes one pass over all containers and backends. Throws if the store or the engine does not answer. */
export async function reconcile(worker: WorkerContext): Promise<void> {
  // In this order: a container is created after its backend was claimed, so a container without a live backend is a leftover.
  const containers = await worker.engine.containers.list();
  await checkExitedAmong(worker, containers);
  const leftOver = await findLeftOver(worker, containers);
  await killAll(worker, leftOver);
  await reconcileBackends(worker, containers);
  await removeAll(worker, leftOver);
  await removeLeases(worker, containers);
  await claimWaiting(worker);
}

/** Finalizes runs whose container exited without an event. Throws if the engine does not answer. */
export async function checkExited(worker: WorkerContext): Promise<void> {
  await checkExitedAmong(worker, await worker.engine.containers.list());
}

async function checkExitedAmong(worker: WorkerContext, containers: readonly ListedContainer[]): Promise<void> {
  const phases = new Map(containers.map(({ id, phase }) => [id, phase]));
  for (const run of worker.runs.values()) {
    const phase = phases.get(run.container?.id ?? '');
    if (!run.container?.started || phase === 'running') continue;
    await logFailure(worker, run.id, async () => {
      await checkContainer(worker, run, phase === 'exited' ? null : undefined);
    });
  }
}

async function reconcileBackends(worker: WorkerContext, containers: readonly ListedContainer[]): Promise<void> {
  const before = new Set(worker.runs.keys());
  const ours = await worker.store.find(backends, {
    index: 'byNode',
    equals: { node: worker.settings.node, live: true },
  });
  const containerOf = new Map(containers.map((container) => [container.backend, container]));
  // Of two backends with the same key, the earlier holder may still run: it is adopted before the next one is started.
  for (const backend of ours.toSorted((one, other) => (one.fencingToken ?? 0) - (other.fencingToken ?? 0))) {
    before.delete(backend.id);
    const run = worker.runs.get(backend.id);
    if (run) applyStopRequest(worker, run, backend);
    else await logFailure(worker, backend.id, () => adopt(worker, backend.id, containerOf.get(backend.id)));
  }
  // Runs whose backend is no longer live here: another component ended or deleted it.
  for (const id of before) {
    const run = worker.runs.get(id);
    if (run && !run.isFinalizing) applyStopRequest(worker, run, await worker.store.get(backends, id));
  }
}

async function findLeftOver(
  worker: WorkerContext,
  containers: readonly ListedContainer[],
): Promise<readonly ListedContainer[]> {
  const leftOver: ListedContainer[] = [];
  for (const container of containers) {
    if (worker.runs.has(container.backend) || worker.claiming.has(container.backend)) continue;
    const backend = await worker.store.get(backends, container.backend);
    if (!backend?.live || backend.node !== worker.settings.node) leftOver.push(container);
  }
  return leftOver;
}

/**
 * Kills leftover containers before any backend is started: a leftover may hold the key of the next backend. So if the engine does not
 * answer for one of them, throws its `EngineError` after the others.
 */
async function killAll(worker: WorkerContext, leftOver: readonly ListedContainer[]): Promise<void> {
  let unanswered: unknown;
  const kill = async (id: string) => {
    await worker.engine.containers.signal(id, 'SIGKILL').catch((error: unknown) => {
      if (isEngineError(error, 'unavailable')) unanswered ??= error;
      throw error;
    });
  };
  for (const { id, backend, phase } of leftOver) {
    if (phase !== 'running') continue;
    worker.log.warn({ backend, container: id }, 'Killing a leftover container');
    await logFailure(worker, backend, async () => await kill(id));
  }
  if (unanswered !== undefined) throw unanswered;
}

/** At the same time: the log of each is read first, and the worker opens when all are removed. */
async function removeAll(worker: WorkerContext, leftOver: readonly ListedContainer[]): Promise<void> {
  await Promise.all(
    leftOver.map(async ({ id, backend }) => {
      worker.log.warn({ backend, container: id }, 'Removing a leftover container');
      await logFailure(worker, backend, () => removeContainer(worker, backend, id));
    }),
  );
}

/** Removes the lease folders that a crash has left. */
async function removeLeases(worker: WorkerContext, containers: readonly ListedContainer[]): Promise<void> {
  const isContained = new Set(containers.map(({ backend }) => backend));
  const isNeeded = (backend: string) => worker.runs.has(backend) || isContained.has(backend);
  await worker.containerLeases?.removeAllBut(isNeeded);
}

/** Logs a failure, so that one backend does not delay the others; the next pass tries again. */
async function logFailure(worker: WorkerContext, backend: string, handle: () => Promise<void>): Promise<void> {
  try {
    await handle();
  } catch (error) {
    worker.log.warn({ err: error, backend }, 'Cannot reconcile a backend, the next pass tries again');
  }
}
