/** A bounded number of places; who comes first gets one first. */
export class Slots {
  #free: number;
  readonly #waiting = new Set<(slot: Disposable) => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a place. Rejects with the signal's reason if that aborts first. Disposing gives the place back, once. */
  async take(signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted();
    const slot = this.tryTake();
    if (slot) return slot;
    return await new Promise<Disposable>((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.delete(onSlot);
        reject(signal?.reason as Error);
      };
      const onSlot = (freed: Disposable) => {
        signal?.removeEventListener('abort', onAbort);
        resolve(freed);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(onSlot);
    });
  }

  /** How many places are free now. */
  get free(): number {
    return this.#free;
  }

  /** A place, if one is free now. */
  tryTake(): Disposable | undefined {
    if (this.#free === 0) return undefined;
    this.#free -= 1;
    return this.#newSlot();
  }

  #newSlot(): Disposable {
    let held = true;
    return {
      [Symbol.dispose]: () => {
        if (!held) return;
        held = false;
        this.#giveBack();
      },
    };
  }

  #giveBack(): void {
    const [next] = this.#waiting;
    if (next) {
      this.#waiting.delete(next);
      next(this.#newSlot());
    } else {
      this.#free += 1;
    }
  }
}
