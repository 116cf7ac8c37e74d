/**
 * Notifies nodes to prefetch the image of an environment when it was pushed, or when the environment was changed to its tag. A lost
 * notification is not repeated; then the next spawn pulls the image. Every API process receives every push and adds the jobs, and
 * a node's queue holds each image once.
 */
import { prefetchJob, nodeQueue } from '../../contract/jobs.ts';
import { manifestPushed } from '../../contract/messages.ts';
import { backends } from '../../model/backend.ts';
import { findImage } from '../../model/image.ts';
import { likelyNodes, recentSpawns } from '../../model/likely-nodes.ts';
import { isAlive, nodes } from '../../model/node.ts';
import { findService } from '../../model/service.ts';
import type { Environment, Service } from '../../model/service.ts';
import type { ApiDependencies } from '../dependencies.ts';

type PrefetcherDependencies = Pick<ApiDependencies, 'store' | 'queue' | 'bus' | 'log' | 'rules'>;

/** Notifies in the background, for one service at a time. Disposing waits for notifications in progress. */
export class Prefetcher implements AsyncDisposable {
  readonly #deps: PrefetcherDependencies;
  #subscription: AsyncDisposable | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(deps: PrefetcherDependencies) {
    this.#deps = deps;
  }

  /** Subscribes to pushes. */
  async listen(): Promise<void> {
    this.#subscription = await this.#deps.bus.subscribe(manifestPushed, ({ repository, tags }) => {
      if (tags.length > 0) this.begin(repository, ({ imageTag }) => tags.includes(imageTag));
    });
  }

  /** Notifies nodes to prefetch the images of some environments of a service. */
  begin(service: string, isSelected: (environment: Environment) => boolean): void {
    if (!this.#deps.rules.prefetchEnabled) return;
    this.#last = this.#last
      .then(() => this.#notifyFor(service, isSelected))
      .catch((error: unknown) => {
        this.#deps.log.warn({ err: error, service }, 'Cannot prefetch the image, the next spawn pulls it');
      });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#subscription?.[Symbol.asyncDispose]();
    await this.#last;
  }

  async #notifyFor(id: string, isSelected: (environment: Environment) => boolean): Promise<void> {
    const service = await findService(this.#deps.store, id);
    if (!service) return;
    for (const environment of service.environments.filter(isSelected)) await this.#notifyNodes(service, environment);
  }

  async #notifyNodes(service: Service, environment: Environment): Promise<void> {
    const { store, queue, log } = this.#deps;
    const image = await findImage(store, service.id, environment.imageTag);
    if (!image) return;
    const notified = await this.#findNodes(service, environment);
    for (const node of notified) {
      // By digest, because another tag can name the same image.
      const id = `${prefetchJob.name}-${image.repository}@${image.digest}`;
      await queue.add(nodeQueue(node), prefetchJob, { image: image.id }, { id });
    }
    if (notified.length > 0) log.info({ image: image.id, nodes: notified }, 'Nodes prefetch an image');
  }

  /** Finds the live nodes that will probably spawn the environment. */
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
