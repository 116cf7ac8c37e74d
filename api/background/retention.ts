/**
 * Deletes expired documents: ended backends, their routes, keys that no backend holds, dead nodes, and documents with an end, such as
 * access tokens. All API processes may do this at the same time, because each deletion checks the document. What belongs to a backend is
 * deleted before the backend, so that after a crash the next pass finds the backend, and through it the rest.
 */
import type { Counter } from 'prom-client';
import { PeriodicTask } from '../../core/async/periodic-task.ts';
import { MetricGroup } from '../../core/metrics/metric-group.ts';
import type { Collection, Scan, StoredDocument } from '../../core/store/store.ts';
import { accessTokens } from '../../model/access-token.ts';
import { auditRecords } from '../../model/audit.ts';
import { attemptBuckets } from '../../model/attempts.ts';
import { backends } from '../../model/backend.ts';
import { cliLogins } from '../../model/cli-login.ts';
import { deletableKeysBefore, isKeyDeletable, keys } from '../../model/key.ts';
import { nodes } from '../../model/node.ts';
import { endedRouteMs, routes } from '../../model/route.ts';
import { proxies, traffic } from '../../model/traffic.ts';
import { usedIdTokens } from '../../model/used-id-token.ts';
import type { ApiDependencies } from '../dependencies.ts';

/** With one connect per second, the documents that expire in a minute fit into one batch. */
const passEveryMs = 60_000;

/** SQLite commits a batch at once. A connect that waits for the commit is hardly delayed by this many. */
const batchSize = 100;

/**
 * How far the first pass of a process looks back for ended backends with routes. Reading all of them would take long. A backend
 * that ended earlier, while no API process ran, keeps its routes until it is deleted itself.
 */
const firstLookBackMs = 24 * 60 * 60 * 1000;

/** How long lists show a token that was revoked or has expired. */
const endedTokenDays = 30;

type RetentionDependencies = Pick<ApiDependencies, 'store' | 'clock' | 'log' | 'metrics' | 'rules'>;

/** What a pass deletes. */
const kinds = [
  'backends',
  'routes',
  'traffic',
  'proxies',
  'keys',
  'nodes',
  'tokens',
  'attempts',
  'cliLogins',
  'idTokens',
  'auditRecords',
] as const;

/** The number of documents of each kind that a pass deleted. */
export type Deleted = Record<(typeof kinds)[number], number>;

/** Deletes expired documents periodically. Disposing ends a pass in progress after its batch. */
export class Retention implements AsyncDisposable {
  readonly #deps: RetentionDependencies;
  readonly #counter: Counter<'what'>;
  readonly #passes: AsyncDisposable;
  readonly #closing = new AbortController();
  /** The routes of backends that ended before this time are deleted. */
  #routesDeletedUntil: Date | undefined;

