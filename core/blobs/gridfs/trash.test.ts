import { ObjectId } from 'mongodb';
import { expect, test } from 'vitest';
import { collectLog } from '../../../test/kit/collect-log.ts';
import type { Layout } from './layout.ts';
import { emptyTrash } from './trash.ts';

test('the pass continues after a record that fails, logs it, and reads the records in batches', async () => {
  const [first, broken, last] = [new ObjectId(), new ObjectId(), new ObjectId()];
  const removed: ObjectId[] = [];
  const removedUploads: string[] = [];
  const upload = (_id: string, publishing: string) => ({ _id, publishing });
  const layout = {
    uploads: {
      find: () => recordsOf([upload('broken', 'sha256:1'), upload('published', 'sha256:2')]),
      deleteOne: async ({ _id }: { _id: string }) => void removedUploads.push(_id),
    },
    digests: {
      findOne: async ({ _id }: { _id: string }) => {
        if (_id === 'sha256:1') throw new Error('Cannot read it');
        return { _id };
      },
    },
    trash: { find: () => recordsOf([entry(first), entry(broken), entry(last)]), deleteOne: async () => {} },
    files: { findOne: async () => null, deleteOne: async () => {} },
    chunks: {
      deleteMany: async ({ files_id: file }: { files_id: ObjectId }) => {
        if (file === broken) throw new Error('Cannot delete them');
        removed.push(file);
      },
    },
  } as unknown as Layout;
  const { log, lines } = collectLog();
  const { signal } = new AbortController();
  expect(await emptyTrash(layout, { graceMs: 0, log, signal })).toBe(2);
  expect(removed).toEqual([first, last]);
  expect(removedUploads).toEqual(['published']);
  expect(lines).toMatchObject([
    { level: 'warn', upload: 'broken', err: { message: 'Cannot read it' } },
    { level: 'warn', file: broken.toHexString(), err: { message: 'Cannot delete them' } },
  ]);
});

test('the pass ends when the blobs are closed', async () => {
  const closing = new AbortController();
  const reason = new Error('The blobs are closed');
  const layout = {
    uploads: { find: () => recordsOf([]) },
    trash: { find: () => recordsOf([entry(), entry()]) },
    files: { findOne: async () => closing.abort(reason) },
    chunks: { deleteMany: async () => Promise.reject(new Error('Closed')) },
  } as unknown as Layout;
  const { log, lines } = collectLog();
  await expect(emptyTrash(layout, { graceMs: 0, log, signal: closing.signal })).rejects.toBe(reason);
  expect(lines).toEqual([]);
});

/** A cursor that can only be iterated. */
async function* recordsOf<T>(records: readonly T[]): AsyncGenerator<T> {
  yield* records;
}

function entry(_id = new ObjectId()): { readonly _id: ObjectId; readonly scheduledAt: Date } {
  return { _id, scheduledAt: new Date(0) };
}
