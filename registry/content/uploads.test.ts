import { expect, test, vi } from 'vitest';
import type { Blobs } from '../../core/blobs/blobs.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';
import { uploadSessions } from './documents.ts';
import { sweepUploads } from './uploads.ts';

const noUploads = { listUploads: () => [], statUpload: async () => undefined } as unknown as Blobs;

test('sessions without bytes are read in batches, however many there are', async () => {
  const clock = new ManualClock(new Date());
  await using store = await openTestStore();
  const startedAt = new Date(clock.now().getTime() - 2 * 24 * 3_600_000);
  const session = { repository: 'acme/draw', subject: 'acme', algorithm: 'sha256', startedAt } as const;
  // More than one batch of a scan.
  const ids = Array.from({ length: 501 }, (_, i) => `upload-${i}`);
  await Promise.all(ids.map(async (id) => await store.insert(uploadSessions, { ...session, id })));
  const find = vi.spyOn(store, 'find');
  await sweepUploads({ store, blobs: noUploads, clock }, { isDry: false, signal: new AbortController().signal });
  expect(find.mock.calls.length).toBeGreaterThan(1);
  expect(await store.find(uploadSessions, { index: 'byStart' })).toEqual([]);
});
