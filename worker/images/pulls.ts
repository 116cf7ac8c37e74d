import type { PullProgress } from '../../contract/messages.ts';
import { abortable } from '../../core/async/abortable.ts';
import type { Images } from '../docker/images.ts';

interface Pull {
  readonly done: Promise<void>;
  readonly controller: AbortController;
  /** Whether it was begun before anybody asked for the image. */
  readonly begunAhead: boolean;
  /** Whether a backend waits for it, or did. */
  isNeeded: boolean;
  readonly waiters: Set<Waiter>;
  /** What the engine reported last. */
  progress: PullProgress | undefined;
}

/** What waits for a pull: a backend, or a prefetch. */
interface Waiter {
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: PullProgress) => void;
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
 * Pulls in flight, one for each image, shared by all who wait for it. An engine pulls a few layers at a time, whoever wants
 * them, so what nobody has asked for yet makes way for what a backend waits for.
 */
export class Pulls {
  readonly #images: Pick<Images, 'pull'>;
  readonly #byReference = new Map<string, Pull>();

  constructor(images: Pick<Images, 'pull'>) {
    this.#images = images;
  }

  /**
   * Pulls an image for a backend, or waits for the pull that does. Rejects with the signal's reason when it aborts; when
   * nobody waits any more, the engine stops fetching.
   */
  async pull(reference: string, newToken: NewToken, waiter: Waiter): Promise<void> {
    waiter.signal.throwIfAborted();
    const pull = this.#join(reference, newToken);
    try {
      await this.#wait(reference, pull, waiter);
    } catch (error) {
      // It may have begun long ago: its grant has run out, or what was away is back. Or it was just making way. All who
      // waited have left it by now, so nobody joins it again.
      if (!pull.begunAhead || waiter.signal.aborted) throw error;
      await this.#wait(reference, this.#join(reference, newToken), waiter);
    }
  }

  /** Pulls an image that no backend waits for, as `pull` does. Rejects with `PullYielded` when backends wait for others. */
  async prefetch(reference: string, newToken: NewToken, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const shared = this.#byReference.get(reference);
    if (!shared && [...this.#byReference.values()].some(({ isNeeded }) => isNeeded)) throw new PullYielded();
    await this.#wait(reference, shared ?? this.#begin(reference, newToken, false), { signal });
  }

  #join(reference: string, newToken: NewToken): Pull {
    const pull = this.#byReference.get(reference) ?? this.#begin(reference, newToken, true);
    pull.isNeeded = true;
    for (const other of this.#byReference.values()) if (!other.isNeeded) other.controller.abort(new PullYielded());
    return pull;
  }

  async #wait(reference: string, pull: Pull, waiter: Waiter): Promise<void> {
    pull.waiters.add(waiter);
    if (pull.progress) waiter.onProgress?.(pull.progress);
    try {
      await abortable(pull.done, waiter.signal);
    } finally {
      pull.waiters.delete(waiter);
      if (pull.waiters.size === 0) this.#end(reference, pull);
    }
  }

  #begin(reference: string, newToken: NewToken, isNeeded: boolean): Pull {
    const controller = new AbortController();
    const { signal } = controller;
    const onProgress = (progress: PullProgress) => {
      pull.progress = progress;
      for (const waiter of pull.waiters) waiter.onProgress?.(progress);
    };
    const done = newToken().then((token) => this.#images.pull(reference, { token, signal, onProgress }));
    done.catch(() => {});
    const pull: Pull = {
      done,
      controller,
      begunAhead: !isNeeded,
      isNeeded,
      waiters: new Set(),
      progress: undefined,
    };
    this.#byReference.set(reference, pull);
    return pull;
  }

  #end(reference: string, pull: Pull): void {
    if (this.#byReference.get(reference) === pull) this.#byReference.delete(reference);
    pull.controller.abort();
  }
}
