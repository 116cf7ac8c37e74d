/**
 * Lets nodes fetch what an environment is going to spawn, when it was pushed or the environment was moved to it. Only notifies,
 * and nobody repeats them: one that is lost costs the next spawn the time to fetch its image. Every API process hears of every
 * push and notifies; a node's queue holds an image once.
 */
import { prefetchJob, nodeQueue } from '../contract/jobs.ts';
import { manifestPushed } from '../contract/messages.ts';
import { backends } from '../model/backend.ts';
import { findImage } from '../model/image.ts';
import { likelyNodes, recentSpawns } from '../model/likely-nodes.ts';
import { isAlive, nodes } from '../model/node.ts';
import { services } from '../model/service.ts';
import type { Environment, Service } from '../model/service.ts';
import type { ApiDependencies } from './room.ts';

type PrefetcherDependencies = Pick<ApiDependencies, 'store' | 'queue' | 'bus' | 'log' | 'rules'>;

/** Notifies beside answers and never in their way, one service after the other. Disposing waits for what was begun. */
export class Prefetcher implements AsyncDisposable {
  readonly #deps: PrefetcherDependencies;
  #subscription: AsyncDisposable | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(deps: PrefetcherDependencies) {
    this.#deps = deps;
  }

  /** Begins to hear of pushes. */
  async listen(): Promise<void> {
    this.#subscription = await this.#deps.bus.subscribe(manifestPushed, ({ repository, tags }) => {
      if (tags.length > 0) this.begin(repository, ({ imageTag }) => tags.includes(imageTag));
    });
  }

  /** Lets nodes fetch the images of these environments of a service. */
  begin(service: string, isMeant: (environment: Environment) => boolean): void {
    if (!this.#deps.rules.prefetchEnabled) return;
    this.#last = this.#last
      .then(() => this.#notifyFor(service, isMeant))
      .catch((error: unknown) => {
        this.#deps.log.warn({ err: error, service }, 'Cannot prefetch the image, the next spawn pulls it');
      });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#subscription?.[Symbol.asyncDispose]();
    await this.#last;
  }

  async #notifyFor(id: string, isMeant: (environment: Environment) => boolean): Promise<void> {
    const service = await this.#deps.store.get(services, id);
    if (!service) return;
    for (const environment of service.environments.filter(isMeant)) await this.#notifyNodes(service, environment);
  }

  async #notifyNodes(service: Service, environment: Environment): Promise<void> {
    const { store, queue, log } = this.#deps;
    const image = await findImage(store, service.id, environment.imageTag);
    if (!image) return;
    const told = await this.#findNodes(service, environment);
    for (const node of told) {
      // By its digest: under another tag it is the same image.
      const id = `${prefetchJob.name}-${image.repository}@${image.digest}`;
      await queue.add(nodeQueue(node), prefetchJob, { image: image.id }, { id });
    }
    if (told.length > 0) log.info({ image: image.id, nodes: told }, 'Nodes prefetch an image');
  }

  /** Those that live, of those that are likely to spawn it. */
  async #findNodes({ account, name }: Service, environment: Environment): Promise<string[]> {
    const { store } = this.#deps;
    const now = await store.now();
    const recent = await store.find(backends, {
      index: 'byService',
      equals: { account, service: name },
      order: 'descending',
      limit: recentSpawns,
    });
    const likely = likelyNodes(environment, recent, now);
    const found = await Promise.all(likely.map(async (node) => await store.get(nodes, node)));
    return found
      .filter((node) => node !== undefined)
      .filter((node) => isAlive(node, now) && node.cluster === environment.cluster)
      .map(({ id }) => id);
  }
}
