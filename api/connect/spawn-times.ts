import { services, withSpawn } from '../../model/service.ts';
import type { ApiDependencies } from '../dependencies.ts';

/** Precise enough. A thousand spawns a second must not change one document as often. */
const writeEveryMs = 1_000;

/** The latest spawn of each environment of a service. */
type Times = ReadonlyMap<string, Date>;

/**
 * Records when services were last spawned, without delaying responses. The first spawn is written at once, and those within the next
 * second together. A crash may lose records, but the documents of the backends have the same times.
 */
export class SpawnTimes implements AsyncDisposable {
  readonly #deps: Pick<ApiDependencies, 'store' | 'clock' | 'log'>;
  readonly #recorded = new Map<string, Times>();
  readonly #writers = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();

  constructor(deps: Pick<ApiDependencies, 'store' | 'clock' | 'log'>) {
    this.#deps = deps;
  }

  /** Records a spawn of a service. */
  record(service: string, environment: string, time: Date): void {
    this.#recorded.set(service, new Map([...(this.#recorded.get(service) ?? []), [environment, time]]));
    if (!this.#writers.has(service)) this.#writers.set(service, this.#write(service));
  }

  /** Writes all records. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#writers.values());
  }

  async #write(service: string): Promise<void> {
    const { store, clock, log } = this.#deps;
    for (let times = this.#take(service); times; times = this.#take(service)) {
      const recorded = [...times];
      try {
        await store.update(services, service, (current) =>
          recorded.reduce((changed, [environment, time]) => withSpawn(changed, environment, time), current),
        );
      } catch (error) {
        log.warn({ err: error, service }, 'Cannot record when a service was last spawned');
      }
      await clock.sleep(writeEveryMs, this.#closing.signal).catch(() => {});
    }
    // Synchronously after the last check, so that the next record starts a new writer.
    this.#writers.delete(service);
  }

  #take(service: string): Times | undefined {
    const times = this.#recorded.get(service);
    this.#recorded.delete(service);
    return times;
  }
}
