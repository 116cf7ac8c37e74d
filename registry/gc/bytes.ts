/**
 * Removing the bytes of blobs that no repository has: they are condemned by a tombstone, and some time later
 *
 *     the tombstone is marked `deleting` → links are looked for once more → the bytes go → the tombstone goes
 *
 * Whoever pushes the blob writes its link first and reads the tombstone then (`blob-publish.ts`). A crash in between leaves a
 * tombstone that the next collector, or a pusher who meets it, takes up. A collector that only stood still meanwhile, and
 * goes on in the middle, finds bytes of another generation and a tombstone that is not its own, and leaves both.
 */
import type { Blobs } from '../../core/blobs/blobs.ts';
import { StoreError } from '../../core/store/store.ts';
import type { Store } from '../../core/store/store.ts';
import { blobLinks, tombstones } from '../content/documents.ts';
import type { Tombstone } from '../content/documents.ts';
import type { Collecting } from './collecting.ts';
import type { Turn } from './turn.ts';

interface Parts {
  readonly store: Store;
  readonly blobs: Blobs;
}

/** What it takes to remove bytes; a wait passes between condemning and removing. */
interface Removal extends Parts {
  readonly settings: Pick<Collecting['settings'], 'removalWaitMs'>;
  readonly turn: Turn;
}

/** Blobs, and what they take. */
export interface Tally {
  readonly blobs: number;
  readonly bytes: number;
}

/** Condemns what no repository has. @returns what was not condemned before. */
export async function condemnBlobs(collecting: Collecting): Promise<Tally> {
  const { store, blobs, yielder, signal, startedAt } = collecting;
  let tally: Tally = { blobs: 0, bytes: 0 };
  for await (const digest of blobs.list()) {
    signal.throwIfAborted();
    await yielder.yieldIfDue();
    if (await isLinked(store, digest)) continue;
    if (!(await condemn(store, { id: digest, state: 'condemned', at: startedAt }))) continue;
    tally = plus(tally, (await blobs.stat(digest))?.sizeBytes ?? 0);
  }
  return tally;
}

/** Removes what was condemned long enough ago, and finishes what a collector before did not. @returns what went. */
export async function removeCondemned(removal: Removal, signal: AbortSignal): Promise<Tally> {
  const { store, settings } = removal;
  const to = new Date((await store.now()).getTime() - settings.removalWaitMs);
  const begun = await store.find(tombstones, { index: 'byState', equals: { state: 'deleting' } });
  const due = await store.find(tombstones, { index: 'byState', equals: { state: 'condemned' }, range: { to } });
  let tally: Tally = { blobs: 0, bytes: 0 };
  for (const tombstone of [...begun, ...due]) {
    signal.throwIfAborted();
    const sizeBytes = await removeBlob(removal, tombstone);
    if (sizeBytes !== undefined) tally = plus(tally, sizeBytes);
  }
  return tally;
}

/** Whether a collector has begun to remove bytes: it is at it now, or it is dead. */
export async function hasBegunRemovals(store: Store): Promise<boolean> {
  return (await store.find(tombstones, { index: 'byState', equals: { state: 'deleting' }, limit: 1 })).length > 0;
}

/** Finishes removals that a dead collector had begun. */
export async function finishRemovals(parts: Parts, turn: Turn, signal: AbortSignal): Promise<void> {
  for (const tombstone of await parts.store.find(tombstones, { index: 'byState', equals: { state: 'deleting' } })) {
    signal.throwIfAborted();
    await removeBlob({ ...parts, turn }, tombstone);
  }
}

/** Condemned or not: what would go if these links were gone, as digests and how many of each. */
export async function countUnlinked(
  { store, blobs, yielder, signal }: Collecting,
  goneLinks: ReadonlyMap<string, number>,
): Promise<Tally> {
  let tally: Tally = { blobs: 0, bytes: 0 };
  for await (const digest of blobs.list()) {
    signal.throwIfAborted();
    await yielder.yieldIfDue();
    const gone = goneLinks.get(digest) ?? 0;
    const links = await store.find(blobLinks, { index: 'byDigest', equals: { digest }, limit: gone + 1 });
    if (links.length <= gone) tally = plus(tally, (await blobs.stat(digest))?.sizeBytes ?? 0);
  }
  return tally;
}

/** Whether any repository has a blob. */
async function isLinked(store: Store, digest: string): Promise<boolean> {
  return (await store.find(blobLinks, { index: 'byDigest', equals: { digest }, limit: 1 })).length > 0;
}

/** @returns whether it was not condemned before. */
async function condemn(store: Store, tombstone: Tombstone): Promise<boolean> {
  if (await store.get(tombstones, tombstone.id)) return false;
  try {
    await store.insert(tombstones, tombstone);
    return true;
  } catch (error) {
    if (error instanceof StoreError && error.code === 'duplicate') return false;
    throw error;
  }
}

/** Says that a deletion is under way, and whose it is. */
export async function deletingTombstone(store: Store, { holder }: Turn, digest: string): Promise<Tombstone> {
  return { id: digest, state: 'deleting', at: await store.now(), holder };
}

/** Ends a deletion, if nobody else has taken it up. */
export async function dropTombstone(store: Store, turn: Turn, digest: string): Promise<void> {
  await store.delete(tombstones, digest, ({ holder }) => holder === turn.holder);
}

/** @returns the size of what went, or `undefined` if nothing did. */
async function removeBlob(
  { store, blobs, turn }: Parts & { readonly turn: Turn },
  { id: digest }: Tombstone,
): Promise<number | undefined> {
  await turn.prove();
  const deleting = await deletingTombstone(store, turn, digest);
  // A pusher has taken it away.
  if (!(await store.update(tombstones, digest, () => deleting))) return undefined;
  const blob = await blobs.stat(digest);
  const isKept = await isLinked(store, digest);
  let hasGone = false;
  if (isKept) await blobs.renew(digest);
  else if (blob) {
    await turn.prove();
    hasGone = await blobs.delete(digest, blob.generation);
  }
  await dropTombstone(store, turn, digest);
  return hasGone ? blob?.sizeBytes : undefined;
}

function plus({ blobs, bytes }: Tally, sizeBytes: number): Tally {
  return { blobs: blobs + 1, bytes: bytes + sizeBytes };
}
