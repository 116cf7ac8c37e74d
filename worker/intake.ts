/** How nudges to spawn reach this node: while its engine answers. */
import { clusterQueue, spawnJob } from '../contract/jobs.ts';
import { JobHandlers } from '../core/queue/queue.ts';
import type { Queue } from '../core/queue/queue.ts';
import { abortable } from './abortable.ts';
import type { WorkerContext } from './context.ts';
import { take } from './take.ts';

/**
 * Takes jobs of the cluster's queue until disposed. While the engine of this node does not answer it takes none, and gives
 * back those that have begun: they are for other nodes.
 */
export async function takeSpawns(worker: WorkerContext, queue: Queue): Promise<AsyncDisposable> {
  const { cluster, maxConcurrentStarts } = worker.settings;
  const handlers = new JobHandlers().on(spawnJob, async ({ backend }, signal) => {
    const slot = await worker.starts.take(AbortSignal.any([signal, worker.closing]));
    await abortable(take(worker, backend, slot), signal);
  });
  let consumer: AsyncDisposable | undefined;
  let isOver = false;
  const follow = async () => {
    const isWanted = !isOver && worker.pulse.problem === undefined;
    if (isWanted) {
      consumer ??= await queue.consume(clusterQueue(cluster), handlers, { concurrency: maxConcurrentStarts });
    } else {
      await consumer?.[Symbol.asyncDispose]();
      consumer = undefined;
    }
  };
  await follow();
  let following = Promise.resolve();
  worker.pulse.onChange(() => {
    following = following.then(follow).catch((error: unknown) => {
      if (!worker.closing.aborted) worker.log.error({ err: error }, 'spawns cannot be taken from the queue');
    });
  });
  return {
    [Symbol.asyncDispose]: async () => {
      isOver = true;
      await following;
      await follow();
    },
  };
}
