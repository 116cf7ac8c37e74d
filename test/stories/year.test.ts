// Takes about 10 s
/** A year of use on a manual clock: documents, file size and work per connect stop growing after the history's 30 days. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { Retention } from '../../api/background/retention.ts';
import { spawnRules } from '../../api/testing/spawn-rules.ts';
import { becomeServing, connectPath, openTestApi } from '../../api/testing/test-api.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import { openMongoStore } from '../../core/store/mongodb/mongodb.ts';
import { openSqliteStore } from '../../core/store/sqlite/sqlite.ts';
import type { Store } from '../../core/store/store.ts';
import { accessTokens } from '../../model/access-token.ts';
import { accounts } from '../../model/account.ts';
import { backends, becomeTerminated } from '../../model/backend.ts';
import { modelCollections } from '../../model/collections.ts';
import { keyId, keys, renewKey } from '../../model/key.ts';
import { nodes } from '../../model/node.ts';
import { routes } from '../../model/route.ts';
import { registryCollections } from '../../registry/index.ts';
import { describeOnMongo } from '../kit/servers/mongodb-tests.ts';
import { testMongo } from '../kit/servers/mongodb.ts';
import { steered } from '../kit/ports/steered.ts';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';

const dayMs = 24 * 60 * 60 * 1000;
const log = silentLog();
const collections = [...modelCollections, ...registryCollections];

/** Twice the history: days after which old documents are deleted as fast as new ones are inserted. */
const seasonDays = 60;

/** Backends that are spawned each day on SQLite. */
const spawnsPerDay = 4;

describe('A year on SQLite', () => {
  test('adds no documents, no file size, and no work per connect', async () => {
    await using folder = await temporaryFolder();
    await using store = await openSqliteStore({ folder: folder.path, collections, log });
    await using use = await openUse(store);
    const sizeOf = async (file: string) => (await stat(join(folder.path, file))).size;
    await use.days(seasonDays, spawnsPerDay);
    const [afterSeason, sizeThen] = [await use.measure(), await sizeOf('berth.db')];
    await use.days(365 - seasonDays, spawnsPerDay);
    expect(use.connects()).toBeGreaterThan(365 * spawnsPerDay);
    expect(await use.measure()).toEqual(afterSeason);
    expect(await sizeOf('berth.db')).toBeLessThan(1.1 * sizeThen);
    expect(await sizeOf('berth.db-wal')).toBeLessThan(64 * 1024 * 1024);
  }, 300_000);
});

// Shorter, because each day takes MongoDB a tenth of a second.
await describeOnMongo('Four months', testMongo, (mongo) => {
  test('adds no documents, and no work per connect', async () => {
    await using database = mongo.newDatabase();
    await using store = await openMongoStore({ ...database, collections, log });
    await using use = await openUse(store);
    await use.days(seasonDays, 2);
    const afterSeason = await use.measure();
    await use.days(120 - seasonDays, 2);
    expect(await use.measure()).toEqual(afterSeason);
  }, 300_000);
});

/** A platform in use, on a manual clock. */
async function openUse(real: Store) {
  await using parts = new AsyncDisposableStack();
  const clock = new ManualClock();
  /**
   * The calls of the store by method; `read` counts returned documents. Tokens and accounts are not counted: the API caches what they
   * allow for a fraction of a second of system time, which the manual clock does not advance.
   */
  const counts: Record<string, number> = { get: 0, insert: 0, update: 0, delete: 0, find: 0, read: 0 };
  const store = steered(real, {
    now: () => clock.now(),
    onCall: async ({ method, collection, run }) => {
      if (collection === accessTokens.name || collection === accounts.name) return await run();
      if (method in counts) counts[method]! += 1;
      const result = await run();
      if (method === 'find') counts['read']! += (result as unknown[]).length;
      if (method === 'get' && result !== undefined) counts['read']! += 1;
      return result;
    },
  });
  const api = parts.use(await openTestApi({ storeOf: () => store, clock }));
  const retention = parts.use(new Retention({ store, clock, log, metrics: new Registry(), rules: spawnRules }));
  let connects = 0;
  const connect = async (key?: string, user?: string): Promise<string> => {
    const { status, body } = await api.post(connectPath, { key, user });
    expect(status).toBe(200);
    connects += 1;
    return body.backend_id;
  };
  const steady = await connect('steady', 'ada');
  await api.change(steady, becomeServing);
  let sessions: string[] = [];

  /** Yesterday's backends end; one session continues, with a connect every day; a node registers. */
  const day = async (number: number, spawns: number) => {
    // Sets the clock in one step, so that no periodic pass of the API runs by itself.
    clock.set(dayMs);
    const now = clock.now();
    const ended = sessions.map((id) =>
      api.change(id, (backend) => becomeTerminated(backend, { kind: null, reason: null, exitCode: 0 }, now)),
    );
    await Promise.all(ended);
    await store.update(keys, keyId('acme', 'draw', 'steady'), (key) => renewKey(key, key.fencingToken, now));
    await store.insert(nodes, {
      id: `node of day ${number}`,
      cluster: 'main',
      leaseUntil: now,
      startedAt: now,
      engineVersion: '28',
    });
    sessions = await Promise.all([
      connect(`key of day ${number}`),
      ...Array.from({ length: spawns - 1 }, async () => await connect()),
    ]);
    expect(await connect('steady', 'ada')).toBe(steady);
    await retention.deleteExpired();
  };

  let today = 0;
  const kept = parts.move();
  return {
    connects: () => connects,
    days: async (count: number, spawns: number) => {
      for (const last = today + count; today < last; today += 1) await day(today, spawns);
    },
    /** The number of documents, and the calls of a connect to the store. Leaves nothing behind. */
    measure: async () => {
      const documents = {
        backends: (await store.find(backends, { index: 'byEnd' })).length,
        routes: (await store.find(routes, { index: 'byBackend' })).length,
        keys: (await store.find(keys, { index: 'byLease' })).length,
        nodes: (await store.find(nodes, { index: 'byLease' })).length,
      };
      const before = { ...counts };
      sessions.push(await connect(), await connect('another'));
      await connect('steady', 'ada');
      const work = Object.entries(counts).map(([name, count]) => [name, count - before[name]!]);
      return { documents, work: Object.fromEntries(work) };
    },
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}
