/** Level-triggered: what the store and the engine hold is compared with what this worker does, and mended. */
import { backends } from '../../model/backend.ts';
import { adopt } from './adopt.ts';
import { removeContainer } from '../lifecycle/remove-container.ts';
import type { WorkerContext } from '../context.ts';
import type { ListedContainer } from '../docker/containers.ts';
import { checkContainer } from '../lifecycle/container-exit.ts';
import { claimWaiting } from '../scheduling/claim.ts';
import { applyStopRequest } from '../lifecycle/stop.ts';

/** One pass over everything. Throws when the store or the engine does not answer. */
export async function reconcile(worker: WorkerContext): Promise<void> {
  // In this order: a container is made after its backend was taken, so a container without a live backend is left over.
  const containers = await worker.engine.containers.list();
  await checkDead(worker, containers);
  const leftOver = await findLeftOver(worker, containers);
  await killAll(worker, leftOver);
  await reconcileBackends(worker, containers);
  await removeAll(worker, leftOver);
  await removeLeases(worker, containers);
  await claimWaiting(worker);
}

/** Finds containers that have ended while nobody listened. Throws when the engine does not answer. */
export async function findDead(worker: WorkerContext): Promise<void> {
  await checkDead(worker, await worker.engine.containers.list());
}

async function checkDead(worker: WorkerContext, containers: readonly ListedContainer[]): Promise<void> {
  const running = new Set(containers.filter(({ phase }) => phase === 'running').map(({ id }) => id));
  for (const run of worker.runs.values()) {
    if (run.container?.started && !running.has(run.container.id)) await checkContainer(worker, run);
  }
}

async function reconcileBackends(worker: WorkerContext, containers: readonly ListedContainer[]): Promise<void> {
  const before = new Set(worker.runs.keys());
  const ours = await worker.store.find(backends, {
    index: 'byNode',
    equals: { node: worker.settings.node, live: true },
  });
  const containerOf = new Map(containers.map((container) => [container.backend, container]));
  // Of two with the same key, the one that held it first may still run: it is adopted before the next one is started.
  for (const backend of ours.toSorted((one, other) => (one.fencingToken ?? 0) - (other.fencingToken ?? 0))) {
    before.delete(backend.id);
    const run = worker.runs.get(backend.id);
    if (run) applyStopRequest(worker, run, backend);
    else await oneByOne(worker, backend.id, () => adopt(worker, backend.id, containerOf.get(backend.id)));
  }
  // What was ours and is not among the live ones any more: ended by somebody else, or deleted.
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

/** Before anything is started: a container that is left over may have the key of the next backend. */
async function killAll(worker: WorkerContext, leftOver: readonly ListedContainer[]): Promise<void> {
  for (const { id, backend, phase } of leftOver) {
    if (phase !== 'running') continue;
    worker.log.warn({ backend, container: id }, 'Container was left over, killing it');
    await oneByOne(worker, backend, () => worker.engine.containers.signal(id, 'SIGKILL'));
  }
}

async function removeAll(worker: WorkerContext, leftOver: readonly ListedContainer[]): Promise<void> {
  for (const { id, backend } of leftOver) {
    worker.log.warn({ backend, container: id }, 'Container was left over, removing it');
    await oneByOne(worker, backend, () => removeContainer(worker, backend, id));
  }
}

/** Removes lease folders that a crash has left. */
async function removeLeases(worker: WorkerContext, containers: readonly ListedContainer[]): Promise<void> {
  const isContained = new Set(containers.map(({ backend }) => backend));
  const isNeeded = (backend: string) => worker.runs.has(backend) || isContained.has(backend);
  await worker.containerLeases?.removeAllBut(isNeeded);
}

/** One that cannot be handled must not keep the others waiting; the next pass tries it again. */
async function oneByOne(worker: WorkerContext, backend: string, handle: () => Promise<void>): Promise<void> {
  try {
    await handle();
  } catch (error) {
    worker.log.warn({ err: error, backend }, 'Backend cannot be looked after, the next pass tries again');
  }
}
