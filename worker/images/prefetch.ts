/** Fetching images before somebody asks for them. Nobody waits for it, and nobody misses it: a spawn pulls what is not here. */
import { abortable } from '../../core/async/abortable.ts';
import { TimeoutError, settledWithin, withTimeout } from '../../core/async/with-timeout.ts';
import { findImage, images } from '../../model/image.ts';
import type { Image } from '../../model/image.ts';
import { services } from '../../model/service.ts';
import { referenceTo } from './reference.ts';
import type { WorkerContext } from '../context.ts';
import type { PrefetchResult } from '../metrics.ts';
import { bytesOnDisk, disksOf, findLack } from './image-space.ts';
import { newPullToken } from './pull-token.ts';
import { closeWithinMs } from '../settings.ts';
import { Semaphore } from '../../core/async/semaphore.ts';

/** An engine pulls three layers at a time, unless it is told otherwise: two images keep it busy. */
const maxConcurrentFetches = 2;

/** A registry that restarts is back after the second, and a node that pulls for backends has done so after the last. */
const pausesMs = [2_000, 10_000, 60_000, 300_000];

/** The images that this node pulls ahead, or is about to. */
export class Prefetcher implements AsyncDisposable {
  readonly #worker: WorkerContext;
  readonly #permits = new Semaphore(maxConcurrentFetches);
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #over = new AbortController();
  /** What the images that are just being fetched may still take. */
  #promisedBytes = 0;

  constructor(worker: WorkerContext) {
    this.#worker = worker;
  }

  /** Begins to fetch the image with this ID, unless that is under way. Goes on by itself; why it gives up is logged. */
  begin(id: string): void {
    if (!this.#worker.settings.prefetchEnabled || this.#over.signal.aborted || this.#underWay.has(id)) return;
    this.#underWay.set(
      id,
      this.#fetch(id).finally(() => this.#underWay.delete(id)),
    );
  }

  /** Stops what is under way. It is not gone on with later: what it was for is done by the next spawn. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort(new Error('The worker is closing'));
    await settledWithin({ ms: closeWithinMs }, async () => await Promise.all(this.#underWay.values()));
  }

  async #fetch(id: string): Promise<void> {
    const { clock, metrics, log } = this.#worker;
    const { signal } = this.#over;
    for (const pauseMs of [...pausesMs, undefined]) {
      try {
        metrics.prefetched(await this.#attempt(id));
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (pauseMs === undefined) {
          log.warn({ err: error, image: id }, 'Image cannot be fetched ahead, its next spawn will fetch it');
          metrics.prefetched('failed');
          return;
        }
        log.debug({ err: error, image: id, pauseMs }, 'Image cannot be fetched ahead, trying again');
      }
      await clock.sleep(pauseMs, signal).catch(() => {});
    }
  }

  /** Looks at the store each time: what the job was about may have changed since. */
  async #attempt(id: string): Promise<PrefetchResult> {
    const { store, engine, settings, log } = this.#worker;
    const { signal } = this.#over;
    using _permit = await this.#permits.acquire(signal);
    const image = await store.get(images, id);
    if (!image || !(await this.#isSpawned(image))) {
      log.info({ image: id }, 'Image is not fetched ahead, no environment spawns it any more');
      return 'unneeded';
    }
    const reference = referenceTo(settings.registryHost, image);
    if (await abortable(engine.images.has(reference), signal)) return 'present';
    return await this.#pullIfRoom(image, reference);
  }

  /**
   * A disk that is too full is not looked at again: nothing of ours takes images away, and whoever makes room may be hours away.
   * The next push or update begins anew, and a spawn pulls the image in any case: somebody asked for it.
   */
  async #pullIfRoom(image: Image, reference: string): Promise<PrefetchResult> {
    const { engine, settings, log } = this.#worker;
    const disks = await disksOf(engine.imageFolders, settings.dataFolder);
    // Nothing may come between the look and the promise: another image is fetched at the same time.
    const neededBytes = bytesOnDisk(image.sizeBytes);
    const facts = { neededBytes: this.#promisedBytes + neededBytes, reserveBytes: settings.prefetchReserveBytes };
    const lack = findLack(disks, facts);
    if (lack) {
      log.warn({ image: image.id, ...lack }, 'Image is not fetched ahead, there is too little space for it');
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
    const service = await store.get(services, repository);
    const spawned = await Promise.all(
      (service?.environments ?? []).map(async ({ imageTag }) => await findImage(store, repository, imageTag)),
    );
    return spawned.some((image) => image?.digest === digest);
  }

  async #pull({ repository }: Image, reference: string): Promise<PrefetchResult> {
    const { clock, log, pulls, settings } = this.#worker;
    const startedAt = clock.now();
    const limit = { clock, ms: settings.pullTimeoutSeconds * 1000, signal: this.#over.signal };
    try {
      const newToken = () => newPullToken(this.#worker, repository);
      await withTimeout(limit, async (signal) => await pulls.prefetch(reference, newToken, signal));
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
      log.warn({ reference, limitSeconds: settings.pullTimeoutSeconds }, 'Image takes too long to be fetched ahead');
      return 'failed';
    }
    log.info({ reference, ms: clock.now().getTime() - startedAt.getTime() }, 'Image fetched ahead');
    return 'fetched';
  }
}
