/** Tests of single documents: insert, get, update and delete, one by one and concurrently. */
import { expect } from 'vitest';
import type { IndexValue } from '../../../core/store/store.ts';
import { upsert } from '../../../core/store/upsert.ts';
import { claimKey, keys } from '../../../model/key.ts';
import { expectCode, things } from './things.ts';
import type { StoreTest, Thing } from './things.ts';

export function describeDocuments(storeTest: StoreTest): void {
  storeTest('answers a ping, and returns its time', async ({ store }) => {
    await store.ping();
    const before = Date.now();
    const now = await store.now();
    expect(Math.abs(now.getTime() - before)).toBeLessThan(5_000);
  });

  storeTest('returns inserted documents, and no others', async ({ store }) => {
    await store.insert(things, { id: 'one', group: 'a' });
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', group: 'a' });
    expect(await store.get(things, 'two')).toBeUndefined();
    expect(await store.get(keys, 'one')).toBeUndefined();
  });

  storeTest('rejects a second document with the same ID and keeps the first', async ({ store }) => {
    await store.insert(things, { id: 'one', count: 1 });
    await expectCode(store.insert(things, { id: 'one', count: 2 }), 'duplicate');
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', count: 1 });
  });

  storeTest('accepts one of many concurrent inserts of the same ID', async ({ store }) => {
    const inserts = Array.from({ length: 20 }, (_, count) => store.insert(things, { id: 'one', count }));
    const outcomes = await Promise.allSettled(inserts);
    const winner = outcomes.findIndex(({ status }) => status === 'fulfilled');
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', count: winner });
  });

  storeTest('returns all kinds of data unchanged', async ({ store }) => {
    const content = {
      texts: ['', 'naïve', '日本語', '😀 \u0000 \u2028 "\\', '\uffff'],
      numbers: [0, -1, 1.5, 2 ** 31, 2 ** 53 - 1, -(2 ** 53 - 1), 5e-324, 1.7976931348623157e308, 1e21],
      nothing: null,
      yes: true,
      dates: { past: new Date(-1), nested: [[new Date('2026-02-03T04:05:06.789Z')]], whole: new Date(0) },
      bytes: [new Uint8Array(), Uint8Array.of(0, 255, 128)],
      'a.b': 1,
      '': 'empty key',
      $set: { $date: '2026-01-01T00:00:00Z', $$date: 2 },
      $date: 'not a date',
      $binary: { base64: 'AA==', subType: '00' },
      $numberLong: '5',
      $oid: 'x',
      ['__proto__']: { polluted: true },
      constructor: 'x',
      toJSON: 'text',
    };
    await store.insert(things, { id: 'one', content });
    const found = await store.get(things, 'one');
    expect(found).toStrictEqual({ id: 'one', content });
    expect(found?.content).toHaveProperty(['__proto__'], { polluted: true });
    expect((found as { polluted?: unknown }).polluted).toBeUndefined();
  });

  storeTest('accepts any text as an ID', async ({ store }) => {
    for (const id of ['a/b', 'x:y@sha256:00', "'; --", '日本', 'a\0b', '$', ' ']) {
      await store.insert(things, { id, content: id });
      expect(await store.get(things, id)).toStrictEqual({ id, content: id });
    }
  });

  storeTest('returns bytes as Uint8Array, Buffers too', async ({ store }) => {
    await store.insert(things, { id: 'one', content: Buffer.from('abc') });
    expect((await store.get(things, 'one'))?.content).toStrictEqual(new Uint8Array([97, 98, 99]));
  });

  storeTest('omits fields that are undefined', async ({ store }) => {
    await store.insert(things, { id: 'one', content: { a: undefined, b: 1 } });
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', content: { b: 1 } });
  });

  storeTest('rejects values that it could not return unchanged, and names their path', async ({ store }) => {
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    const unsupported: unknown[] = [
      () => 1,
      Symbol('x'),
      10n,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      new Date(Number.NaN),
      new Date(8.64e15),
      new Map(),
      new Set(),
      new URL('http://localhost'),
      /x/,
      [undefined],
      '\ud800',
      { '\ud800': 1 },
      { [Symbol('x')]: 1 },
      new Float64Array(1),
      circle,
    ];
    for (const value of unsupported) {
      const insert = store.insert(things, { id: 'one', content: { deep: [value] } });
      await expect(insert).rejects.toThrow(TypeError);
      await expect(insert).rejects.toThrow('content.deep[0]');
    }
    expect(await store.get(things, 'one')).toBeUndefined();
  });

  storeTest('rejects objects in indexed fields', async ({ store }) => {
    const rank = { a: 1 } as unknown as IndexValue;
    await expect(store.insert(things, { id: 'one', rank })).rejects.toThrow(/"rank" of "things" is indexed/);
  });

  storeTest('returns a separate copy of a document to every reader', async ({ store }) => {
    const content = { list: [1] };
    await store.insert(things, { id: 'one', content });
    content.list.push(2);
    const found = (await store.get(things, 'one')) as { content: { list: number[] } };
    found.content.list.push(3);
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', content: { list: [1] } });
  });

  storeTest('updates by a function, and returns the result', async ({ store }) => {
    await store.insert(things, { id: 'one', count: 1 });
    const updated = await store.update(things, 'one', (thing) => ({ ...thing, count: 2, content: undefined }));
    expect(updated).toStrictEqual({ id: 'one', count: 2 });
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', count: 2 });
  });

  storeTest('does not update a document that does not exist', async ({ store }) => {
    const calls: Thing[] = [];
    const change = (thing: Thing) => (calls.push(thing), thing);
    expect(await store.update(things, 'one', change)).toBeUndefined();
    expect(calls).toStrictEqual([]);
  });

  storeTest('writes nothing when the change throws, and rethrows the error', async ({ store }) => {
    await store.insert(things, { id: 'one', count: 1 });
    const failure = new Error('No');
    const change = () => {
      throw failure;
    };
    await expect(store.update(things, 'one', change)).rejects.toBe(failure);
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', count: 1 });
    expect(await store.update(things, 'one', (thing) => ({ ...thing, count: 3 }))).toMatchObject({ count: 3 });
  });

  storeTest('writes nothing when the change returns the same object', async ({ store }) => {
    await store.insert(things, { id: 'one', content: { list: [1] } });
    const same = await store.update(things, 'one', (thing) => {
      (thing.content as { list: number[] }).list.push(2);
      return thing;
    });
    expect(same?.id).toBe('one');
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', content: { list: [1] } });
  });

  storeTest('rejects a change that cannot be stored, or that changes the ID', async ({ store }) => {
    await store.insert(things, { id: 'one', count: 1 });
    await expect(store.update(things, 'one', (): Thing => ({ id: 'two' }))).rejects.toThrow(TypeError);
    await expect(store.update(things, 'one', (): Thing => ({ id: 'one', content: () => 1 }))).rejects.toThrow(
      TypeError,
    );
    await expect(store.insert(things, { id: '' })).rejects.toThrow(TypeError);
    expect(await store.get(things, 'one')).toStrictEqual({ id: 'one', count: 1 });
  });

  storeTest('deletes a document if the condition holds', async ({ store }) => {
    await store.insert(things, { id: 'one', count: 1 });
    expect(await store.delete(things, 'one', ({ count }) => count === 2)).toBe(false);
    expect(await store.get(things, 'one')).toBeDefined();
    expect(await store.delete(things, 'one', ({ count }) => count === 1)).toBe(true);
    expect(await store.get(things, 'one')).toBeUndefined();
    expect(await store.delete(things, 'one')).toBe(false);
    await store.insert(things, { id: 'one', count: 2 });
    expect(await store.delete(things, 'one')).toBe(true);
  });
}

