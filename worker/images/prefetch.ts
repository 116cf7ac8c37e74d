/** Prefetches images, before the first backend needs them. A failed prefetch costs only time: a spawn pulls a missing image. */
import { abortable } from '../../core/async/abortable.ts';
import { TimeoutError, withTimeout } from '../../core/async/with-timeout.ts';
import { findImage, images } from '../../model/image.ts';
import type { Image } from '../../model/image.ts';
import { findService } from '../../model/service.ts';
import { settledOnClose } from '../close.ts';
import type { WorkerContext } from '../context.ts';
import type { PrefetchResult } from '../metrics.ts';
import { bytesOnDisk, disksOf, findLack } from './image-space.ts';
import { newPullToken, referenceTo } from './pulls.ts';
import { Semaphore } from '../../core/async/semaphore.ts';

/** An engine pulls three layers at a time by default: two images keep it busy. */
const maxConcurrentPrefetches = 2;

/** A restarted registry is back after the second pause, and the pulls of backends have ended after the last. */
const pausesMs = [2_000, 10_000, 60_000, 300_000];

/** The prefetches of this node that are in progress or about to be retried. */
export class Prefetcher implements AsyncDisposable {
  readonly #worker: WorkerContext;
  readonly #permits = new Semaphore(maxConcurrentPrefetches);
  readonly #inProgress = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();
  /** Disk space that the prefetches in progress may still need. */
  #promisedBytes = 0;

  constructor(worker: WorkerContext) {
    this.#worker = worker;
  }

  /** Begins to prefetch the image with this ID, unless that is in progress. Continues in the background and logs its failure. */
  begin(id: string): void {
    if (!this.#worker.settings.prefetchEnabled || this.#closing.signal.aborted || this.#inProgress.has(id)) return;
    this.#inProgress.set(
      id,
      this.#fetch(id).finally(() => this.#inProgress.delete(id)),
    );
  }

  /** Cancels the prefetches in progress. They are not resumed: the next spawn pulls the image. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error('The worker is closing'));
    await settledOnClose(Promise.all(this.#inProgress.values()));
  }

  async #fetch(id: string): Promise<void> {
    const { clock, metrics, log } = this.#worker;
    const { signal } = this.#closing;
    for (const pauseMs of [...pausesMs, undefined]) {
      try {
        metrics.prefetched(await this.#attempt(id));
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (pauseMs === undefined) {
          log.warn({ err: error, image: id }, 'Cannot prefetch an image, its next spawn will pull it');
          metrics.prefetched('failed');
          return;
        }
        log.debug({ err: error, image: id, pauseMs }, 'Cannot prefetch an image, trying again');
      }
      await clock.sleep(pauseMs, signal).catch(() => {});
    }
  }

  /** Reads the image and its service each time: they may have changed since the job was added. */
  async #attempt(id: string): Promise<PrefetchResult> {
    const { store, engine, settings, log } = this.#worker;
    const { signal } = this.#closing;
    using _permit = await this.#permits.acquire(signal);
    const image = await store.get(images, id);
    if (!image || !(await this.#isSpawned(image))) {
      log.info({ image: id }, 'Image is not prefetched, no environment spawns it any more');
      return 'unneeded';
    }
    const reference = referenceTo(settings.registryHost, image);
    if (await abortable(engine.images.has(reference), signal)) return 'present';
    return await this.#pullIfSpace(image, reference);
  }

  /**
   * Does not retry if the disk is too full: the platform removes no images, and an operator may need hours to free space. The next
   * push or update tries again, and a spawn pulls the image in any case.
   */
  async #pullIfSpace(image: Image, reference: string): Promise<PrefetchResult> {
    const { engine, settings, log } = this.#worker;
    const disks = await disksOf(engine.imageFolders, settings.dataFolder);
    // No await between the check and the reservation: another image may be prefetched at the same time.
    const neededBytes = bytesOnDisk(image.sizeBytes);
    const need = { neededBytes: this.#promisedBytes + neededBytes, reserveBytes: settings.prefetchReserveBytes };
    const lack = findLack(disks, need);
    if (lack) {
      log.warn({ image: image.id, ...lack }, 'Image is not prefetched, there is too little space for it');
      return 'no-space';
    }
    this.#promisedBytes += neededBytes;
    try {
      return await this.#pull(image, reference);
    } finally {
      this.#promisedBytes -= neededBytes;
    }
  }

  async #isSpawned({ repository, digest }: Image): Promise<boolean> {
    const { store } = this.#worker;
    const service = await findService(store, repository);
    const spawned = await Promise.all(
      (service?.environments ?? []).map(async ({ imageTag }) => await findImage(store, repository, imageTag)),
    );
    return spawned.some((image) => image?.digest === digest);
  }

  async #pull({ repository }: Image, reference: string): Promise<PrefetchResult> {
    const { clock, log, pulls, settings } = this.#worker;
    const startedAt = clock.now();
    const limit = { clock, ms: settings.pullTimeoutSeconds * 1000, signal: this.#closing.signal };
    try {
      const newToken = () => newPullToken(this.#worker, repository);
      await withTimeout(limit, async (signal) => await pulls.prefetch(reference, newToken, signal));
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
      log.warn({ reference, limitSeconds: settings.pullTimeoutSeconds }, 'Prefetch of an image exceeds its time limit');
      return 'failed';
    }
    log.info({ reference, ms: clock.now().getTime() - startedAt.getTime() }, 'Image prefetched');
    return 'fetched';
  }
}
