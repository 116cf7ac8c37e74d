import { join } from 'node:path';
import { expect, test } from 'vitest';
import { canMount, SmallDisk, whyNoDisk } from '../../../test/kit/machine/small-disk.ts';
import { silentLog } from '../../log/log.ts';
import { openSqliteStore } from './sqlite.ts';
import type { Collection, Store } from '../store.ts';

interface Thing {
  readonly id: string;
  readonly rank: number;
  readonly filling: string;
}

const things: Collection<Thing> = { name: 'things', indexes: {} };
const full = { name: 'StoreError', code: 'unavailable', isFull: true, message: expect.stringMatching(/disk is full/) };

async function open(disk: SmallDisk): Promise<Store> {
  return await openSqliteStore({ folder: join(disk.path, 'store'), collections: [things], log: silentLog() });
}

/** Inserts until an insert is rejected. @returns the IDs of the written documents. */
async function insertUntilRejected(store: Store): Promise<string[]> {
  const written: string[] = [];
  for (;;) {
    const ids = Array.from({ length: 10 }, (_, i) => String(written.length + i));
    const inserts = ids.map((id) => store.insert(things, { id, rank: 0, filling: 'x'.repeat(5_000) }));
    const outcomes = await Promise.allSettled(inserts);
    const rejected = outcomes.find(({ status }) => status === 'rejected');
    if (rejected) {
      // They are in one transaction.
      for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: full });
      return written;
    }
    written.push(...ids);
  }
}

test.runIf(canMount)(
  `on a full disk writes report that, reads continue, and writes succeed again when there is space${whyNoDisk}`,
  async () => {
    await using disk = await SmallDisk.mount(16);
    await using store = await open(disk);
    await store.ping();
    await disk.fillUpTo(1);
    const written = await insertUntilRejected(store);
    expect(written.length).toBeGreaterThan(10);
    await disk.fillUpTo(0);
    await expect(store.insert(things, { id: 'one more', rank: 1, filling: '' })).rejects.toMatchObject(full);
    await expect(store.ping()).rejects.toMatchObject(full);
    expect(await store.get(things, written.at(-1) ?? '')).toMatchObject({ rank: 0 });
    expect(await store.get(things, String(written.length))).toBeUndefined();
    await disk.heal();
    await store.ping();
    await store.insert(things, { id: 'one more', rank: 1, filling: '' });
    expect(await store.get(things, 'one more')).toMatchObject({ rank: 1 });
  },
);

test.runIf(canMount)(`writes that need no more space succeed while the disk is full${whyNoDisk}`, async () => {
  await using disk = await SmallDisk.mount(16);
  {
    await using store = await open(disk);
    await store.insert(things, { id: 'lease', rank: 0, filling: '' });
    await store.insert(things, { id: 'ended', rank: 0, filling: 'x'.repeat(50_000) });
    await store.delete(things, 'ended');
  }
  // The database has free pages, as in ordinary use, and the log has space for a few writes.
  await using store = await open(disk);
  await store.update(things, 'lease', (lease) => ({ ...lease, rank: 1 }));
  await disk.fillUpTo(0);
  for (let rank = 2; rank < 100; rank += 1) {
    expect(await store.update(things, 'lease', (lease) => ({ ...lease, rank }))).toMatchObject({ rank });
  }
  await store.ping();
});

test.runIf(canMount)(`a store can be opened repeatedly on a full disk, read, and written to${whyNoDisk}`, async () => {
  await using disk = await SmallDisk.mount(16);
  {
    await using store = await open(disk);
    await store.insert(things, { id: 'lease', rank: 0, filling: '' });
  }
  for (let rank = 1; rank < 5; rank += 1) {
    await disk.fillUpTo(0);
    await using store = await open(disk);
    expect(await store.get(things, 'lease')).toMatchObject({ rank: rank - 1 });
    await store.update(things, 'lease', (lease) => ({ ...lease, rank }));
    await store.ping();
  }
  await disk.heal();
  await using store = await open(disk);
  expect(await store.get(things, 'lease')).toMatchObject({ rank: 4 });
});
