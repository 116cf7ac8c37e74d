/**
 * Deletes what has outlived its use: ended backends, routes that lead nowhere, keys that no backend holds, nodes that are gone. Every
 * API process may do this at the same time: each deletion checks the document that it deletes. What hangs on a backend goes
 * before it, so after a crash between two deletions the next pass finds the backend again, and with it the rest.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Counter } from 'prom-client';
import type { StoredDocument } from '../core/store/store.ts';
import { backends } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { forgettableBefore, isForgettable, keys } from '../model/key.ts';
import type { Key } from '../model/key.ts';
import { nodes } from '../model/node.ts';
import type { Node } from '../model/node.ts';
import { endedRouteMs, routes } from '../model/route.ts';
import { findPage } from './pages.ts';
import type { ApiDependencies } from './room.ts';

/** What falls due in a minute, with one connect a second, is deleted in one batch. */
const passEveryMs = 60_000;

/** SQLite commits a batch at once: few enough that a connect, which waits for its commit, hardly notices. */
const batchSize = 100;

/**
 * What ended longer ago, while no API process ran, keeps its routes until it is deleted itself: to look at everything that has
 * ended would make the first pass of each process a long one.
 */
const firstLookBackMs = 24 * 60 * 60 * 1000;

type RetentionDependencies = Pick<ApiDependencies, 'store' | 'clock' | 'log' | 'metrics' | 'rules'>;

/** How many documents of each kind a pass deleted. */
export type Deleted = Record<'backends' | 'routes' | 'keys' | 'nodes', number>;

/** Passes over what has outlived its use. Disposing ends the pass that runs after its batch. */
export class Retention implements AsyncDisposable {
  readonly #deps: RetentionDependencies;
  readonly #counter: Counter<'what'>;
  readonly #timer: Disposable;
  readonly #closing = new AbortController();
  #pass: Promise<void> | undefined;
  /** Backends that ended until then have no routes any more. */
  #routesGoneUntil: Date | undefined;

  constructor(deps: RetentionDependencies) {
    this.#deps = deps;
    this.#counter = new Counter({
      name: 'berth_deleted_documents_total',
      help: 'Documents that this process deleted because they had outlived their use: backends, routes, keys, nodes',
      labelNames: ['what'],
      registers: [deps.metrics],
    });
    this.#timer = deps.clock.every(passEveryMs, () => {
      this.#pass ??= this.#passOrTell().finally(() => (this.#pass = undefined));
    });
  }

  /** One pass. Throws `StoreError` when the store cannot be used. */
  async deleteOutlived(): Promise<Deleted> {
    const now = await this.#deps.store.now();
    const historyEnd = new Date(now.getTime() - this.#deps.rules.backendHistorySeconds * 1000);
    const deleted: Deleted = { backends: 0, routes: 0, keys: 0, nodes: 0 };
    await this.#deleteRoutesOfEnded(now, deleted);
    await this.#deleteBackends(historyEnd, deleted);
    await this.#deleteKeys(now, deleted);
    await this.#deleteNodes(historyEnd, deleted);
    return deleted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer[Symbol.dispose]();
    this.#closing.abort(new Error('The API is closing'));
    await this.#pass;
  }

  async #passOrTell(): Promise<void> {
    const { log } = this.#deps;
    try {
      const deleted = await this.deleteOutlived();
      const level = Object.values(deleted).some((count) => count > 0) ? 'info' : 'debug';
      log[level](deleted, 'Deleted what had outlived its use');
    } catch (error) {
      if (!this.#closing.signal.aborted) log.warn({ err: error }, 'Retention pass failed, the next one tries again');
    }
  }

  async #deleteRoutesOfEnded(now: Date, deleted: Deleted): Promise<void> {
    const to = new Date(now.getTime() - endedRouteMs);
    const after = this.#routesGoneUntil ?? new Date(to.getTime() - firstLookBackMs);
    const query = { index: 'byEnd', range: { after, to } } as const;
    const list = { collection: backends, query, by: 'endedAt', type: 'time' } as const;
    let cursor: string | undefined;
    do {
      this.#closing.signal.throwIfAborted();
      const { items, next } = await findPage(this.#deps.store, list, { limit: batchSize, cursor });
      await Promise.all(items.map(async ({ id }) => await this.#deleteRoutes(id, deleted)));
      cursor = next.next_cursor;
      await nextTurn();
    } while (cursor !== undefined);
    this.#routesGoneUntil = to;
  }

  async #deleteBackends(before: Date, deleted: Deleted): Promise<void> {
    const { store } = this.#deps;
    await this.#inBatches<Backend>({
      find: async () => await store.find(backends, { index: 'byEnd', range: { before }, limit: batchSize }),
      remove: async ({ id }) => {
        await this.#deleteRoutes(id, deleted);
        return await store.delete(backends, id, ({ live }) => !live);
      },
      count: (count) => this.#count(deleted, 'backends', count),
    });
  }

  async #deleteRoutes(backend: string, deleted: Deleted): Promise<void> {
    const { store } = this.#deps;
    await this.#inBatches({
      find: async () => await store.find(routes, { index: 'byBackend', equals: { backend }, limit: batchSize }),
      remove: async ({ id }) => await store.delete(routes, id),
      count: (count) => this.#count(deleted, 'routes', count),
    });
  }

  async #deleteKeys(now: Date, deleted: Deleted): Promise<void> {
    const { store } = this.#deps;
    const before = forgettableBefore(now);
    await this.#inBatches<Key>({
      find: async () => await store.find(keys, { index: 'byLease', range: { before }, limit: batchSize }),
      remove: async ({ id, backend }) => {
        if ((await store.get(backends, backend))?.live) return false;
        return await store.delete(keys, id, (key) => key.backend === backend && isForgettable(key, now));
      },
      count: (count) => this.#count(deleted, 'keys', count),
    });
  }

  async #deleteNodes(before: Date, deleted: Deleted): Promise<void> {
    const { store } = this.#deps;
    await this.#inBatches<Node>({
      find: async () => await store.find(nodes, { index: 'byLease', range: { before }, limit: batchSize }),
      remove: async ({ id }) => {
        // The orphan reaper ends them as lost, for which it needs the node.
        const live = await store.find(backends, { index: 'byNode', equals: { node: id, live: true }, limit: 1 });
        return live.length === 0 && (await store.delete(nodes, id, ({ leaseUntil }) => leaseUntil < before));
      },
      count: (count) => this.#count(deleted, 'nodes', count),
    });
  }

  /** Deletes what is found, a batch at a time, until there is no more, or nothing of a batch can be deleted yet. */
  async #inBatches<T extends StoredDocument>(steps: {
    readonly find: () => Promise<T[]>;
    readonly remove: (document: T) => Promise<boolean>;
    readonly count: (deleted: number) => void;
  }): Promise<void> {
    for (;;) {
      this.#closing.signal.throwIfAborted();
      const found = await steps.find();
      const removed = await Promise.all(found.map(steps.remove));
      const count = removed.filter(Boolean).length;
      steps.count(count);
      if (found.length < batchSize || count === 0) return;
      // Requests that came meanwhile are answered first.
      await nextTurn();
    }
  }

  #count(deleted: Deleted, what: keyof Deleted, count: number): void {
    deleted[what] += count;
    this.#counter.inc({ what }, count);
  }
}
