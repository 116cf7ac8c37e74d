/**
 * Checks tokens for a process. Permissions are cached for less than half a second, so that most requests read no documents for them; a
 * message on the bus drops them at once. So a revocation takes effect within a second everywhere, even while the bus is silent.
 */
import { permissionsChanged } from '../contract/messages.ts';
import { newLruCache } from '../core/async/lru-cache.ts';
import { RecentReads } from '../core/async/recent-reads.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Log } from '../core/log/log.ts';
import type { Store } from '../core/store/store.ts';
import { accessTokens, recordUse } from './access-token.ts';
import { isStillAllowed, readPermissions } from './permissions.ts';
import type { Permissions } from './permissions.ts';

/** A revocation must take effect within a second. A stream that was opened with cached permissions lasts at most twice this time. */
const rememberMs = 400;

/** About 1 KiB each. */
const maxRemembered = 10_000;

/** How often a process records the use of a token. The document limits the writes of all processes to one a minute, too. */
const recordUseEveryMs = 60_000;

interface WatchOptions {
  /** The reason with which the signal aborts. */
  readonly reason: () => Error;
  /** Whether the stream may continue with the current permissions of a valid token. Default: if none were lost (`isStillAllowed`). */
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

/** A signal that aborts when a token no longer allows a stream. Disposing stops watching. */
export interface TokenWatch extends Disposable {
  readonly signal: AbortSignal;
}

export class TokenChecks implements AsyncDisposable {
  readonly #deps: TokenCheckDeps;
  readonly #remembered = new RecentReads<Permissions | undefined>({
    forMs: rememberMs,
    max: maxRemembered,
    // Caching invalid tokens would evict valid ones.
    keeps: (permissions) => permissions !== undefined,
  });
  readonly #usesRecordedAtMs = newLruCache<number>(maxRemembered);
  readonly #watchers = new Map<string, Set<Watcher>>();
  readonly #pending = new Set<Promise<void>>();
  readonly #opened = new AsyncDisposableStack();
  /** Runs while streams are open. */
  #rechecks: Disposable | undefined;
  #isRechecking = false;

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

  /** Publishes a change of permissions: of one token, or of a user or an account. Call it after the change is in the store. */
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
    this.#rechecks ??= this.#deps.clock.every(rememberMs, () => this.#recheck());
    controller.signal.addEventListener('abort', () => this.#unwatch(watcher), { once: true });
    return { signal: controller.signal, [Symbol.dispose]: () => this.#unwatch(watcher) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopRechecks();
    await this.#opened.disposeAsync();
    await Promise.allSettled(this.#pending);
  }

  async #read(id: string): Promise<Permissions | undefined> {
    const permissions = await readPermissions(this.#deps.store, id, await this.#deps.store.now());
    if (permissions) this.#recordUse(id);
    return permissions;
  }

  #forget(token: string | undefined): void {
    if (token === undefined) this.#remembered.forgetAll();
    else this.#remembered.forget(token);
    this.#recheck();
  }

  /** Checks whether the tokens of open streams still allow them. */
  #recheck(): void {
    if (this.#isRechecking || this.#watchers.size === 0) return;
    this.#isRechecking = true;
    this.#track(
      Promise.all(Array.from(this.#watchers, async ([id, watchers]) => await this.#recheckToken(id, watchers))).finally(
        () => (this.#isRechecking = false),
      ),
      'Cannot check the tokens of open streams, the next check retries',
    );
  }

  async #recheckToken(id: string, watchers: ReadonlySet<Watcher>): Promise<void> {
    const permissions = await readPermissions(this.#deps.store, id, await this.#deps.store.now());
    for (const watcher of watchers) {
      const { allows = (now: Permissions) => isStillAllowed(watcher.permissions, now) } = watcher;
      if (!permissions || !allows(permissions)) watcher.controller.abort(reasonOf(watcher));
    }
  }

  #unwatch(watcher: Watcher): void {
    const watchers = this.#watchers.get(watcher.permissions.token);
    watchers?.delete(watcher);
    if (watchers?.size === 0) this.#watchers.delete(watcher.permissions.token);
    if (this.#watchers.size === 0) this.#stopRechecks();
  }

  #stopRechecks(): void {
    this.#rechecks?.[Symbol.dispose]();
    this.#rechecks = undefined;
  }

  /** Records the use of a token in the background: no request waits for it. */
  #recordUse(id: string): void {
    const nowMs = performance.now();
    const recordedAtMs = this.#usesRecordedAtMs.get(id);
    if (recordedAtMs !== undefined && nowMs - recordedAtMs < recordUseEveryMs) return;
    this.#usesRecordedAtMs.set(id, nowMs);
    const { store } = this.#deps;
    const record = async () => {
      const now = await store.now();
      await store.update(accessTokens, id, (token) => recordUse(token, now));
    };
    this.#track(record(), 'Cannot record the use of a token');
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

/** The reason for which a stream ends. A reason that cannot be made must not keep the stream open. */
function reasonOf({ reason }: WatchOptions): unknown {
  try {
    return reason();
  } catch (error) {
    return error;
  }
}
