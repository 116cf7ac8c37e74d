import { QueueError } from '../core/queue/queue.ts';
import type { AddOptions, JobKind } from '../core/queue/queue.ts';
import type { Api } from './dependencies.ts';

/** Adds a job for workers. If the queue is unavailable, they find the work in the store a few seconds later. */
export async function notify(
  api: Pick<Api, 'queue' | 'log'>,
  queue: string,
  kind: JobKind<{ backend: string }>,
  job: { backend: string } & Omit<AddOptions, 'id'>,
): Promise<void> {
  const { backend, ...options } = job;
  try {
    await api.queue.add(queue, kind, { backend }, { id: `${kind.name}-${backend}`, ...options });
  } catch (error) {
    if (!(error instanceof QueueError)) throw error;
    api.log.warn(
      { err: error, backend, job: kind.name },
      'Queue is unavailable, the worker will find the backend in the store',
    );
  }
}
