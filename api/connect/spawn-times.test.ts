import { afterAll, beforeAll, expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import type { Store } from '../../core/store/store.ts';
import { newService, services } from '../../model/service.ts';
import { SpawnTimes } from './spawn-times.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';

const log = silentLog();
const closing = new AsyncDisposableStack();
let store: Store;
let made = 0;

beforeAll(async () => {
  store = closing.use(await openTestStore());
});

afterAll(() => closing.disposeAsync());

async function newId(): Promise<string> {
  const service = newService({ account: 'acme', name: `draw${(made += 1)}`, cluster: 'default' }, new Date(0));
  await store.insert(services, service);
  return service.id;
}

const lastSpawn = async (id: string) => (await store.get(services, id))?.lastSpawnedAt?.getTime();

test('the first spawn is recorded at once, further spawns within a second together', async () => {
  const id = await newId();
  const clock = new ManualClock();
  let writes = 0;
  const counting: Store = {
    ...bound(store),
    update: async (collection, key, change) => {
      const updated = await store.update(collection, key, change);
      writes += 1;
      return updated;
    },
  };
  await using times = new SpawnTimes({ store: counting, clock, log });
  for (const ms of [1, 2, 3]) times.record(id, 'default', new Date(ms));
  await expect.poll(() => writes).toBe(1);
  expect(await lastSpawn(id)).toBe(1);
  await clock.advance(1_000);
  await expect.poll(() => writes).toBe(2);
  expect(await lastSpawn(id)).toBe(3);
});

test('closing writes pending records', async () => {
  const id = await newId();
  const times = new SpawnTimes({ store, clock: new ManualClock(), log });
  times.record(id, 'default', new Date(1));
  times.record(id, 'default', new Date(2));
  await times[Symbol.asyncDispose]();
  expect(await lastSpawn(id)).toBe(2);
});

test('a late record, or one of a deleted service or environment, changes nothing', async () => {
  const id = await newId();
  await using times = new SpawnTimes({ store, clock: new ManualClock(), log });
  times.record(id, 'default', new Date(5));
  await expect.poll(async () => await lastSpawn(id)).toBe(5);
  const late = new SpawnTimes({ store, clock: new ManualClock(), log });
  late.record(id, 'default', new Date(4));
  late.record(id, 'gone', new Date(9));
  late.record('acme/gone', 'default', new Date(9));
  await late[Symbol.asyncDispose]();
  expect(await lastSpawn(id)).toBe(5);
});

/** The methods of a store, so that one of them can be replaced. */
function bound(of: Store): Store {
  return {
    isShared: of.isShared,
    now: async () => await of.now(),
    ping: async () => await of.ping(),
    get: async (collection, id) => await of.get(collection, id),
    insert: async (collection, document) => await of.insert(collection, document),
    update: async (collection, id, change) => await of.update(collection, id, change),
    delete: async (collection, id, when) => await of.delete(collection, id, when),
    find: async (collection, query) => await of.find(collection, query),
    findIds: async (collection, query) => await of.findIds(collection, query),
    scan: (collection, scan) => of.scan(collection, scan),
    [Symbol.asyncDispose]: async () => {},
  };
}
