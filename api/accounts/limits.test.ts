import { expect, test, vi } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { becomeTerminated, backends } from '../../model/backend.ts';
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
