import { services, withSpawn } from '../model/service.ts';
import type { ApiDependencies } from './room.ts';

/** Nobody needs to know it more exactly than this, and a thousand spawns a second must not all change one document. */
const writeEveryMs = 1_000;

/** The latest spawn of each environment of a service. */
type Times = ReadonlyMap<string, Date>;

/**
 * Notes when services were last spawned, beside the answers and never in their way: the first note is written at once, and
 * those that follow within a second together. Notes that are lost in a crash are not missed; backends tell the same.
 */
export class SpawnTimes implements AsyncDisposable {
  readonly #deps: Pick<ApiDependencies, 'store' | 'clock' | 'log'>;
  readonly #noted = new Map<string, Times>();
  readonly #writers = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();

  constructor(deps: Pick<ApiDependencies, 'store' | 'clock' | 'log'>) {
    this.#deps = deps;
  }

  /** Notes a spawn of the service with this ID. */
  note(service: string, environment: string, time: Date): void {
    this.#noted.set(service, new Map([...(this.#noted.get(service) ?? []), [environment, time]]));
    if (!this.#writers.has(service)) this.#writers.set(service, this.#write(service));
  }

  /** Writes what is noted, and waits for it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#writers.values());
  }

  async #write(service: string): Promise<void> {
    const { store, clock, log } = this.#deps;
    for (let times = this.#take(service); times; times = this.#take(service)) {
      const noted = [...times];
      try {
        await store.update(services, service, (current) =>
          noted.reduce((changed, [environment, time]) => withSpawn(changed, environment, time), current),
        );
      } catch (error) {
        log.warn({ err: error, service }, 'Could not note when a service was last spawned');
      }
      await clock.sleep(writeEveryMs, this.#closing.signal).catch(() => {});
    }
    // In the same moment in which nothing was found to write: what is noted from now on has a writer of its own.
    this.#writers.delete(service);
  }

  #take(service: string): Times | undefined {
    const times = this.#noted.get(service);
    this.#noted.delete(service);
    return times;
  }
}
