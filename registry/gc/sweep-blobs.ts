/**
 * Removes the bytes of blobs that no repository links to. A tombstone marks them first. Some time later:
 *
 *     the tombstone becomes `deleting` → links are read once more → the bytes are deleted → the tombstone is deleted
 *
 * A push writes its link first and reads the tombstone after that (`content/blob-publish.ts`). A crash in between leaves a
 * tombstone that the next garbage collection, or a push that finds it, processes. A collector that was frozen meanwhile and
 * resumes in the middle finds bytes of another generation and a tombstone of another holder, and leaves both.
 */
import { StoreError } from '../../core/store/store.ts';
import type { Store } from '../../core/store/store.ts';
import { insertIfAbsent } from '../../core/store/upsert.ts';
import { blobLinks, tombstones } from '../content/documents.ts';
import type { Tombstone } from '../content/documents.ts';
import type { BlobTotals } from './events.ts';
import type { GcRun } from './gc-run.ts';
import type { LeaderLease } from './leader-lease.ts';

interface Removal extends Pick<GcRun, 'store' | 'blobs' | 'log'> {
  readonly lease: LeaderLease;
  readonly signal: AbortSignal;
}

export const noBlobs: BlobTotals = { blobs: 0, bytes: 0 };

/**
 * Marks the blobs that no repository links to, apart from `goneLinks`: the number of links to a digest that count as deleted.
 * A dry run marks nothing.
 *
 * @returns the blobs that were not marked before; in a dry run, all of them.
 */
export async function markUnlinkedBlobs(run: GcRun, goneLinks: ReadonlyMap<string, number>): Promise<BlobTotals> {
  const { store, blobs, yielder, signal, lease, startedAt } = run;
  let totals = noBlobs;
  for await (const digest of blobs.list()) {
    signal.throwIfAborted();
    await yielder.yieldIfDue();
    if (await isLinked(store, digest, goneLinks.get(digest))) continue;
    if (lease && !(await mark(store, { id: digest, state: 'marked', at: startedAt }))) continue;
    totals = plus(totals, (await blobs.stat(digest))?.sizeBytes ?? 0);
  }
  return totals;
}

/** Removes blobs that were marked long enough ago, and finishes removals that an earlier collector began. @returns the removed blobs. */
export async function removeMarked(
  removal: Removal & { readonly gc: { readonly removalWaitMs: number } },
): Promise<BlobTotals> {
  const { store, gc } = removal;
  const to = new Date((await store.now()).getTime() - gc.removalWaitMs);
  const unfinished = await unfinishedRemovals(store);
  const due = await store.find(tombstones, { index: 'byState', equals: { state: 'marked' }, range: { to } });
  return await removeAll(removal, [...unfinished, ...due]);
}

/** Finishes removals that a dead collector began. @returns the removed blobs. */
export async function finishRemovals(removal: Removal): Promise<BlobTotals> {
  return await removeAll(removal, await unfinishedRemovals(removal.store));
}

/** Removals that a collector has begun: it is working on them now, or it is dead. */
export async function unfinishedRemovals(store: Store): Promise<Tombstone[]> {
  return await store.find(tombstones, { index: 'byState', equals: { state: 'deleting' } });
}

/** The tombstone of a deletion by this holder. */
export async function deletingTombstone(store: Store, { holder }: LeaderLease, digest: string): Promise<Tombstone> {
  return { id: digest, state: 'deleting', at: await store.now(), holder };
}

/** Deletes the tombstone of a deletion, unless another holder has taken over the deletion. */
export async function dropTombstone(store: Store, lease: LeaderLease, digest: string): Promise<void> {
  await store.delete(tombstones, digest, ({ holder }) => holder === lease.holder);
}

/** Removes blobs. The tombstone of a blob that cannot be removed stays, so that the next run retries it. */
async function removeAll(removal: Removal, list: readonly Tombstone[]): Promise<BlobTotals> {
  let totals = noBlobs;
  for (const { id: digest } of list) {
    removal.signal.throwIfAborted();
    try {
      const sizeBytes = await removeBlob(removal, digest);
      if (sizeBytes !== undefined) totals = plus(totals, sizeBytes);
    } catch (error) {
      if (removal.signal.aborted || removal.lease.lost.aborted || error instanceof StoreError) throw error;
      removal.log.error(
        { err: error, digest },
        'Cannot remove the bytes of a blob, the next garbage collection retries',
      );
    }
  }
  return totals;
}

/** @returns the number of bytes that were deleted, or `undefined` if the blob stays. */
async function removeBlob({ store, blobs, lease }: Removal, digest: string): Promise<number | undefined> {
  await lease.confirm();
  const deleting = await deletingTombstone(store, lease, digest);
  // A push has deleted the tombstone.
  if (!(await store.update(tombstones, digest, () => deleting))) return undefined;
  const blob = await blobs.stat(digest);
  let isDeleted = false;
  if (await isLinked(store, digest)) await blobs.renew(digest);
  else if (blob) {
    await lease.confirm();
    isDeleted = await blobs.delete(digest, blob.generation);
  }
  await dropTombstone(store, lease, digest);
  return isDeleted ? blob?.sizeBytes : undefined;
}

/** Whether any repository links to a blob, apart from `goneLinks`. */
async function isLinked(store: Store, digest: string, goneLinks = 0): Promise<boolean> {
  const links = await store.find(blobLinks, { index: 'byDigest', equals: { digest }, limit: goneLinks + 1 });
  return links.length > goneLinks;
}

/** @returns whether the blob was not marked before. */
async function mark(store: Store, tombstone: Tombstone): Promise<boolean> {
  if (await store.get(tombstones, tombstone.id)) return false;
  return await insertIfAbsent(store, tombstones, tombstone);
}

function plus({ blobs, bytes }: BlobTotals, sizeBytes: number): BlobTotals {
  return { blobs: blobs + 1, bytes: bytes + sizeBytes };
}
