import { expect, test, vi } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { becomeTerminated, backends } from '../../model/backend.ts';
import { keys } from '../../model/key.ts';
import { images } from '../../model/image.ts';
import { steered } from '../../test/kit/ports/steered.ts';
import { addAdmin, logIn } from '../testing/people.ts';
import { connectPath, openTestApi } from '../testing/test-api.ts';

const path = '/v2/account/acme/limits';

test('an administrator limits the connects of an account, and the next second allows more', async () => {
  const clock = new ManualClock(new Date());
  await using api = await openTestApi({ clock });
  await addAdmin(api, 'root@example.com', 'acme');
  const admin = await logIn(api, 'root@example.com');
  expect((await api.get(path)).body).toEqual({ connects_per_second: 0, running_backends: 0 });
  expect((await api.post(path, { connects_per_second: 5 })).body.error.code).toBe('Forbidden');
  expect((await admin.post(path, { connects_per_second: 5 })).body).toEqual({ status: 'ok' });
  expect((await api.get(path)).body).toEqual({ connects_per_second: 5, running_backends: 0 });
  const connects = async () => await Promise.all(Array.from({ length: 8 }, async () => await api.post(connectPath)));
  const replies = await connects();
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(5);
  const refused = replies.find(({ status }) => status !== 200);
  expect([refused?.status, refused?.body.error.code, refused?.headers.get('retry-after')]).toEqual([
    429,
    'TooManyRequests',
    '1',
  ]);
  await clock.advance(1000);
  expect((await connects()).filter(({ status }) => status === 200)).toHaveLength(5);
});

test('an account cannot exceed its limit of running backends, with keys or without', async () => {
  await using api = await openTestApi({ accountLimits: { connectsPerSecond: 0, runningBackends: 3 } });
  const replies = await Promise.all(
    Array.from({ length: 6 }, async (_, i) => await api.post(connectPath, i % 2 === 0 ? {} : { key: `room-${i}` })),
  );
  const spawned = replies.filter(({ status }) => status === 200);
  expect(spawned).toHaveLength(3);
  const refused = replies.find(({ status }) => status !== 200);
  expect([refused?.status, refused?.body.error.code, refused?.headers.get('retry-after')]).toEqual([
    429,
    'TooManyBackends',
    '10',
  ]);
  const held = (await api.get('/v2/account/acme/backends')).body.running_backends.find(
    ({ key }: { key: string | null }) => key !== null,
  );
  if (held) expect((await api.post(connectPath, { key: held.key })).body.spawned).toBe(false);
  await api.store.update(backends, spawned[0]?.body.backend_id, (backend) =>
    becomeTerminated(backend, { kind: null, reason: null, exitCode: 0 }, new Date()),
  );
  // The number of backends is cached for a second, by the machine's time.
  const now = performance.now.bind(performance);
  using _aSecondLater = vi.spyOn(performance, 'now').mockImplementation(() => now() + 1_000);
  expect((await api.post(connectPath)).status).toBe(200);
});

test('parallel connects to one new key connect to one backend, the last one that the account can run', async () => {
  const { promise: allHaveRead, resolve } = Promise.withResolvers<void>();
  let reads = 0;
  await using api = await openTestApi({
    accountLimits: { connectsPerSecond: 0, runningBackends: 1 },
    storeOf: (store) =>
      steered(store, {
        onCall: async ({ method, collection, run }) => {
          if (collection === keys.name && method === 'insert') await allHaveRead;
          const result = await run();
          if (collection === keys.name && method === 'get' && (reads += 1) === 5) resolve();
          return result;
        },
      }),
  });
  const connects = Array.from({ length: 5 }, async () => await api.post(connectPath, { key: 'room' }));
  const replies = await Promise.all(connects);
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(new Set(replies.map(({ body }) => body.backend_id)).size).toBe(1);
});

test('a connect finds the backend that another process has spawned for its key since it was read as free', async () => {
  let meanwhile: (() => Promise<void>) | undefined;
  await using api = await openTestApi({
    accountLimits: { connectsPerSecond: 0, runningBackends: 1 },
    storeOf: (store) =>
      steered(store, {
        onCall: async ({ collection, run }) => {
          const spawnOther = collection === images.name ? meanwhile : undefined;
          if (spawnOther) meanwhile = undefined;
          await spawnOther?.();
          return await run();
        },
      }),
  });
  let other: unknown;
  const now = performance.now.bind(performance);
  using clock = vi.spyOn(performance, 'now');
  meanwhile = async () => {
    other = (await api.post(connectPath, { key: 'room' })).body.backend_id;
    // This process counts again, as it would for a backend of another one.
    clock.mockImplementation(() => now() + 1_000);
  };
  const { status, body } = await api.post(connectPath, { key: 'room' });
  expect([status, body.spawned, body.backend_id]).toEqual([200, false, other]);
});

test.each([
  ['connects_per_second', -1],
  ['connects_per_second', 1.5],
  ['running_backends', '1'],
  ['running_backends', 1e9],
])('an invalid limit is rejected: %s %j', async (field, value) => {
  await using api = await openTestApi();
  await addAdmin(api, 'root@example.com', 'acme');
  const admin = await logIn(api, 'root@example.com');
  const { status, body } = await admin.post(path, { [field]: value });
  expect([status, body.error.message]).toEqual([400, expect.stringContaining(`${field}: `)]);
});
