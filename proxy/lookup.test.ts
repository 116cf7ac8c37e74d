// Takes about 4 s
import { expect, test } from 'vitest';
import { ManualClock } from '../core/clock/manual-clock.ts';
import { routes } from '../model/route.ts';
import { hashToken } from '../model/access-token.ts';
import { Lookup, trustMs } from './lookup.ts';
import { makeEnded, openFixture, spawnReady, startMirror, until } from './testing/fixture.ts';
import type { Fixture } from './testing/fixture.ts';

async function status(fixture: Fixture, token: string): Promise<number> {
  const answer = await fetch(`${fixture.url}/${token}/`);
  await answer.arrayBuffer();
  return answer.status;
}

test('after the message that a backend has ended, it gets no more requests', async () => {
  await using fixture = await openFixture({ clock: new ManualClock(new Date()) });
  await using mirror = await startMirror();
  const { token, backend } = await spawnReady(fixture, mirror);
  expect(await status(fixture, token)).toBe(200);
  await makeEnded(fixture, backend);
  expect(await status(fixture, token)).toBe(410);
});

test('without the message, it gets no requests after its entry has expired', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  await using mirror = await startMirror();
  const { token, backend } = await spawnReady(fixture, mirror);
  expect(await status(fixture, token)).toBe(200);
  await makeEnded(fixture, backend, { silently: true });
  await clock.advance(trustMs - 1);
  expect(await status(fixture, token)).toBe(200);
  await clock.advance(1);
  expect(await status(fixture, token)).toBe(410);
});

test('a backend that ended without a message and does not answer is 410, not 502', async () => {
  await using fixture = await openFixture({ clock: new ManualClock(new Date()) });
  const mirror = await startMirror();
  const { token, backend } = await spawnReady(fixture, mirror);
  expect(await status(fixture, token)).toBe(200);
  await makeEnded(fixture, backend, { silently: true });
  await mirror[Symbol.asyncDispose]();
  expect(await status(fixture, token)).toBe(410);
});

test('a live backend that does not answer is 502', async () => {
  await using fixture = await openFixture();
  const mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  await mirror[Symbol.asyncDispose]();
  expect(await status(fixture, token)).toBe(502);
});

test('an address that was assigned to another backend is not used for the previous one', async () => {
  await using fixture = await openFixture({ clock: new ManualClock(new Date()) });
  await using mirror = await startMirror();
  const before = await spawnReady(fixture, mirror);
  expect(await status(fixture, before.token)).toBe(200);
  await makeEnded(fixture, before.backend);
  const after = await spawnReady(fixture, mirror);
  expect(await status(fixture, after.token)).toBe(200);
  expect(await status(fixture, before.token)).toBe(410);
});

test('a deleted route works no longer than its entry', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  expect(await status(fixture, token)).toBe(200);
  await fixture.store.delete(routes, hashToken(token));
  await clock.advance(trustMs);
  expect(await status(fixture, token)).toBe(410);
});

test('a failed store does not affect routes and backends with valid entries', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  expect(await status(fixture, token)).toBe(200);
  await fixture.store[Symbol.asyncDispose]();
  expect(await status(fixture, token)).toBe(200);
  await clock.advance(trustMs);
  expect(await status(fixture, token)).toBe(503);
});

test('setting the clock back does not make an entry valid again', async () => {
  let now = new Date();
  const manual = new ManualClock(now);
  const clock = { ...bound(manual), now: () => now };
  await using fixture = await openFixture({ clock });
  await using mirror = await startMirror();
  const { token, backend } = await spawnReady(fixture, mirror);
  expect(await status(fixture, token)).toBe(200);
  await makeEnded(fixture, backend, { silently: true });
  now = new Date(now.getTime() - 3_600_000);
  expect(await status(fixture, token)).toBe(410);
});

test('the result of a read that began before a message is not remembered', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { backend } = await spawnReady(fixture, mirror);
  const reads: (() => void)[] = [];
  const store = Object.create(fixture.store, {
    get: {
      value: async (...asked: Parameters<Fixture['store']['get']>) => {
        const found = await fixture.store.get(...asked);
        await new Promise<void>((resolve) => reads.push(resolve));
        return found;
      },
    },
  }) as Fixture['store'];
  const gone: string[] = [];
  const lookup = new Lookup({ store, clock: new ManualClock(), onGone: (id) => gone.push(id) });
  const before = lookup.location(backend);
  await until(() => reads.length === 1);
  await makeEnded(fixture, backend);
  lookup.forget(backend);
  reads[0]?.();
  expect((await before).state).toBe('reachable');
  const after = lookup.location(backend);
  const shared = lookup.location(backend);
  await until(() => reads.length === 2);
  reads[1]?.();
  expect([(await after).state, (await shared).state]).toEqual(['gone', 'gone']);
  expect(gone).toEqual([backend]);
});

function bound(clock: ManualClock) {
  return {
    after: clock.after.bind(clock),
    every: clock.every.bind(clock),
    sleep: clock.sleep.bind(clock),
  };
}
