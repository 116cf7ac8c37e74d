/** Claims backends that wait for a node. */
import { advance, assign, backends } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { changeBackend } from '../../model/change-backend.ts';
import type { WorkerContext } from '../context.ts';
import { newRun } from '../lifecycle/run.ts';
import { beginSpawn } from '../lifecycle/spawn.ts';
import { hasCapacity, hasCapacityFor } from './capacity.ts';

/** Waiting backends that one pass reads: far more than can be started before the next pass. */
const maxWaitingRead = 200;

/** Whether this node accepts backends now: its engine answers, it has capacity, and it is not drained. */
export function acceptsBackends(worker: WorkerContext): boolean {
  return worker.engineHealth.problem === undefined && !worker.drain.isDrained && hasCapacity(worker);
}

/** Whether this node accepts a backend now. A drained node accepts those that it has claimed before. */
export function accepts(worker: WorkerContext, { limits, node }: Backend): boolean {
  if (worker.drain.isDrained && node !== worker.settings.node) return false;
  return worker.engineHealth.problem === undefined && hasCapacityFor(worker, limits);
}

/**
 * Claims a backend if it still waits, and starts it; the node must have capacity for it. Resolves when the start needs no permit at the
 * moment; it continues in the background. Throws if the store does not answer.
 */
export async function claim(worker: WorkerContext, backend: Backend): Promise<void> {
  const { id } = backend;
  if (worker.runs.has(id) || worker.claiming.has(id) || worker.closing.aborted) return;
  worker.claiming.set(id, backend);
  let claimed: Backend | undefined;
  try {
    const { node } = worker.settings;
    const now = worker.clock.now();
    ({ backend: claimed } = await changeBackend(worker, id, (current) => {
      const assigned = assign(current, node);
      // Both changes in one write, unless the backend must first wait for its key.
      return assigned === current || assigned.waitsFor !== undefined ? assigned : advance(assigned, 'loading', now);
    }));
    if (!claimed?.live || claimed.node !== node || worker.closing.aborted) return;
    newRun(worker, claimed);
  } finally {
    worker.claiming.delete(id);
  }
  const run = worker.runs.get(id);
  if (run) await beginSpawn(worker, run);
}

/**
 * Claims the oldest backends of the cluster that no node has claimed, as far as capacity and permits allow. A backend that does not
 * fit delays none that does. Throws if the store does not answer.
 *
 * @returns whether backends may be left that this node could not claim now
 */
export async function claimWaiting(worker: WorkerContext): Promise<boolean> {
  if (!acceptsBackends(worker) || freeStarts(worker) <= 0) return true;
  const waiting = await worker.store.find(backends, {
    index: 'waiting',
    equals: { live: true, cluster: worker.settings.cluster, node: null },
    limit: maxWaitingRead,
  });
  let isLeft = false;
  for (const backend of waiting) {
    if (!accepts(worker, backend)) {
      isLeft = true;
      continue;
    }
    if (freeStarts(worker) <= 0) return true;
    claim(worker, backend).catch((error: unknown) => {
      worker.log.warn({ err: error, backend: backend.id }, 'Cannot claim a waiting backend');
    });
  }
  return isLeft;
}

/** How many more backends can start at once. Each backend that is being claimed is about to need a permit. */
function freeStarts({ starts, claiming }: WorkerContext): number {
  return starts.available - claiming.size;
}
