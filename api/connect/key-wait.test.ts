import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { keyId, keys, leaseMs, renewEveryMs } from '../../model/key.ts';
import { steered } from '../../test/kit/ports/steered.ts';
import { becomeServing, connectPath, openTestApi } from '../testing/test-api.ts';
import type { Reply, TestApi } from '../testing/test-api.ts';

const id = keyId('acme', 'draw', 'room');
/** The clock advances while a request reads the store, so a response may take longer than the waits of the API. */
const plentyMs = 20 * renewEveryMs;

let clock: ManualClock;
let api: TestApi;
beforeEach(async () => {
  clock = new ManualClock(new Date());
  api = await openTestApi({ clock });
});
afterEach(async () => await api[Symbol.asyncDispose]());

/** A backend on `node-1` that holds the key, and whose lease has expired. */
async function lapsedHolder(on = api): Promise<string> {
  const holder = (await on.post(connectPath, { key: 'room' })).body.backend_id as string;
  await on.change(holder, becomeServing);
  await on.store.update(keys, id, (key) => ({ ...key, leaseUntil: new Date(Date.now() - 1) }));
  return holder;
}

/** Connects, and advances the time by up to this much until the response arrives. */
async function connectWithin(ms: number, { on = api, ...request }: { on?: TestApi; spawn?: false } = {}) {
  const replies: Reply[] = [];
  void on.post(connectPath, { key: 'room', ...request }).then((reply) => replies.push(reply));
  for (let passedMs = 0; passedMs < ms && replies.length === 0; passedMs += 100) {
    await clock.advance(100);
    // Another request between two steps, so that the reads of the first one have completed.
    await on.get('/v2/account/acme/services');
  }
  return replies[0];
}

test('a connect right after a freeze returns the holder that renews a moment later', async () => {
  const holder = await lapsedHolder();
  expect(await connectWithin(renewEveryMs)).toBeUndefined();
  await api.store.update(keys, id, (key) => ({ ...key, leaseUntil: new Date(Date.now() + leaseMs) }));
  const reply = await connectWithin(plentyMs);
  expect(reply?.body).toMatchObject({ spawned: false, backend_id: holder });
  expect((await api.get(`/v2/backend/${holder}`)).body.statuses.at(-1)).toMatchObject({ status: 'ready' });
});

test('a connect with spawn: false waits for the holder, too', async () => {
  await lapsedHolder();
  expect(await connectWithin(5_000, { spawn: false })).toBeUndefined();
  const reply = await connectWithin(plentyMs, { spawn: false });
  expect(reply?.body.error.code).toBe('KeyNotHeld');
});

test('a holder that does not renew in time is lost, and the key is assigned again', async () => {
  const holder = await lapsedHolder();
  const reply = await connectWithin(plentyMs);
  expect(reply?.body.spawned).toBe(true);
  expect((await api.get(`/v2/backend/${holder}`)).body.statuses.at(-1)).toMatchObject({
    status: 'terminated',
    last_status: 'ready',
    termination_reason: 'lost',
    terminatation_reason: 'lost',
  });
});

test('a holder whose worker runs in this process is returned, however old its lease', async () => {
  await using own = await openTestApi({ ownNode: 'node-1' });
  const holder = await lapsedHolder(own);
  const { body } = await own.post(connectPath, { key: 'room' });
  expect(body).toMatchObject({ spawned: false, backend_id: holder });
});

test('with a shared store, a connect waits for a holder whose worker runs in this process, because its container may have ended itself', async () => {
  await using own = await openTestApi({
    ownNode: 'node-1',
    clock,
    storeOf: (store) => steered(store, { isShared: true }),
  });
  await lapsedHolder(own);
  expect((await connectWithin(plentyMs, { on: own }))?.body).toMatchObject({ spawned: true });
});
