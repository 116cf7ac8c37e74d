/** How backends that wait for a node reach this one: while its engine answers, and while it has room. */
import { clusterQueue, spawnJob } from '../../contract/jobs.ts';
import { backendWaits } from '../../contract/messages.ts';
import { JobHandlers } from '../../core/queue/queue.ts';
import type { Queue } from '../../core/queue/queue.ts';
import { backends } from '../../model/backend.ts';
import { abortable } from '../../core/async/abortable.ts';
import type { WorkerContext } from '../context.ts';
import { accepts, acceptsBackends, claim, claimWaiting } from './claim.ts';

/** How soon a node that was full takes again. */
const lookEveryMs = 1_000;

/**
 * Takes jobs of the cluster's queue until disposed, but none while this node does not take backends: they are for other nodes.
 * A backend that does not fit here is told of to all nodes, and the one that has room finds it in the store.
 */
export async function consumeSpawnJobs(worker: WorkerContext, queue: Queue): Promise<AsyncDisposable> {
  await using parts = new AsyncDisposableStack();
  const consumer = parts.use(new JobConsumer(worker, queue));
  await consumer.follow();
  const { cluster } = worker.settings;
  parts.use(
    await worker.bus.subscribe(backendWaits, (message) => {
      if (message.cluster === cluster) consumer.lookForWaiting();
    }),
  );
  worker.engineHealth.onChange(() => consumer.look());
  parts.use(worker.clock.every(lookEveryMs, () => consumer.look()));
  const opened = parts.move();
  return { [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

class JobConsumer implements AsyncDisposable {
  readonly #worker: WorkerContext;
  readonly #queue: Queue;
  #consumer: AsyncDisposable | undefined;
  /** Whether there may be some in the store that nobody will tell of again. */
  #someWait = true;
  #isDue = false;
  #isOver = false;
  #looking = Promise.resolve();

  constructor(worker: WorkerContext, queue: Queue) {
    this.#worker = worker;
    this.#queue = queue;
  }

  /** Takes jobs from now on, or none, as it stands now. Throws when the queue or the store does not answer. */
  async follow(): Promise<void> {
    if (this.#isOver || !acceptsBackends(this.#worker)) await this.#close();
    else if (!this.#consumer) await this.#open();
    if (this.#isOver || !this.#someWait) return;
    this.#someWait = false;
    if (await claimWaiting(this.#worker)) this.#someWait = true;
  }

  /** Follows soon. */
  look(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#looking = this.#looking
      .then(async () => {
        this.#isDue = false;
        await this.follow();
      })
      .catch((error: unknown) => {
        this.#someWait = true;
        const { closing, log } = this.#worker;
        if (!closing.aborted) log.warn({ err: error }, 'Spawns cannot be taken, the next look tries again');
      });
  }

  /** As `look`, for what waits in the store as well. */
  lookForWaiting(): void {
    this.#someWait = true;
    this.look();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#looking;
    await this.#close();
  }

  async #open(): Promise<void> {
    const { cluster, maxConcurrentStarts } = this.#worker.settings;
    const handlers = new JobHandlers().on(
      spawnJob,
      async ({ backend }, signal) => await this.#notified(backend, signal),
    );
    this.#consumer = await this.#queue.consume(clusterQueue(cluster), handlers, { concurrency: maxConcurrentStarts });
    this.#someWait = true;
  }

  async #close(): Promise<void> {
    const consumer = this.#consumer;
    this.#consumer = undefined;
    await consumer?.[Symbol.asyncDispose]();
  }

  async #notified(id: string, signal: AbortSignal): Promise<void> {
    const { store, bus, settings } = this.#worker;
    const backend = await store.get(backends, id);
    if (!backend?.live || (backend.node ?? settings.node) !== settings.node) return;
    // Holds its place among the jobs until the start needs no permit, so that other nodes take what this one could not start yet.
    if (accepts(this.#worker, backend)) await abortable(claim(this.#worker, backend), signal);
    else await bus.publish(backendWaits, { cluster: settings.cluster });
  }
}
