/** Requests whose routes are being read, while the proxy and its listener close. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { systemClock } from '../../core/clock/system-clock.ts';
import { StoreError } from '../../core/store/store.ts';
import type { Store } from '../../core/store/store.ts';
import { routes } from '../../model/route.ts';
import { steered } from '../../test/kit/ports/steered.ts';
import type { PortCall } from '../../test/kit/ports/steered.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';
import {
  connected,
  gathered,
  makeReady,
  openFixture,
  spawn,
  spawnReady,
  startMirror,
  until,
} from '../testing/fixture.ts';
import type { Fixture } from '../testing/fixture.ts';
import { newToken } from '../testing/token.ts';

/** Longer than a test may take: a connection that counts as busy for ever makes a test fail. */
const neverMs = 10 * 60_000;

const slowly = { drainMs: neverMs, drain: { noticeMs: 0, deadlineMs: neverMs } };

/** A store whose reads of routes wait for the test. */
function heldRoutes(store: Store) {
  const held = Promise.withResolvers<void>();
  let isReading = false;
  const onCall = async ({ method, collection, run }: PortCall) => {
    if (method === 'get' && collection === routes.name) {
      isReading = true;
      await held.promise;
    }
    return await run();
  };
  return { store: steered(store, { onCall }), release: held.resolve, fail: held.reject, isReading: () => isReading };
}

const unreachable = new StoreError('unavailable', 'The store cannot be reached');

/** More than the proxy reads while it waits. */
const longBody = 'x'.repeat(1024 * 1024);

/** Sends a request on a new connection. */
async function ask({ port }: Fixture, token: string, body = ''): Promise<Socket> {
  const client = await connected(port);
  client.write(`POST /${token}/ HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  return client;
}

test.each([
  { name: 'of a ready backend', isReady: true, status: 200 },
  { name: 'of a starting backend', isReady: false, status: 503, body: longBody },
  { name: 'that cannot be read', isReady: true, error: unreachable, status: 503, body: longBody },
])('a request with a route $name is answered although the proxy and its listener close', async (about) => {
  await using store = await openTestStore();
  const held = heldRoutes(store);
  await using fixture = await openFixture({ store: held.store, ...slowly });
  await using mirror = await startMirror();
  const { token } = await (about.isReady ? spawnReady(fixture, mirror) : spawn(fixture));
  const client = await ask(fixture, token, about.body);
  await until(held.isReading);
  const closing = [fixture.proxy[Symbol.asyncDispose](), fixture[Symbol.asyncDispose]()];
  if (about.error) held.fail(about.error);
  else held.release();
  expect(await gathered(client)).toMatch(new RegExp(`^HTTP/1\\.1 ${about.status} [^]*\\r\\n\\r\\n\\{`));
  await Promise.all(closing);
});

test('closing the proxy waits for a request whose route is being read', async () => {
  await using store = await openTestStore();
  const held = heldRoutes(store);
  await using fixture = await openFixture({ store: held.store, ...slowly });
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const client = await ask(fixture, token);
  await until(held.isReading);
  const closing = fixture.proxy[Symbol.asyncDispose]().then(() => 'closed');
  expect(await Promise.race([closing, systemClock.sleep(100)])).toBeUndefined();
  held.release();
  expect(await gathered(client)).toMatch(/^HTTP\/1\.1 200 /);
  await closing;
});

test('a request that was handed to the HTTP server keeps its connection open until it is answered', async () => {
  await using fixture = await openFixture(slowly);
  await using mirror = await startMirror();
  const { token, backend } = await spawn(fixture);
  const client = await ask(fixture, token);
  await until(() => fixture.reports.at(-1)?.[backend] === 1);
  const closing = fixture[Symbol.asyncDispose]();
  await makeReady(fixture, backend, mirror);
  expect(await gathered(client)).toMatch(/^HTTP\/1\.1 200 /);
  await closing;
});

test.each([
  { name: 'was forwarded', isKnown: true, status: 200 },
  { name: 'was handed to the HTTP server', isKnown: false, status: 410 },
])('an idle connection closes with the listener after a request that $name', async ({ isKnown, status }) => {
  await using fixture = await openFixture(slowly);
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const client = await ask(fixture, isKnown ? token : newToken());
  const [answer] = (await once(client, 'data')) as [Buffer];
  expect(answer.toString()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} (?![^]*\\r\\nconnection: close\\r\\n)`, 'i'));
  const closed = once(client, 'close');
  await fixture[Symbol.asyncDispose]();
  await closed;
});
