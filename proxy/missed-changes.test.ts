// Takes about 3 s
/** Routes and locations are at most a second old, whatever the bus loses, and cost no reads while nothing changes. */
import { expect, test, vi } from 'vitest';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { backends } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { newBackendId } from '../model/ids.ts';
import { movedRoute, newRoute, routeId, routes } from '../model/route.ts';
import { maxKeptMs, trustMs } from './lookup.ts';
import { pollEveryMs, maxChanges } from './missed-changes.ts';
import { makeEnded, openFixture, spawnReady, startMirror, status, until } from './testing/fixture.ts';
import type { Fixture } from './testing/fixture.ts';

/** Advances the clock, and waits for the polls that fall due. */
async function pass(fixture: Fixture, clock: ManualClock, ms: number): Promise<void> {
  const find = vi.spyOn(fixture.store, 'findIds');
  for (let left = ms; left > 0; left -= pollEveryMs) {
    const before = find.mock.calls.length;
    await clock.advance(Math.min(left, pollEveryMs));
    if (left < pollEveryMs) break;
    await until(() => find.mock.calls.length >= before + 2);
    await Promise.all(find.mock.results.map(({ value }) => value as Promise<unknown>));
    await new Promise(setImmediate);
  }
  find.mockRestore();
}

/** Counts the reads of routes and backends. */
function reads(fixture: Fixture): () => number {
  const get = vi.spyOn(fixture.store, 'get');
  return () => get.mock.calls.length;
}

test('a route that is in use costs no reads while nothing changes, and one of each kind after a quarter of an hour', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const count = reads(fixture);
  // The first poll after a pause confirms nothing that was read before it.
  expect(await status(fixture, token)).toBe(200);
  await pass(fixture, clock, 2 * trustMs);
  expect(await status(fixture, token)).toBe(200);
  const before = count();
  for (let i = 0; i < 10; i += 1) {
    await pass(fixture, clock, 2 * pollEveryMs);
    expect(await status(fixture, token)).toBe(200);
  }
  expect(count()).toBe(before);
  clock.set(clock.now().getTime() + maxKeptMs);
  expect(await status(fixture, token)).toBe(200);
  expect(count()).toBe(before + 2);
});

test('without a message, a backend that has ended gets no requests after a second', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  await using mirror = await startMirror();
  const [ending, other] = [await spawnReady(fixture, mirror), await spawnReady(fixture, mirror)];
  for (const { token } of [ending, other]) expect(await status(fixture, token)).toBe(200);
  await pass(fixture, clock, 3 * trustMs);
  for (const { token } of [ending, other]) expect(await status(fixture, token)).toBe(200);
  await makeEnded(fixture, ending.backend, { silently: true });
  await pass(fixture, clock, trustMs);
  expect(await status(fixture, ending.token)).toBe(410);
  expect(await status(fixture, other.token)).toBe(200);
});

test('without a message, a route that has moved leads to its new backend after a second', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  await using mirror = await startMirror();
  const { token, backend } = await spawnReady(fixture, mirror);
  const held = (fencingToken: number) => ({ service: 'acme/draw', key: 'room', fencingToken });
  await fixture.store.update(routes, routeId(token), () => newRoute(token, { backend, held: held(1) }));
  expect(await status(fixture, token)).toBe(200);
  await pass(fixture, clock, 2 * trustMs);
  const next = newRoute(token, { backend: newBackendId(), held: held(2) });
  await fixture.store.update(routes, next.id, (route) => movedRoute(route, next, new Date()));
  await pass(fixture, clock, trustMs);
  expect(await status(fixture, token)).toBe(410);
});

test('while the store does not answer, nothing is trusted for longer than a second', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  expect(await status(fixture, token)).toBe(200);
  await pass(fixture, clock, 2 * trustMs);
  expect(await status(fixture, token)).toBe(200);
  await pass(fixture, clock, 2 * trustMs);
  await fixture.store[Symbol.asyncDispose]();
  expect(await status(fixture, token)).toBe(200);
  await clock.advance(trustMs);
  expect(await status(fixture, token)).toBe(503);
});

test('after a pause, entries from before it are read again', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  await using mirror = await startMirror();
  const { token, backend } = await spawnReady(fixture, mirror);
  expect(await status(fixture, token)).toBe(200);
  await pass(fixture, clock, 2 * trustMs);
  expect(await status(fixture, token)).toBe(200);
  await makeEnded(fixture, backend, { silently: true });
  // It ended before the period that the next poll reads.
  await fixture.store.update(backends, backend, (ended) => ({ ...ended, endedAt: new Date(0) }));
  clock.set(clock.now().getTime() + 5 * 60_000);
  await pass(fixture, clock, trustMs);
  expect(await status(fixture, token)).toBe(410);
});

test('a poll reads a limited number of IDs and no document, and if more has changed, nothing is trusted for longer than a second', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  expect(await status(fixture, token)).toBe(200);
  await pass(fixture, clock, 2 * trustMs);
  expect(await status(fixture, token)).toBe(200);
  const ended = await spawnReady(fixture, mirror);
  await makeEnded(fixture, ended.backend, { silently: true });
  const document = await fixture.store.get(backends, ended.backend);
  const endedAt = clock.now();
  const others = Array.from({ length: maxChanges }, () => ({ ...document, id: newBackendId(), endedAt }) as Backend);
  await Promise.all(others.map(async (other) => await fixture.store.insert(backends, other)));
  const find = vi.spyOn(fixture.store, 'find');
  const findIds = fixture.store.findIds.bind(fixture.store);
  const found: number[] = [];
  fixture.store.findIds = async (collection, query) => {
    const ids = await findIds(collection, query);
    found.push(ids.length);
    return ids;
  };
  const count = reads(fixture);
  await pass(fixture, clock, 2 * trustMs);
  const before = count();
  expect(await status(fixture, token)).toBe(200);
  expect(count()).toBe(before + 2);
  expect(Math.max(...found)).toBe(maxChanges);
  expect(find).not.toHaveBeenCalled();
});

test('an idle proxy does not poll', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  const find = vi.spyOn(fixture.store, 'findIds');
  await clock.advance(10 * trustMs);
  expect(find).not.toHaveBeenCalled();
});
