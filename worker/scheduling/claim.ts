/** How this node takes backends that wait for one. */
import { advance, assign, backends } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { changeBackend } from '../../model/change-backend.ts';
import { newRun } from '../lifecycle/new-run.ts';
import type { WorkerContext } from '../context.ts';
import { hasCapacity, hasCapacityFor } from './capacity.ts';
import { beginSpawn } from '../lifecycle/spawn.ts';

/** So many that wait are looked at in a pass: far more than can be started before the next one. */
const lookedAt = 200;

/** Whether this node takes backends now: its engine answers, and it has room. */
export function acceptsBackends(worker: WorkerContext): boolean {
  return worker.engineHealth.problem === undefined && hasCapacity(worker);
}

/** Whether this node takes a backend like this now. */
export function accepts(worker: WorkerContext, { limits }: Backend): boolean {
  return worker.engineHealth.problem === undefined && hasCapacityFor(worker, limits);
}

/**
 * Takes a backend, if it still waits, and starts it; there must be room for it. Resolves when the start needs no permit, or none
 * for now; it goes on by itself. Throws when the store does not answer.
 */
export async function claim(worker: WorkerContext, backend: Backend): Promise<void> {
  const { id } = backend;
  if (worker.runs.has(id) || worker.claiming.has(id) || worker.closing.aborted) return;
  worker.claiming.set(id, backend);
  let taken: Backend | undefined;
  try {
    const { node } = worker.settings;
    const now = worker.clock.now();
    ({ backend: taken } = await changeBackend(worker, id, (current) => {
      const assigned = assign(current, node);
      // One write for both, unless it must wait for its key first.
      return assigned === current || assigned.waitsFor !== undefined ? assigned : advance(assigned, 'loading', now);
    }));
    if (!taken?.live || taken.node !== node || worker.closing.aborted) return;
    newRun(worker, taken);
  } finally {
    worker.claiming.delete(id);
  }
  const run = worker.runs.get(id);
  if (run) await beginSpawn(worker, run);
}

/**
 * Takes the oldest backends of the cluster that no node has taken, as far as there are room and permits to start them. One that does not fit holds
 * up none that does. The queue is only a notification. Throws when the store does not answer.
 *
 * @returns whether some may be left that this node could not take now
 */
export async function claimWaiting(worker: WorkerContext): Promise<boolean> {
  if (!acceptsBackends(worker) || freeStarts(worker) <= 0) return true;
  const waiting = await worker.store.find(backends, {
    index: 'waiting',
    equals: { live: true, cluster: worker.settings.cluster, node: null },
    limit: lookedAt,
  });
  let isLeft = false;
  for (const backend of waiting) {
    if (!accepts(worker, backend)) {
      isLeft = true;
      continue;
    }
    if (freeStarts(worker) <= 0) return true;
    claim(worker, backend).catch((error: unknown) => {
      worker.log.warn({ err: error, backend: backend.id }, 'Waiting backend cannot be taken');
    });
  }
  return isLeft;
}

/** How many backends more can start at once. Those that are just being taken are about to. */
function freeStarts({ starts, claiming }: WorkerContext): number {
  return starts.available - claiming.size;
}