  constructor(deps: RetentionDependencies) {
    this.#deps = deps;
    this.#counter = new MetricGroup(deps.metrics).counter(
      'berth_deleted_documents_total',
      'Expired documents that this process deleted, by kind',
      'what',
    );
    this.#passes = new PeriodicTask(deps.clock, passEveryMs, async () => await this.#passOrLog());
  }

  /** Runs one pass. Throws `StoreError` if the store fails. */
  async deleteExpired(): Promise<Deleted> {
    const now = await this.#deps.store.now();
    const historyEnd = new Date(now.getTime() - this.#deps.rules.backendHistorySeconds * 1000);
    const deleted = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Deleted;
    await this.#deleteRoutesOfEnded(now, deleted);
    await this.#deleteBackends(historyEnd, deleted);
    await this.#deleteKeys(now, deleted);
    await this.#deleteNodes(historyEnd, deleted);
    const tokensEnd = daysBefore(now, endedTokenDays);
    const auditEnd = daysBefore(now, this.#deps.rules.auditDays);
    await this.#deleteTimed(accessTokens, 'endsAt', { what: 'tokens', before: tokensEnd, deleted });
    await this.#deleteTimed(auditRecords, 'at', { what: 'auditRecords', before: auditEnd, deleted });
    await this.#deleteTimed(proxies, 'aliveUntil', { what: 'proxies', before: now, deleted });
    await this.#deleteTimed(attemptBuckets, 'endsAt', { what: 'attempts', before: now, deleted });
    await this.#deleteTimed(cliLogins, 'endsAt', { what: 'cliLogins', before: now, deleted });
    await this.#deleteTimed(usedIdTokens, 'endsAt', { what: 'idTokens', before: now, deleted });
    return deleted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error('The API is closing'));
    await this.#passes[Symbol.asyncDispose]();
  }

  async #passOrLog(): Promise<void> {
    const { log } = this.#deps;
    try {
      const deleted = await this.deleteExpired();
      const level = Object.values(deleted).some((count) => count > 0) ? 'info' : 'debug';
      log[level](deleted, 'Deleted expired documents');
    } catch (error) {
      if (!this.#closing.signal.aborted) log.warn({ err: error }, 'Retention pass failed, the next one retries');
    }
  }

  async #deleteRoutesOfEnded(now: Date, deleted: Deleted): Promise<void> {
    const to = new Date(now.getTime() - endedRouteMs);
    const after = this.#routesDeletedUntil ?? new Date(to.getTime() - firstLookBackMs);
    for await (const batch of this.#batches(backends, { index: 'byEnd', range: { after, to } })) {
      await Promise.all(batch.map(async ({ id }) => await this.#deleteRoutes(id, deleted)));
    }
    this.#routesDeletedUntil = to;
  }

  async #deleteBackends(before: Date, deleted: Deleted): Promise<void> {
    const expired = this.#batches(backends, { index: 'byEnd', range: { before } });
    await this.#deleteFrom(expired, { what: 'backends', deleted }, async ({ id }) => {
      await this.#deleteRoutes(id, deleted);
      await this.#deleteTraffic(id, deleted);
      return await this.#deps.store.delete(backends, id, ({ live }) => !live);
    });
  }

  async #deleteRoutes(backend: string, deleted: Deleted): Promise<void> {
    const ofBackend = this.#batches(routes, { index: 'byBackend', equals: { backend } });
    await this.#deleteFrom(
      ofBackend,
      { what: 'routes', deleted },
      // The route of a key may lead to the next holder by now.
      async ({ id }) => await this.#deps.store.delete(routes, id, (route) => route.backend === backend),
    );
  }

  async #deleteTraffic(backend: string, deleted: Deleted): Promise<void> {
    const ofBackend = this.#batches(traffic, { index: 'byBackend', equals: { backend } });
    await this.#deleteFrom(
      ofBackend,
      { what: 'traffic', deleted },
      async ({ id }) => await this.#deps.store.delete(traffic, id),
    );
  }

  async #deleteKeys(now: Date, deleted: Deleted): Promise<void> {
    const { store } = this.#deps;
    const lapsed = this.#batches(keys, { index: 'byLease', range: { before: deletableKeysBefore(now) } });
    await this.#deleteFrom(lapsed, { what: 'keys', deleted }, async ({ id, backend }) => {
      if ((await store.get(backends, backend))?.live) return false;
      return await store.delete(keys, id, (key) => key.backend === backend && isKeyDeletable(key, now));
    });
  }

  async #deleteNodes(before: Date, deleted: Deleted): Promise<void> {
    const { store } = this.#deps;
    const dead = this.#batches(nodes, { index: 'byLease', range: { before } });
    await this.#deleteFrom(dead, { what: 'nodes', deleted }, async ({ id }) => {
      // The orphan reaper needs the node to end its backends as lost.
      const live = await store.find(backends, { index: 'byNode', equals: { node: id, live: true }, limit: 1 });
      return live.length === 0 && (await store.delete(nodes, id, ({ leaseUntil }) => leaseUntil < before));
    });
  }

  /** Deletes the documents of a kind whose time in a field, which the index `byEnd` has, has passed. */
  async #deleteTimed<Field extends string, T extends StoredDocument & { readonly [name in Field]?: Date }>(
    collection: Collection<T, 'byEnd'>,
    field: Field,
    { before, ...counted }: { before: Date; what: keyof Deleted; deleted: Deleted },
  ): Promise<void> {
    const ended = this.#batches(collection, { index: 'byEnd', range: { before } });
    // A proxy, for example, may have written its document again since it was read.
    const hasPassed = (current: T) => (current[field] ?? before) < before;
    await this.#deleteFrom(ended, counted, async ({ id }) => await this.#deps.store.delete(collection, id, hasPassed));
  }

  /** Deletes documents batch by batch. `remove` returns whether it has deleted a document: some must be kept for now. */
  async #deleteFrom<T extends StoredDocument>(
    batches: AsyncIterable<T[]>,
    { what, deleted }: { what: keyof Deleted; deleted: Deleted },
    remove: (document: T) => Promise<boolean>,
  ): Promise<void> {
    for await (const batch of batches) {
      const count = (await Promise.all(batch.map(remove))).filter(Boolean).length;
      deleted[what] += count;
      this.#counter.inc({ what }, count);
    }
  }

  /** Scans documents in batches, the last of which may be empty. Throws when the API closes. */
  async *#batches<T extends StoredDocument, Index extends string>(
    collection: Collection<T, Index>,
    scan: Scan<T, Index>,
  ): AsyncGenerator<T[], void, undefined> {
    let batch: T[] = [];
    for await (const document of this.#deps.store.scan(collection, { ...scan, batchSize })) {
      if (batch.push(document) < batchSize) continue;
      this.#closing.signal.throwIfAborted();
      yield batch;
      batch = [];
    }
    this.#closing.signal.throwIfAborted();
    yield batch;
  }
}

function daysBefore(now: Date, days: number): Date {
  return new Date(now.getTime() - days * 24 * 60 * 60 * 1000);
}
