import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Clock } from '../../core/clock/clock.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { backends, becomeTerminated } from '../../model/backend.ts';
import { claimKey, claimMs, isKeyDeletable, keyId, keys, leaseMs } from '../../model/key.ts';
import { KeyWait } from './key-wait.ts';
import { steered } from '../../test/kit/ports/steered.ts';
import { connectPath, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

/** The store's time, which a test advances. */
let nowMs = Date.now();
/** How often documents of each collection were read. */
const reads = new Map<string | undefined, number>();
/** Functions that run before the next write, by method and collection. A rejection fails the write. */
const beforeWrites = new Map<string, () => Promise<void>>();

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({
    storeOf: (store) =>
      steered(store, {
        now: () => new Date(nowMs),
        onCall: async ({ method, collection, run }) => {
          if (method === 'get') reads.set(collection, (reads.get(collection) ?? 0) + 1);
          const call = `${method} ${collection}`;
          const beforeWrite = beforeWrites.get(call);
          beforeWrites.delete(call);
          await beforeWrite?.();
          return await run();
        },
      }),
  });
});
afterAll(async () => await api[Symbol.asyncDispose]());

/** Blocks the next write to a collection. Resolves when the write has begun, with a function that unblocks it. */
function blockWrite(write: 'insert' | 'update', collection: string): Promise<() => void> {
  const { promise: reached, resolve: reach } = Promise.withResolvers<() => void>();
  beforeWrites.set(`${write} ${collection}`, async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    reach(release);
    await released;
  });
  return reached;
}

/** Connects to a key, as a client that disconnects when the signal aborts. */
async function connectWhile(signal: AbortSignal, { base, token }: TestApi, key: string): Promise<Response> {
  return await fetch(base + connectPath, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ key }),
    signal,
  });
}

async function keyOf(name: string) {
  const key = await api.store.get(keys, keyId('acme', 'draw', name));
  if (!key) throw new Error('There is no such key');
  return key;
}

test('if a client disconnects during a connect, its backend and job are still written, and the next connect finds the backend', async () => {
  const reached = blockWrite('insert', 'backends');
  const client = new AbortController();
  const connecting = connectWhile(client.signal, api, 'abandoned');
  const unblock = await reached;
  client.abort();
  await expect(connecting).rejects.toThrow('aborted');
  unblock();
  const { backend_id: id, spawned } = (await api.post(connectPath, { key: 'abandoned' })).body;
  expect(spawned).toBe(false);
  await expect.poll(() => api.notified).toContain(id);
  const ofKey = { index: 'byService', equals: { account: 'acme', service: 'draw' } } as const;
  const left = (await api.store.find(backends, ofKey)).filter(({ key }) => key === 'abandoned');
  expect(left.map((backend) => backend.id)).toEqual([id]);
});

test('a claim without a backend blocks its key only until the claim expires', async () => {
  expect(claimMs).toBeLessThan(leaseMs / 5);
  beforeWrites.set(`insert ${backends.name}`, async () => {
    throw new Error('The process is killed here');
  });
  expect((await api.post(connectPath, { key: 'left' })).status).toBe(500);
  const left = await keyOf('left');
  expect(await api.store.get(backends, left.backend)).toBeUndefined();
  const waiting = api.post(connectPath, { key: 'left' });
  const before = reads.get(keys.name) ?? 0;
  await expect.poll(() => reads.get(keys.name)).toBeGreaterThan(before);
  nowMs += claimMs;
  const { status, body } = await waiting;
  expect([status, body.spawned]).toEqual([200, true]);
  expect((await keyOf('left')).fencingToken).toBeGreaterThan(left.fencingToken);
});

test('a late claimer withdraws its backend and connects to the one that holds the key', async () => {
  const reached = blockWrite('insert', backends.name);
  const late = api.post(connectPath, { key: 'late' });
  const unblock = await reached;
  const withdrawn = (await keyOf('late')).backend;
  nowMs += claimMs;
  const holder = await api.post(connectPath, { key: 'late' });
  expect(holder.body.spawned).toBe(true);
  unblock();
  const { status, body } = await late;
  expect([status, body.spawned, body.backend_id]).toEqual([200, false, holder.body.backend_id]);
  expect(await api.store.get(backends, withdrawn)).toMatchObject({ live: false, status: 'terminated' });
  expect((await keyOf('late')).backend).toBe(holder.body.backend_id);
});

test('of a late claimer and another that has found no backend, one holds the key and the other connects to its backend', async () => {
  const reached = blockWrite('insert', backends.name);
  const first = api.post(connectPath, { key: 'tie' });
  const unblock = await reached;
  nowMs += claimMs;
  const reachedClaim = blockWrite('update', keys.name);
  const second = api.post(connectPath, { key: 'tie' });
  const claim = await reachedClaim;
  unblock();
  const { body } = await first;
  claim();
  expect((await second).body).toMatchObject({ backend_id: body.backend_id, spawned: false });
  expect([body.spawned, (await keyOf('tie')).backend]).toEqual([true, body.backend_id]);
});

test('a claimer that was frozen while its key was held, freed and deleted does not assign a lower fencing token', async () => {
  const reached = blockWrite('insert', keys.name);
  const late = api.post(connectPath, { key: 'forgotten' });
  const unblock = await reached;
  nowMs += 1000;
  const holder = (await api.post(connectPath, { key: 'forgotten' })).body.backend_id;
  const held = await keyOf('forgotten');
  await api.change(holder, (backend) =>
    becomeTerminated(backend, { kind: null, reason: null, exitCode: 0 }, new Date()),
  );
  nowMs += 2 * 60 * 60 * 1000;
  expect(isKeyDeletable(held, await api.store.now())).toBe(true);
  await api.store.delete(keys, held.id);
  unblock();
  const { status, body } = await late;
  expect([status, body.spawned]).toEqual([200, true]);
  const next = await api.store.get(backends, body.backend_id);
  expect(next?.fencingToken).toBeGreaterThan(held.fencingToken);
});

test('a connect that waits for a claim reads less and less often, for a bounded time', async () => {
  const clock = new ManualClock();
  const wait = new KeyWait(clock, new AbortController().signal);
  let readsOfKey = 0;
  const waiting = (async () => {
    // Other requests keep claiming it.
    for (;;) {
      readsOfKey += 1;
      await wait.forClaim(claimKey(undefined, 'acme/draw/busy', 'next', clock.now()), clock.now());
    }
  })();
  const outcome = waiting.catch((error: unknown) => error);
  await clock.advance(60_000);
  expect(await outcome).toMatchObject({ code: 'Unavailable' });
  expect(readsOfKey).toBeLessThan(100);
});

test('a connect that waits for a claim ends when its client disconnects', async () => {
  const manual = new ManualClock();
  let sleeping = 0;
  const clock: Clock = {
    now: () => manual.now(),
    after: (delayMs, action) => manual.after(delayMs, action),
    every: (periodMs, action) => manual.every(periodMs, action),
    sleep: async (delayMs, signal) => {
      sleeping += 1;
      await manual.sleep(delayMs, signal).finally(() => (sleeping -= 1));
    },
  };
  await using still = await openTestApi({ clock });
  const id = keyId('acme', 'draw', 'claimed');
  await still.store.insert(keys, claimKey(undefined, id, 'unwritten', await still.store.now()));
  const client = new AbortController();
  const connecting = connectWhile(client.signal, still, 'claimed');
  await expect.poll(() => sleeping).toBe(1);
  client.abort();
  await expect(connecting).rejects.toThrow('aborted');
  await expect.poll(() => sleeping).toBe(0);
});
