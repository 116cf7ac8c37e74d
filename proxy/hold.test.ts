// Takes about 4 s
import { expect, test } from 'vitest';
import { ManualClock } from '../core/clock/manual-clock.ts';
import { backends, beginStop, requestStop } from '../model/backend.ts';
import {
  connected,
  exchangeBytes,
  makeEnded,
  makeReady,
  openFixture,
  spawn,
  startMirror,
  until,
} from './testing/fixture.ts';
import type { Fixture } from './testing/fixture.ts';
import { holdPollMs } from './hold.ts';
import { readLimitMs } from './lookup.ts';

/** Sends a request, and waits until it is held. */
async function ask(fixture: Fixture, token: string, backend: string): Promise<{ answer: Promise<Response> }> {
  const answer = fetch(`${fixture.url}/${token}/`);
  await until(() => fixture.reports.at(-1)?.[backend] === 1);
  return { answer };
}

test('a message that the backend is ready ends a hold at once', async () => {
  // With a stopped clock, only the message can end it.
  await using fixture = await openFixture({ clock: new ManualClock(new Date()) });
  await using mirror = await startMirror();
  const { token, backend } = await spawn(fixture);
  const answer = fetch(`${fixture.url}/${token}/`);
  await until(() => fixture.reports.length > 0);
  await makeReady(fixture, backend, mirror);
  expect((await answer).status).toBe(200);
});

test('without a message, a hold ends within a second', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  await using mirror = await startMirror();
  const { token, backend } = await spawn(fixture);
  let status: number | undefined;
  const answer = fetch(`${fixture.url}/${token}/`).then((each) => (status = each.status));
  await until(() => fixture.reports.length > 0);
  await makeReady(fixture, backend, mirror, { silently: true });
  await until(async () => {
    await clock.advance(holdPollMs / 10);
    return status !== undefined;
  });
  expect(await answer).toBe(200);
});

test('a backend that does not become ready in time is 504, for later requests at once', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, startTimeoutMs: 20_000 });
  const { token } = await spawn(fixture, { createdAt: new Date(clock.now().getTime() - 15_000) });
  const startMs = clock.now().getTime();
  let answer: Response | undefined;
  void fetch(`${fixture.url}/${token}/`).then((each) => (answer = each));
  await until(() => fixture.reports.length > 0);
  await until(async () => {
    await clock.advance(100);
    return answer !== undefined;
  });
  expect(answer?.status).toBe(504);
  expect(answer?.headers.get('x-berth-error')).toBe('not-ready');
  expect(clock.now().getTime() - startMs).toBeGreaterThanOrEqual(5_000);
  const again = await fetch(`${fixture.url}/${token}/`);
  expect(again.status).toBe(504);
});

test('a backend that ends during a hold is 410 not-started', async () => {
  await using fixture = await openFixture();
  const { token, backend } = await spawn(fixture);
  const { answer } = await ask(fixture, token, backend);
  await makeEnded(fixture, backend);
  expect((await answer).status).toBe(410);
  expect((await answer).headers.get('x-berth-error')).toBe('not-started');
});

test('a backend that is stopped before it is ready is 410 at once', async () => {
  await using fixture = await openFixture();
  const { token, backend } = await spawn(fixture);
  await fixture.store.update(backends, backend, (current) =>
    beginStop(requestStop(current, 'soft', 'external', new Date()), new Date()),
  );
  expect((await fetch(`${fixture.url}/${token}/`)).status).toBe(410);
});

test.each(['end', 'destroy'] as const)('a client that disconnects (%s) ends its hold', async (leave) => {
  await using fixture = await openFixture();
  const { token, backend } = await spawn(fixture);
  const client = await connected(fixture.port);
  client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
  await until(() => fixture.reports.at(-1)?.[backend] === 1);
  client[leave]();
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
  expect(fixture.reports.at(-1)).toEqual({});
  client.destroy();
});

test('a store that fails is 503 with Retry-After', async () => {
  await using fixture = await openFixture();
  const { token, backend } = await spawn(fixture);
  const { answer } = await ask(fixture, token, backend);
  await fixture.store[Symbol.asyncDispose]();
  expect((await answer).status).toBe(503);
  const next = await fetch(`${fixture.url}/${token}/`);
  expect(next.status).toBe(503);
  expect(next.headers.get('x-berth-error')).toBe('unavailable');
  expect(Number(next.headers.get('retry-after'))).toBeGreaterThan(0);
});

test('a store that does not answer is 503', async () => {
  const clock = new ManualClock(new Date());
  await using real = await openFixture();
  const { token } = await spawn(real);
  const { promise: never } = Promise.withResolvers<never>();
  const asked = Promise.withResolvers<void>();
  const store = Object.create(real.store, {
    get: {
      value: () => {
        asked.resolve();
        return never;
      },
    },
  }) as Fixture['store'];
  await using fixture = await openFixture({ clock, store });
  const answer = fetch(`${fixture.url}/${token}/`);
  await asked.promise;
  await clock.advance(readLimitMs);
  expect((await answer).status).toBe(503);
});

test('closing the proxy answers held requests', async () => {
  await using fixture = await openFixture();
  const { token, backend } = await spawn(fixture);
  const { answer } = await ask(fixture, token, backend);
  const upgrade = exchangeBytes(
    fixture.port,
    `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  );
  await until(() => fixture.reports.at(-1)?.[backend] === 2 || fixture.reports.some((open) => open[backend] === 2));
  await fixture.proxy[Symbol.asyncDispose]();
  expect((await answer).status).toBe(503);
  expect(await upgrade).toMatch(/^HTTP\/1\.1 503 /);
});

test('fifty requests that wait for one backend are served when it is ready', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token, backend } = await spawn(fixture);
  const answers = Array.from({ length: 50 }, () => fetch(`${fixture.url}/${token}/`));
  await until(() => fixture.reports.some((open) => (open[backend] ?? 0) > 1));
  await makeReady(fixture, backend, mirror);
  for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
});
