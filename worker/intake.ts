/** How nudges to spawn reach this node: while its engine answers, and while it has room. */
import { clusterQueue, spawnJob } from '../contract/jobs.ts';
import { JobHandlers } from '../core/queue/queue.ts';
import type { Queue } from '../core/queue/queue.ts';
import { abortable } from './abortable.ts';
import type { WorkerContext } from './context.ts';
import { isTaking, take, takeWaiting } from './take.ts';

/** How soon a node that was full takes again. */
const lookEveryMs = 1_000;

/**
 * Takes jobs of the cluster's queue until disposed, but none while this node does not take backends: they are for other nodes.
 * One that came too late for that is dropped, and what it is about found in the store, by whichever node has room.
 */
export async function takeSpawns(worker: WorkerContext, queue: Queue): Promise<AsyncDisposable> {
  const { cluster, maxConcurrentStarts } = worker.settings;
  const handlers = new JobHandlers().on(spawnJob, async ({ backend }, signal) => {
    const slot = await worker.starts.take(AbortSignal.any([signal, worker.closing]));
    if (isTaking(worker)) await abortable(take(worker, backend, slot), signal);
    else slot[Symbol.dispose]();
  });
  let consumer: AsyncDisposable | undefined;
  let isOver = false;
  const follow = async () => {
    if (isOver || !isTaking(worker)) {
      await consumer?.[Symbol.asyncDispose]();
      consumer = undefined;
    } else if (!consumer) {
      consumer = await queue.consume(clusterQueue(cluster), handlers, { concurrency: maxConcurrentStarts });
      await takeWaiting(worker);
    }
  };
  await follow();
  let following = Promise.resolve();
  const look = () => {
    following = following.then(follow).catch((error: unknown) => {
      if (!worker.closing.aborted) worker.log.warn({ err: error }, 'Spawns cannot be taken, the next look tries again');
    });
  };
  worker.pulse.onChange(look);
  const timer = worker.clock.every(lookEveryMs, look);
  return {
    [Symbol.asyncDispose]: async () => {
      timer[Symbol.dispose]();
      isOver = true;
      await following;
      await follow();
    },
  };
}
