import { request } from 'node:http';
import { expect, test } from 'vitest';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { accessTokens } from '../model/access-token.ts';
import { backends } from '../model/backend.ts';
import { routes } from '../model/route.ts';
import { steered } from '../test/kit/ports/steered.ts';
import { connectPath, openTestApi } from './testing/test-api.ts';

test.each([
  { stream: 'a log', heldRead: accessTokens.name, watched: accessTokens.name },
  { stream: 'the progress of a start', heldRead: routes.name, watched: backends.name },
])('nothing is watched for a client that left while its request for $stream was checked', async (each) => {
  const clock = new ManualClock(new Date());
  const held = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let isHolding = false;
  let reads = 0;
  await using api = await openTestApi({
    clock,
    storeOf: (store) =>
      steered(store, {
        onCall: async ({ method, collection, run }) => {
          if (method === 'get' && collection === each.watched) reads += 1;
          if (isHolding && method === 'get' && collection === each.heldRead) {
            held.resolve();
            await released.promise;
          }
          return await run();
        },
      }),
  });
  const { backend_id: id, ready_url: readyUrl } = (await api.post(connectPath)).body;
  const { pathname } = new URL(readyUrl);
  const path = each.stream === 'a log' ? `/v2/backend/${id}/logs/stream` : `${pathname}events`;
  const token = await api.tokenFor('acme', ['read']);
  isHolding = true;
  const client = request(api.base + path, { headers: { authorization: `Bearer ${token}` } }).end();
  client.on('error', () => {});
  await held.promise;
  client.destroy();
  const answered = async () => /_count\{method="GET".* 1/.test(await api.metrics.metrics());
  await expect.poll(answered).toBe(true);
  released.resolve();
  isHolding = false;
  // Whatever the request still reads.
  const readsWhenIdle = async () => {
    const before = reads;
    await clock.advance(60_000);
    return reads - before;
  };
  await expect.poll(readsWhenIdle).toBe(0);
});