export function describeContention(storeTest: StoreTest): void {
  storeTest('loses none of 200 concurrent updates', async ({ store }) => {
    await store.insert(things, { id: 'one', count: 0 });
    const add = (thing: Thing) => ({ ...thing, count: (thing.count ?? 0) + 1 });
    const updated = await Promise.all(Array.from({ length: 200 }, () => store.update(things, 'one', add)));
    expect(new Set(updated.map((thing) => thing?.count)).size).toBe(200);
    expect(await store.get(things, 'one')).toMatchObject({ count: 200 });
  });

  storeTest('assigns a key to one of 50 contenders, with rising fencing tokens', async ({ store }) => {
    const now = await store.now();
    const claim = async (backend: string) => {
      const key = await upsert(store, keys, 'acme/draw/room', (current) =>
        current ? current : claimKey(current, 'acme/draw/room', backend, now),
      );
      return key.backend === backend;
    };
    const won = await Promise.all(Array.from({ length: 50 }, (_, i) => claim(`backend-${i}`)));
    expect(won.filter(Boolean)).toHaveLength(1);

    const claims = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        upsert(store, keys, 'acme/draw/room', (current) => claimKey(current, 'acme/draw/room', `next-${i}`, now)),
      ),
    );
    expect(new Set(claims.map(({ fencingToken }) => fencingToken)).size).toBe(50);
  });

  storeTest('deletes a document once, during concurrent updates and deletions', async ({ store }) => {
    for (let round = 0; round < 20; round += 1) {
      await store.insert(things, { id: 'one', count: 0 });
      const add = (thing: Thing) => ({ ...thing, count: (thing.count ?? 0) + 1 });
      const deleted = await Promise.all([
        store.update(things, 'one', add).then(() => false),
        store.delete(things, 'one'),
        store.update(things, 'one', add).then(() => false),
        store.delete(things, 'one'),
      ]);
      expect(deleted.filter(Boolean)).toHaveLength(1);
      expect(await store.get(things, 'one')).toBeUndefined();
    }
  });
}
