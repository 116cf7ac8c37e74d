import { abortable } from './abortable.ts';
import type { Images } from './docker/images.ts';

interface Pull {
  readonly done: Promise<void>;
  readonly controller: AbortController;
  waiting: number;
}

/** Pulls in flight, one for each image, shared by all backends that wait for it. */
export class Pulls {
  readonly #images: Images;
  readonly #byReference = new Map<string, Pull>();

  constructor(images: Images) {
    this.#images = images;
  }

  /**
   * Fetches an image, or waits for the pull that does. Rejects with the signal's reason when it aborts; when nobody waits any
   * more, the engine stops fetching.
   */
  async pull(reference: string, newToken: () => Promise<string>, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const pull = this.#byReference.get(reference) ?? this.#begin(reference, newToken);
    pull.waiting += 1;
    try {
      await abortable(pull.done, signal);
    } finally {
      pull.waiting -= 1;
      if (pull.waiting === 0) this.#end(reference, pull);
    }
  }

  #begin(reference: string, newToken: () => Promise<string>): Pull {
    const controller = new AbortController();
    const done = newToken().then((token) => this.#images.pull(reference, { token, signal: controller.signal }));
    done.catch(() => {});
    const pull = { done, controller, waiting: 0 };
    this.#byReference.set(reference, pull);
    return pull;
  }

  #end(reference: string, pull: Pull): void {
    if (this.#byReference.get(reference) === pull) this.#byReference.delete(reference);
    pull.controller.abort();
  }
}
