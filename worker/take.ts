/** How this node takes backends that wait for one. */
import { advance, assign, backends } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { newRun } from './context.ts';
import type { WorkerContext } from './context.ts';
import { beginSpawn } from './spawn.ts';
import { writeBackend } from './statuses.ts';

/** Whether this node takes backends now: its engine answers, and it has room. */
export function isTaking({ pulse, runs, taking, settings }: WorkerContext): boolean {
  return pulse.problem === undefined && runs.size + taking.size < (settings.maxBackends ?? Infinity);
}

/**
 * Takes a backend, if it still waits, and starts it. Resolves when it needs no place among the starts any more; it goes on by
 * itself. Throws when the store does not answer.
 *
 * @param slot - a place among the starts, which is given back in any case
 */
export async function take(worker: WorkerContext, id: string, slot: Disposable): Promise<void> {
  using _slot = slot;
  if (worker.runs.has(id) || worker.taking.has(id) || worker.closing.aborted) return;
  worker.taking.add(id);
  let taken: Backend | undefined;
  try {
    const { node } = worker.settings;
    const now = worker.clock.now();
    taken = await writeBackend(worker, id, (backend) => {
      const assigned = assign(backend, node);
      // One write for both, unless it must wait for its key first.
      return assigned === backend || assigned.waitsFor !== undefined ? assigned : advance(assigned, 'loading', now);
    });
    if (!taken?.live || taken.node !== node || worker.closing.aborted) return;
    newRun(worker, taken);
  } finally {
    worker.taking.delete(id);
  }
  const run = worker.runs.get(id);
  if (run) await beginSpawn(worker, run, slot);
}

/** Takes the oldest backends of the cluster that no node has taken, as far as there is place. The queue is only a nudge. */
export async function takeWaiting(worker: WorkerContext): Promise<void> {
  if (!isTaking(worker)) return;
  const slot = worker.starts.tryTake();
  if (!slot) return;
  slot[Symbol.dispose]();
  const waiting = await worker.store.find(backends, {
    index: 'waiting',
    equals: { live: true, cluster: worker.settings.cluster, node: null },
    limit: worker.settings.maxConcurrentStarts,
  });
  for (const { id } of waiting) {
    if (!isTaking(worker)) return;
    const place = worker.starts.tryTake();
    if (!place) return;
    take(worker, id, place).catch((error: unknown) => {
      worker.log.warn({ err: error, backend: id }, 'Waiting backend cannot be taken');
    });
  }
}
