/**
 * Removes what belonged to deleted services: stops their backends, and deletes their images and spawn tokens; blobs are left to garbage
 * collection. Every API process may do this at the same time, and repeat all of it after a crash: the document of a service says what
 * is left to do, and each step checks what it changes.
 */
import { PeriodicTask } from '../../core/async/periodic-task.ts';
import { services, withClearing } from '../../model/service.ts';
import type { Service } from '../../model/service.ts';
import { spawnTokens } from '../../model/spawn-token.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { requestBackendStop, runningBackends } from '../stop.ts';

/** After a crash, the rest is removed this much later at most. */
const passEveryMs = 5_000;

/**
 * The document of a deleted service stays for this long: a connect that read the service before the deletion may insert its backend
 * a while later, since it may wait for a key (`key-wait.ts`), and this backend is stopped, too.
 */
const connectsEndAfterMs = 60_000;

type ClearingDependencies = Pick<ApiDependencies, 'store' | 'queue' | 'bus' | 'clock' | 'log' | 'purgeRepository'>;

/** Passes over deleted services. Disposing waits for the current pass. */
export class ServiceClearing implements AsyncDisposable {
  readonly #deps: ClearingDependencies;
  readonly #task: PeriodicTask;

  constructor(deps: ClearingDependencies) {
    this.#deps = deps;
    this.#task = new PeriodicTask(deps.clock, passEveryMs, async () => await this.#passOrLog());
  }

  /** Begins a pass in the background, unless one runs. The next pass handles what the running one missed. */
  begin(): void {
    void this.#task.run();
  }

  /** Runs one pass. Throws `StoreError` if the store fails. */
  async pass(): Promise<void> {
    const { store } = this.#deps;
    // Read first: everything that belongs to a new service with the same name is newer than this.
    const now = await store.now();
    for await (const service of store.scan(services, { index: 'byClearing', range: { after: null } })) {
      await this.#clear(service, now);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#task[Symbol.asyncDispose]();
  }

  async #passOrLog(): Promise<void> {
    await this.pass().catch((error: unknown) => {
      this.#deps.log.warn({ err: error }, 'Pass over deleted services failed, the next one retries');
    });
  }

  async #clear(service: Service, now: Date): Promise<void> {
    const { store, log } = this.#deps;
    const { id, deletedAt, clearBefore } = service;
    if (!clearBefore) return;
    const before = deletedAt ? now : clearBefore;
    const running = await this.#stopBackends(service, before);
    await this.#deleteSpawnTokens(service, before);
    await this.#deps.purgeRepository(id, before);
    if (!deletedAt) {
      await store.update(services, id, (current) => withClearing(current, clearBefore));
      return;
    }
    if (running > 0 || now.getTime() - deletedAt.getTime() < connectsEndAfterMs) return;
    const isSame = (current: Service) => current.deletedAt?.getTime() === deletedAt.getTime();
    if (await store.delete(services, id, isSame)) log.info({ service: id }, 'Removed a deleted service');
  }

  /** Stops the backends of a service that were created before a time. Returns how many have not ended yet. */
  async #stopBackends(service: Service, before: Date): Promise<number> {
    let count = 0;
    for await (const { id } of runningBackends(this.#deps.store, service, before)) {
      count += 1;
      await requestBackendStop(this.#deps, id, 'soft');
    }
    return count;
  }

  async #deleteSpawnTokens({ account, name }: Service, before: Date): Promise<void> {
    const { store } = this.#deps;
    const ofService = { index: 'byService', equals: { account, service: name }, range: { before } } as const;
    for await (const { id } of store.scan(spawnTokens, ofService)) await store.delete(spawnTokens, id);
  }
}
