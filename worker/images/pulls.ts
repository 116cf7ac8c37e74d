/** How this node pulls images: their references, the token for the registry, and the pulls in progress. */
import type { PullProgress } from '../../contract/messages.ts';
import { abortable } from '../../core/async/abortable.ts';
import type { Backend } from '../../model/backend.ts';
import type { Image } from '../../model/image.ts';
import { serviceId } from '../../model/service.ts';
import type { WorkerContext } from '../context.ts';
import type { Images } from '../docker/images.ts';

/** The registry checks the token when a pull begins, which may be up to the pull's time limit later; this much is spare. */
const tokenSpareSeconds = 60;

interface Pull {
  readonly done: Promise<void>;
  readonly controller: AbortController;
  /** Whether it began as a prefetch. */
  readonly isPrefetch: boolean;
  /** Whether a backend waits for it, or did. */
  isNeeded: boolean;
  readonly waiters: Set<Waiter>;
  /** The last progress that the engine reported. */
  progress: PullProgress | undefined;
}

/** A backend or a prefetch that waits for a pull. */
interface Waiter {
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: PullProgress) => void;
}

type NewToken = () => Promise<string>;

/** A prefetch was cancelled because a backend needs the engine to pull another image. */
export class PullYielded extends Error {
  override readonly name = 'PullYielded';

  constructor() {
    super('Backends wait for other images');
  }
}

/** The reference by which the engine pulls and finds a backend's image. */
export function imageReference(registryHost: string, { account, service, imageDigest }: Backend): string {
  return referenceTo(registryHost, { repository: serviceId(account, service), digest: imageDigest });
}

/** The reference by which the engine pulls and finds an image. */
export function referenceTo(
  registryHost: string,
  { repository, digest }: Pick<Image, 'repository' | 'digest'>,
): string {
  return `${registryHost}/${repository}@${digest}`;
}

/** A bearer token to pull from one repository, valid for as long as a pull may take. */
export async function newPullToken({ grants, settings, clock }: WorkerContext, name: string): Promise<string> {
  return await grants.issue(
    { subject: `node:${settings.node}`, access: [{ type: 'repository', name, actions: ['pull'] }] },
    settings.pullTimeoutSeconds + tokenSpareSeconds,
    clock.now(),
  );
}

/**
 * The pulls in progress. Callers that need the same image share its pull. An engine pulls only a few layers at a time, for whatever
 * image, so a prefetch yields to the pull of an image that a backend needs.
 */
export class Pulls {
  readonly #images: Pick<Images, 'pull'>;
  readonly #byReference = new Map<string, Pull>();

  constructor(images: Pick<Images, 'pull'>) {
    this.#images = images;
  }

  /**
   * Pulls an image for a backend, or waits for the pull in progress. Rejects with the signal's reason when it aborts; when no
   * caller waits any more, the engine stops pulling.
   */
  async pull(reference: string, newToken: NewToken, waiter: Waiter): Promise<void> {
    waiter.signal.throwIfAborted();
    const pull = this.#join(reference, newToken);
    try {
      await this.#wait(reference, pull, waiter);
    } catch (error) {
      // A prefetch may have begun long ago, so its token has expired or a failed service is back; or it was just yielding. Every
      // waiting caller has left it by now, so the next attempt begins a new pull.
      if (!pull.isPrefetch || waiter.signal.aborted) throw error;
      await this.#wait(reference, this.#join(reference, newToken), waiter);
    }
  }

  /** Pulls an image that no backend waits for, as `pull` does. Rejects with `PullYielded` if backends wait for other images. */
  async prefetch(reference: string, newToken: NewToken, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const shared = this.#byReference.get(reference);
    if (!shared && [...this.#byReference.values()].some(({ isNeeded }) => isNeeded)) throw new PullYielded();
    await this.#wait(reference, shared ?? this.#begin(reference, newToken, true), { signal });
  }

  #join(reference: string, newToken: NewToken): Pull {
    const pull = this.#byReference.get(reference) ?? this.#begin(reference, newToken, false);
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
      if (pull.waiters.size === 0) {
        if (this.#byReference.get(reference) === pull) this.#byReference.delete(reference);
        pull.controller.abort();
      }
    }
  }

  #begin(reference: string, newToken: NewToken, isPrefetch: boolean): Pull {
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
      isPrefetch,
      isNeeded: !isPrefetch,
      waiters: new Set(),
      progress: undefined,
    };
    this.#byReference.set(reference, pull);
    return pull;
  }
}
