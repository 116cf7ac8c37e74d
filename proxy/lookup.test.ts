// Takes about 4 s
import { expect, test, vi } from 'vitest';
import { routeMoved } from '../contract/messages.ts';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { newRoute, routeId, routes } from '../model/route.ts';
import { labelOfToken } from '../model/session-host.ts';
import { Lookup, trustMs } from './lookup.ts';
import { exchangeBytes, makeEnded, openFixture, spawnReady, startMirror, status, until } from './testing/fixture.ts';
import type { Fixture } from './testing/fixture.ts';
import { newToken } from './testing/token.ts';

test('after the message that a backend has ended, it gets no more requests', async () => {
  await using fixture = await openFixture({ clock: new ManualClock(new Date()) });
  await using mirror = await startMirror();
  const { token, backend } = await spawnReady(fixture, mirror);
  expect(await status(fixture, token)).toBe(200);
  await makeEnded(fixture, backend);
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

test('no result is used for longer than a second, however long the store took', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token, backend } = await spawnReady(fixture, mirror);
  const { store, reads } = steppedStore(fixture);
  const lookup = new Lookup({ store, clock, onGone: () => {} });
  const first = [lookup.route(token), lookup.location(backend)];
  await until(() => reads.length === 2);
  await clock.advance(trustMs);
  for (const finish of reads.splice(0)) finish();
  await Promise.all(first);
  const second = [lookup.route(token), lookup.location(backend)];
  await until(() => reads.length === 2);
  for (const finish of reads.splice(0)) finish();
  expect(await Promise.all(second)).toMatchObject([{ backend }, { state: 'reachable' }]);
});

test('if a route moves while it is read, the old route is not cached', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const [before, after] = [await spawnReady(fixture, mirror), await spawnReady(fixture, mirror)];
  const { store, reads } = steppedStore(fixture);
  const lookup = new Lookup({ store, clock: new ManualClock(), onGone: () => {} });
  const early = lookup.route(before.token);
  await until(() => reads.length === 1);
  await fixture.store.update(routes, routeId(before.token), (route) => ({ ...route, backend: after.backend }));
  lookup.forgetRoute(routeId(before.token));
  const late = lookup.route(before.token);
  await until(() => reads.length === 2);
  for (const finish of reads) finish();
  expect([(await early)?.backend, (await late)?.backend]).toEqual([before.backend, after.backend]);
  expect((await lookup.route(before.token))?.backend).toBe(after.backend);
});

test.each(['path', 'host'])('an unknown token in the %s costs one read a second', async (form) => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, sessionDomain: 'sessions.example' });
  const get = vi.spyOn(fixture.store, 'get');
  const token = newToken();
  const ask = async () => {
    const [host, path] = form === 'host' ? [`${labelOfToken(token)}.sessions.example`, '/'] : ['a', `/${token}/`];
    const answer = await exchangeBytes(
      fixture.port,
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    return answer.slice(0, 'HTTP/1.1 404'.length);
  };
  const expected = form === 'host' ? 'HTTP/1.1 404' : 'HTTP/1.1 410';
  for (let i = 0; i < 20; i += 1) expect(await ask()).toBe(expected);
  expect(get).toHaveBeenCalledOnce();
  await clock.advance(trustMs);
  expect(await ask()).toBe(expected);
  expect(get).toHaveBeenCalledTimes(2);
});

test('a token that was unknown is valid as soon as its route is written', async () => {
  await using fixture = await openFixture({ clock: new ManualClock(new Date()) });
  await using mirror = await startMirror();
  const [session, token] = [await spawnReady(fixture, mirror), newToken()];
  expect(await status(fixture, token)).toBe(410);
  const route = newRoute(token, { backend: session.backend });
  await fixture.store.insert(routes, route);
  await fixture.bus.publish(routeMoved, { route: route.id });
  expect(await status(fixture, token)).toBe(200);
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
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  await using mirror = await startMirror();
  const { token, backend } = await spawnReady(fixture, mirror);
  expect(await status(fixture, token)).toBe(200);
  await makeEnded(fixture, backend, { silently: true });
  clock.set(-3_600_000);
  expect(await status(fixture, token)).toBe(410);
});

test('the result of a read that began before a message is not cached', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { backend } = await spawnReady(fixture, mirror);
  const { store, reads } = steppedStore(fixture);
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

/** A store that reads at once, and returns the result when the test calls the function in `reads`. */
function steppedStore(fixture: Fixture): { store: Fixture['store']; reads: (() => void)[] } {
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
  return { store, reads };
}
