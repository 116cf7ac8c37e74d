import { abortable } from './abortable.ts';
import type { Images } from './docker/images.ts';

interface Pull {
  readonly done: Promise<void>;
  readonly controller: AbortController;
  /** Whether it was begun before anybody asked for the image. */
  readonly begunAhead: boolean;
  /** Whether a backend waits for it, or did. */
  isNeeded: boolean;
  waiting: number;
}

type NewToken = () => Promise<string>;

/** A pull ahead of time has made way: a backend needs the engine to fetch another image. */
export class PullYielded extends Error {
  override readonly name = 'PullYielded';

  constructor() {
    super('Backends wait for other images');
  }
}

/**
 * Pulls in flight, one for each image, shared by all who wait for it. An engine fetches a few layers at a time, whoever wants
 * them, so what nobody has asked for yet makes way for what a backend waits for.
 */
export class Pulls {
  readonly #images: Pick<Images, 'pull'>;
  readonly #byReference = new Map<string, Pull>();

  constructor(images: Pick<Images, 'pull'>) {
    this.#images = images;
  }

  /**
   * Fetches an image for a backend, or waits for the pull that does. Rejects with the signal's reason when it aborts; when
   * nobody waits any more, the engine stops fetching.
   */
  async pull(reference: string, newToken: NewToken, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const shared = this.#byReference.get(reference);
    if (shared) shared.isNeeded = true;
    this.#makeWay();
    try {
      await this.#wait(reference, shared ?? this.#begin(reference, newToken, true), signal);
    } catch (error) {
      // Begun long ago, its grant may have run out, and what was away may be back.
      if (!shared?.begunAhead || signal.aborted) throw error;
      await this.pull(reference, newToken, signal);
    }
  }

  /** Fetches an image that no backend waits for, as `pull` does. Rejects with `PullYielded` when backends wait for others. */
  async pullAhead(reference: string, newToken: NewToken, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const shared = this.#byReference.get(reference);
    if (!shared && [...this.#byReference.values()].some(({ isNeeded }) => isNeeded)) throw new PullYielded();
    await this.#wait(reference, shared ?? this.#begin(reference, newToken, false), signal);
  }

  async #wait(reference: string, pull: Pull, signal: AbortSignal): Promise<void> {
    pull.waiting += 1;
    try {
      await abortable(pull.done, signal);
    } finally {
      pull.waiting -= 1;
      if (pull.waiting === 0) this.#end(reference, pull);
    }
  }

  #begin(reference: string, newToken: NewToken, isNeeded: boolean): Pull {
    const controller = new AbortController();
    const done = newToken().then((token) => this.#images.pull(reference, { token, signal: controller.signal }));
    const pull = { done, controller, begunAhead: !isNeeded, isNeeded, waiting: 0 };
    // Nobody shall join what has failed.
    done.catch(() => this.#forget(reference, pull));
    this.#byReference.set(reference, pull);
    return pull;
  }

  #makeWay(): void {
    for (const [reference, pull] of this.#byReference) {
      if (pull.isNeeded) continue;
      this.#forget(reference, pull);
      pull.controller.abort(new PullYielded());
    }
  }

  #end(reference: string, pull: Pull): void {
    this.#forget(reference, pull);
    pull.controller.abort();
  }

  #forget(reference: string, pull: Pull): void {
    if (this.#byReference.get(reference) === pull) this.#byReference.delete(reference);
  }
}
