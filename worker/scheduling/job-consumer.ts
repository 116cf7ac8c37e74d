/** Consumes the cluster's spawn jobs while this node accepts backends. */
import { clusterQueue, spawnJob } from '../../contract/jobs.ts';
import { backendWaits } from '../../contract/messages.ts';
import { abortable } from '../../core/async/abortable.ts';
import { JobHandlers } from '../../core/queue/queue.ts';
import type { Queue } from '../../core/queue/queue.ts';
import { backends } from '../../model/backend.ts';
import { settledOnClose } from '../close.ts';
import type { WorkerContext } from '../context.ts';
import { accepts, acceptsBackends, claim, claimWaiting } from './claim.ts';

/** How soon a node notices that it has capacity again. */
const updateEveryMs = 1_000;

/**
 * Consumes jobs of the cluster's queue until disposed, but leaves them to other nodes while this node does not accept backends. If
 * a backend does not fit here, this is published to all nodes, and a node with capacity finds the backend in the store.
 */
export async function consumeSpawnJobs(worker: WorkerContext, queue: Queue): Promise<AsyncDisposable> {
  await using parts = new AsyncDisposableStack();
  const consumer = parts.use(new JobConsumer(worker, queue));
  await consumer.update();
  const { cluster } = worker.settings;
  parts.use(
    await worker.bus.subscribe(backendWaits, (message) => {
      if (message.cluster === cluster) consumer.scheduleClaim();
    }),
  );
  worker.engineHealth.onChange(() => consumer.scheduleUpdate());
  worker.drain.onChange(() => consumer.scheduleClaim());
  parts.use(worker.clock.every(updateEveryMs, () => consumer.scheduleUpdate()));
  const opened = parts.move();
  return { [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

class JobConsumer implements AsyncDisposable {
  readonly #worker: WorkerContext;
  readonly #queue: Queue;
  #subscription: AsyncDisposable | undefined;
  /** Whether the store may hold waiting backends that no further message announces. */
  #someWait = true;
  #isScheduled = false;
  #isClosed = false;
  #updating = Promise.resolve();

  constructor(worker: WorkerContext, queue: Queue) {
    this.#worker = worker;
    this.#queue = queue;
  }

  /** Starts or stops consuming jobs, and claims waiting backends. Throws if the queue or the store does not answer. */
  async update(): Promise<void> {
    if (this.#isClosed || !acceptsBackends(this.#worker)) await this.#unsubscribe();
    else if (!this.#subscription) await this.#subscribe();
    if (this.#isClosed || !this.#someWait) return;
    this.#someWait = false;
    if (await claimWaiting(this.#worker)) this.#someWait = true;
  }

  /** Updates soon: after the update in progress. */
  scheduleUpdate(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#updating = this.#updating
      .then(async () => {
        this.#isScheduled = false;
        await this.update();
      })
      .catch((error: unknown) => {
        this.#someWait = true;
        const { closing, log } = this.#worker;
        if (!closing.aborted) log.warn({ err: error }, 'Cannot claim backends, the next update tries again');
      });
  }

  /** Updates soon, and claims waiting backends in any case. */
  scheduleClaim(): void {
    this.#someWait = true;
    this.scheduleUpdate();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await settledOnClose(this.#updating);
    await this.#unsubscribe();
  }

  async #subscribe(): Promise<void> {
    const { cluster, maxConcurrentStarts } = this.#worker.settings;
    const handlers = new JobHandlers().on(
      spawnJob,
      async ({ backend }, signal) => await abortable(this.#spawn(backend), signal),
    );
    const concurrency = maxConcurrentStarts;
    this.#subscription = await this.#queue.consume(clusterQueue(cluster), handlers, { concurrency });
    this.#someWait = true;
    // The close does not wait for a queue that answers late.
    if (this.#isClosed) await this.#unsubscribe();
  }

  async #unsubscribe(): Promise<void> {
    const subscription = this.#subscription;
    this.#subscription = undefined;
    await subscription?.[Symbol.asyncDispose]();
  }

  async #spawn(id: string): Promise<void> {
    const { store, bus, settings } = this.#worker;
    const backend = await store.get(backends, id);
    if (!backend?.live || (backend.node ?? settings.node) !== settings.node) return;
    // The job is in progress while the start needs a permit, so that other nodes get the jobs that this node cannot start yet.
    if (accepts(this.#worker, backend)) await claim(this.#worker, backend);
    else await bus.publish(backendWaits, { cluster: settings.cluster });
  }
}
