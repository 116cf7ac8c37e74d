/** A bounded number of permits, granted in the order of the requests. */
export class Semaphore {
  #available: number;
  readonly #waiting = new Set<(permit: Disposable) => void>();

  constructor(permits: number) {
    this.#available = permits;
  }

  /** How many permits are available now. */
  get available(): number {
    return this.#available;
  }

  /** Waits for a permit; dispose it to release it. Rejects with the signal's reason if the signal aborts first. */
  async acquire(signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted();
    if (this.#available > 0) {
      this.#available -= 1;
      return this.#newPermit();
    }
    return await new Promise<Disposable>((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.delete(onPermit);
        reject(signal?.reason as Error);
      };
      const onPermit = (permit: Disposable) => {
        signal?.removeEventListener('abort', onAbort);
        resolve(permit);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(onPermit);
    });
  }

  #newPermit(): Disposable {
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#release();
      },
    };
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next) {
      this.#waiting.delete(next);
      next(this.#newPermit());
    } else {
      this.#available += 1;
    }
  }
}
