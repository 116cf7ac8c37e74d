// Takes about 6 s
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { systemClock } from '../core/clock/system-clock.ts';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { backends, beginStop, requestStop } from '../model/backend.ts';
import {
  connected,
  exchangeBytes,
  makeEnded,
  makeReady,
  openFixture,
  spawn,
  startMirror,
  startProgram,
  until,
} from './testing/fixture.ts';
import type { Fixture } from './testing/fixture.ts';
import { holdPollMs, Holds, maxHeldPerBackend } from './hold.ts';
import { Lookup, readLimitMs } from './lookup.ts';

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

test('requests get 504 if their backend does not become ready in time, later ones at once', async () => {
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

test('a request is held for a limited time; then the client gets 503 with Retry-After, and can retry', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, hold: { ms: 10_000, requests: 10 } });
  await using mirror = await startMirror();
  const { token, backend } = await spawn(fixture);
  const { answer } = await ask(fixture, token, backend);
  const sinceMs = clock.now().getTime();
  let isAnswered = false;
  void answer.then(() => (isAnswered = true));
  await until(async () => {
    await clock.advance(100);
    return isAnswered;
  });
  const heldMs = clock.now().getTime() - sinceMs;
  expect(heldMs).toBeGreaterThanOrEqual(10_000);
  expect(heldMs).toBeLessThan(15_000);
  const { status, headers } = await answer;
  expect([status, headers.get('x-berth-error'), headers.get('retry-after')]).toEqual([503, 'starting', '2']);
  await makeReady(fixture, backend, mirror);
  expect((await fetch(`${fixture.url}/${token}/`)).status).toBe(200);
});

test('a limited number of requests is held, and the next one when one of them ends', async () => {
  await using fixture = await openFixture({ hold: { ms: 60_000, requests: 2 } });
  const { token, backend } = await spawn(fixture);
  const clients = [await connected(fixture.port), await connected(fixture.port)];
  for (const client of clients) client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
  await until(() => fixture.reports.at(-1)?.[backend] === 2);
  const refused = await fetch(`${fixture.url}/${token}/`);
  expect([refused.status, refused.headers.get('x-berth-error')]).toEqual([503, 'starting']);
  clients[0]?.destroy();
  await until(() => fixture.reports.at(-1)?.[backend] === 1);
  const held = fetch(`${fixture.url}/${token}/`);
  await makeEnded(fixture, backend);
  expect((await held).status).toBe(410);
  clients[1]?.destroy();
});

test('requests to a backend that does not start leave capacity for requests to others', async () => {
  await using fixture = await openFixture();
  const { store } = fixture;
  const [stuck, other] = [await spawn(fixture), await spawn(fixture)];
  const lookup = new Lookup({ store, clock: systemClock, onGone: () => {} });
  const limits = { ms: 60_000, requests: 10_000 };
  const holds = new Holds({ lookup, clock: systemClock, startTimeoutMs: 60_000, limits });
  const ending = new AbortController();
  const hold = { createdAt: new Date(), signal: ending.signal, onFound: () => {} };
  const waiting = Array.from({ length: maxHeldPerBackend }, () => holds.untilReachable(stuck.backend, hold));
  await expect(holds.untilReachable(stuck.backend, hold)).rejects.toMatchObject({ code: 'starting' });
  waiting.push(holds.untilReachable(other.backend, hold));
  ending.abort(new Error('over'));
  for (const result of await Promise.allSettled(waiting)) expect(result).toMatchObject({ reason: { message: 'over' } });
});

test('held requests continue in order of arrival, also one that arrives when the backend is ready', async () => {
  await using fixture = await openFixture();
  const { store } = fixture;
  const { backend } = await spawn(fixture);
  const lookup = new Lookup({ store, clock: systemClock, onGone: () => {} });
  const limits = { ms: 60_000, requests: 10_000 };
  const holds = new Holds({ lookup, clock: systemClock, startTimeoutMs: 60_000, limits });
  const hold = { createdAt: new Date(), signal: new AbortController().signal, onFound: () => {} };
  const order: number[] = [];
  const wait = async (each: number) => {
    await holds.untilReachable(backend, hold);
    order.push(each);
  };
  const all = Array.from({ length: 20 }, (_, i) => wait(i));
  await until(() => store.get(backends, backend).then(() => true));
  await makeReady(fixture, backend, { address: { host: '127.0.0.1', port: 1 } });
  lookup.forget(backend);
  holds.wake(backend);
  await new Promise(setImmediate);
  all.push(wait(20));
  await Promise.all(all);
  expect(order).toEqual(Array.from({ length: 21 }, (_, i) => i));
});

test('the body of a held request is read when the backend is ready, and arrives complete', async () => {
  await using fixture = await openFixture();
  let received = 0;
  await using program = await startProgram((request, response) => {
    request.on('data', (chunk: Buffer) => (received += chunk.length));
    request.on('end', () => response.end('thanks'));
  });
  const { token, backend } = await spawn(fixture);
  const size = 64 * 1024 * 1024;
  const accepted = new Promise<Socket>((resolve) => fixture.server.once('connection', resolve));
  const client = await connected(fixture.port);
  client.write(`POST /${token}/ HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`);
  client.write(Buffer.alloc(size));
  const socket = await accepted;
  await until(() => fixture.reports.at(-1)?.[backend] === 1 && socket.bytesRead > 0);
  await systemClock.sleep(100);
  // At most the buffers of a parser and a stream.
  expect(socket.bytesRead).toBeLessThan(1024 * 1024);
  await makeReady(fixture, backend, program);
  const [answer] = (await once(client, 'data')) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
  expect(received).toBe(size);
  client.destroy();
});
