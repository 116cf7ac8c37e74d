import { Semaphore } from '../../core/async/semaphore.ts';
import type { ArchiveLimits } from './limits.ts';

/** How many archives are read at a time. The others wait, and their bodies are not read: each that is costs some megabytes. */
export class ArchivePlaces {
  readonly #limits: Pick<ArchiveLimits, 'maxAtATime' | 'maxOfAccount'>;
  readonly #all: Semaphore;
  readonly #accounts = new Map<string, { readonly permits: Semaphore; users: number }>();

  constructor(limits: Pick<ArchiveLimits, 'maxAtATime' | 'maxOfAccount'>) {
    this.#limits = limits;
    this.#all = new Semaphore(limits.maxAtATime);
  }

  /** Waits for a place, which is given back when it is disposed. Rejects with the signal's reason if that aborts first. */
  async take(accountId: string, signal: AbortSignal): Promise<Disposable> {
    using owned = new DisposableStack();
    const account = this.#accounts.get(accountId) ?? { permits: new Semaphore(this.#limits.maxOfAccount), users: 0 };
    this.#accounts.set(accountId, account);
    account.users += 1;
    owned.defer(() => {
      account.users -= 1;
      if (account.users === 0) this.#accounts.delete(accountId);
    });
    owned.use(await account.permits.acquire(signal));
    owned.use(await this.#all.acquire(signal));
    return owned.move();
  }
}
