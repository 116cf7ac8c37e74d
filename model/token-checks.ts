/**
 * Checks tokens for a process. What a token allows is remembered for less than half a second, so that most requests read nothing for it; a
 * message on the bus drops it at once. So a revocation takes effect within a second everywhere, also while the bus is silent.
 */
import { permissionsChanged } from '../contract/messages.ts';
import { newLruCache } from '../core/async/lru-cache.ts';
import { RecentReads } from '../core/async/recent-reads.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Log } from '../core/log/log.ts';
import type { Store } from '../core/store/store.ts';
import { accessTokens, noteUse } from './access-token.ts';
import { isStillAllowed, readPermissions } from './permissions.ts';
import type { Permissions } from './permissions.ts';

/** Twice this, for a stream that was opened with what was remembered, is within the second in which a revocation must take effect. */
const rememberMs = 400;

/** About 1 KiB each. */
const maxRemembered = 10_000;

/** How long the time of the last use may be behind. The document itself keeps it exact to a minute, across processes. */
const noteUseEveryMs = 60_000;

interface WatchOptions {
  /** The reason with which the signal aborts. */
  readonly reason: () => Error;
  /** Whether the stream may go on with what the token allows now, if it is still valid. Default: if it lost nothing (`isStillAllowed`). */
  readonly allows?: (now: Permissions) => boolean;
}

/** An open stream of a token. */
interface Watcher extends WatchOptions {
  readonly permissions: Permissions;
  readonly controller: AbortController;
}

interface TokenCheckDeps {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
}

/** A signal that aborts when a token does not allow a stream any more. Disposing stops watching. */
export interface TokenWatch extends Disposable {
  readonly signal: AbortSignal;
}

export class TokenChecks implements AsyncDisposable {
  readonly #deps: TokenCheckDeps;
  readonly #remembered = new RecentReads<Permissions | undefined>({
    forMs: rememberMs,
    max: maxRemembered,
    // Remembering what is not valid would keep other tokens out.
    keeps: (permissions) => permissions !== undefined,
  });
  readonly #usesNotedAtMs = newLruCache<number>(maxRemembered);
  readonly #watchers = new Map<string, Set<Watcher>>();
  readonly #pending = new Set<Promise<void>>();
  readonly #opened = new AsyncDisposableStack();
  /** Runs while streams are open. */
  #looks: Disposable | undefined;
  #isLooking = false;

  constructor(deps: TokenCheckDeps) {
    this.#deps = deps;
  }

  /** Listens to changes in other processes. */
  async listen(): Promise<void> {
    const subscription = await this.#deps.bus.subscribe(permissionsChanged, ({ token }) => this.#forget(token));
    this.#opened.use(subscription);
  }

  /** What a token allows, by the token's ID; `undefined` if it is not valid. Throws `StoreError`. */
  permissionsOf(id: string): Promise<Permissions | undefined> {
    return this.#remembered.get(id, async () => await this.#read(id));
  }

  /** To be called after a change of what tokens allow is in the store: of one token, or of a user or an account. */
  async publishChange(token?: string): Promise<void> {
    this.#forget(token);
    try {
      await this.#deps.bus.publish(permissionsChanged, token === undefined ? {} : { token });
    } catch (error) {
      this.#deps.log.warn(
        { err: error },
        'Cannot publish a change of permissions; other processes read it within a second',
      );
    }
  }

  /** Watches the token of an open stream, which was opened with these permissions. */
  watch(permissions: Permissions, options: WatchOptions): TokenWatch {
    const controller = new AbortController();
    const watcher = { ...options, permissions, controller };
    const watchers = this.#watchers.get(permissions.token) ?? new Set();
    this.#watchers.set(permissions.token, watchers.add(watcher));
    this.#looks ??= this.#deps.clock.every(rememberMs, () => this.#look());
    controller.signal.addEventListener('abort', () => this.#unwatch(watcher), { once: true });
    return { signal: controller.signal, [Symbol.dispose]: () => this.#unwatch(watcher) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopLooking();
    await this.#opened.disposeAsync();
    await Promise.allSettled(this.#pending);
  }

  async #read(id: string): Promise<Permissions | undefined> {
    const permissions = await readPermissions(this.#deps.store, id, await this.#deps.store.now());
    if (permissions) this.#noteUse(id);
    return permissions;
  }

  #forget(token: string | undefined): void {
    if (token === undefined) this.#remembered.forgetAll();
    else this.#remembered.forget(token);
    this.#look();
  }

  /** Looks whether the tokens of open streams allow what they did. */
  #look(): void {
    if (this.#isLooking || this.#watchers.size === 0) return;
    this.#isLooking = true;
    this.#track(
      Promise.all(Array.from(this.#watchers, async ([id, watchers]) => await this.#lookAt(id, watchers))).finally(
        () => (this.#isLooking = false),
      ),
      'Cannot check the tokens of open streams, the next look tries again',
    );
  }

  async #lookAt(id: string, watchers: ReadonlySet<Watcher>): Promise<void> {
    const permissions = await readPermissions(this.#deps.store, id, await this.#deps.store.now());
    for (const watcher of watchers) {
      const { allows = (now: Permissions) => isStillAllowed(watcher.permissions, now) } = watcher;
      if (!permissions || !allows(permissions)) watcher.controller.abort(watcher.reason());
    }
  }

  #unwatch(watcher: Watcher): void {
    const watchers = this.#watchers.get(watcher.permissions.token);
    watchers?.delete(watcher);
    if (watchers?.size === 0) this.#watchers.delete(watcher.permissions.token);
    if (this.#watchers.size === 0) this.#stopLooking();
  }

  #stopLooking(): void {
    this.#looks?.[Symbol.dispose]();
    this.#looks = undefined;
  }

  /** Notes the use in its own time: no request waits for it. */
  #noteUse(id: string): void {
    const nowMs = performance.now();
    const notedAtMs = this.#usesNotedAtMs.get(id);
    if (notedAtMs !== undefined && nowMs - notedAtMs < noteUseEveryMs) return;
    this.#usesNotedAtMs.set(id, nowMs);
    const { store } = this.#deps;
    const note = async () => {
      const now = await store.now();
      await store.update(accessTokens, id, (token) => noteUse(token, now));
    };
    this.#track(note(), 'Cannot note the use of a token');
  }

  #track(work: Promise<unknown>, failure: string): void {
    const settled = work.then(
      () => {},
      (error: unknown) => this.#deps.log.warn({ err: error }, failure),
    );
    const pending = settled.finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
  }
}
